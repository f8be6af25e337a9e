"""The node of a worker."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import ROLES, Agent, Role, StepFailed, StepResult, Task, mark_author
from maniple.agents.gap_statements import describe_unread_share
from maniple.agents.middleware.continuation import load_messages
from maniple.agents.middleware.fencing import fence_untrusted, fences_to_code
from maniple.agents.report import check_report, judge_answer
from maniple.agents.step_outcome import MAX_ENTRIES, ParsedAnswer, StepOutcome, parse_answer, parse_failure
from maniple.agents.step_state import set_in_context
from maniple.agents.task import (
    LATER_TRY_FAILED,
    MISSING,
    REJECTED_BY_USER,
    PlanStepSummary,
    ThreadHistory,
    explain_failure,
    explain_partial,
    find_partial_work,
    format_failure,
    format_lost_pictures,
    names_missing,
)
from maniple.errors import BudgetExhausted, ManipleError, ModelError, StoreError, describe_error
from maniple.evidence.duplicates import describe_duplicates, find_duplicates
from maniple.graph.earlier_turns import format_decided_turns, history_of, mirrored_turns, notes_of_run
from maniple.graph.gap_review import describe_open
from maniple.graph.lead import Lead
from maniple.graph.limits import write_bare_report
from maniple.graph.plan import TITLE_CHARACTERS, TO_BEGIN, PlannedStep, PlanProgress, TrackedStep
from maniple.graph.plan_edits import apply_changes
from maniple.graph.plan_events import show_changes
from maniple.graph.state import (
    FAILED_MARK,
    RunOptions,
    State,
    caller_of,
    conversation_of,
    make_update,
    mirrored_reports,
    private_of,
    progress_of,
    report_text,
    reports_of,
    request_of,
    texts_of_user,
)
from maniple.graph.steering import as_exchange, exchange_of
from maniple.graph.step_records import LeadDecision
from maniple.graph.waves import Waves
from maniple.graph.written_plan import REPORTER, is_answer, repeated_step
from maniple.llms.context_windows import is_overflow
from maniple.scope.inbox import run_unless_stopped
from maniple.scope.run_scope import current_meter, run_scope
from maniple.text import shorten
from maniple.tools.evidence import READING_STEP, current_evidence
from maniple.tools.items import (
    MIN_RESULT_CHARACTERS,
    FileState,
    Item,
    ItemIndex,
    MirroredText,
    ThreadItems,
    is_picture,
    report_path,
    result_path,
)
from maniple.types import ReportStyle, Worker
from maniple.workspace.mirrors import is_mirror

FAILED_BEFORE = "An earlier try failed: {found}"
STOPPED_BEFORE = "An earlier try was stopped before its end. Its newest words and calls, unfinished:\n{found}"
PARTIAL_BEFORE = (
    "An earlier try found the following, without {lacks}. Your answer replaces it: give all of it, and name "
    "as missing only what neither has.\n{found}"
)
NO_REPORT = "The reporter gave none."
NO_MODEL = "The model did not answer. Check its endpoint, then retry the run."
MODEL_REASONS: Mapping[str, str] = {
    "model_auth": "The model refused the API key. Set a valid key, then retry the run.",
    "model_not_found": "The model does not exist at its endpoint. Set another model, then retry the run.",
    "model_rate_limited": "The model accepted no more requests. Wait a while, then retry the run.",
    "model_not_configured": "No model is configured for this step. Set one, then retry the run.",
}
"""Why a step has no result, by the code of its model's error; `NO_MODEL` for other codes."""
_NANOSECONDS = 1_000_000_000
REFUSED = "The model refused the request ({refusal})."
TOO_LONG = "The step is too long for the model, even shortened. Use a model with a larger window."
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What an attempt of a step changes: its text, and why it is not done ("" if it is done)."""

    text: str
    reason: str = ""
    is_final: bool = False
    """Whether another attempt would not help."""
    error_code: str = ""
    by_code: bool = False
    """For a report: it is compiled from the results by code, because its model failed."""
    continuation: dict[str, Any] | None = None
    """What the agent had done when its model gave no answer."""
    outcome: StepOutcome | None = None
    """What the member itself said, if it ended the attempt."""
    files: Sequence[str] = ()
    """The paths of the files that were made or changed meanwhile."""

    @classmethod
    def of(cls, answer: ParsedAnswer, **fields: Any) -> "_Attempt":
        """Return the attempt that ended with an answer."""
        outcome = answer.outcome
        reason = outcome.summary if outcome.status == "failed" else ""
        return cls(answer.text, reason, outcome=outcome, **fields)

    async def with_unread(self, step_id: int) -> "_Attempt":
        """Return the attempt with a gap if half of the pages that its step tried, or more, were not read.

        The lead is not asked about it: members look for other pages by themselves.
        """
        evidence, outcome = current_evidence(), self.outcome
        if evidence is None or self.reason or outcome is None or outcome.status == "failed":
            return self
        if not (lacks := describe_unread_share(await evidence.attempts(step_id))):
            return self
        is_done = outcome.status == "done"
        reason = lacks if is_done else f"{outcome.reason} {lacks}".strip()
        outcome = outcome.model_copy(update={"status": "partial", "reason": reason})
        return replace(self, outcome=outcome, is_final=self.is_final or is_done)

    def as_fields(self, step: TrackedStep, attempts: int) -> dict[str, Any]:
        """Return the changed fields of the step as plain data; log a failure."""
        if self.reason:
            _log.warning("Step %d (%s) failed: %s", step.id, step.agent_name, self.reason)
        by_code = StepOutcome(status="failed" if self.reason else "done", reason=self.reason)
        outcome = (self.outcome or by_code).model_copy(update={"files": [*self.files]})
        return {
            "status": "failed" if self.reason else "completed",
            "attempts": attempts,
            "result": self.text,
            "reason": self.reason,
            "outcome": outcome.model_dump(mode="json"),
            "settled": self.is_final,
            "error_code": self.error_code,
            "continuation": self.continuation or None,
            **({"by_code": True} if self.by_code else {}),
        }


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """Gives a step to its agent and stores the answer in the plan.

    A failure of the agent or its model becomes a failed step with a reason. Only interrupts, cancellations
    and store errors are raised.
    """

    role: Role
    agent: Agent
    lead: Lead
    available: Sequence[Worker] = ()
    items: ThreadItems | None = None
    waves: Waves = field(default_factory=lambda: Waves(ROLES, 1))
    report_style: ReportStyle = "auto"

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["supervisor"]]:
        run_scope().inbox.open()  # after a restart, or the user would have to wait for the next step
        options = RunOptions.of(runtime, state)
        if private_of(state).get("step"):
            return await self._work_in_wave(state, options)
        return await self._work_alone(state, options)

    async def _work_in_wave(self, state: State, options: RunOptions) -> Command[Literal["supervisor"]]:
        members = options.at_work(self.available)
        async with self.waves.join(state, members) as invocation:
            while (step := await invocation.next_step(self.role.name)) is not None:
                tried = await invocation.attempt(step, partial(self._try_step, state, options, step.id))
                if tried is None or not tried.awaits_decision:
                    continue
                if not await invocation.decide(tried, partial(self._decide, state, members, tried)):
                    break
            records = invocation.records
            messages = [_message(self.role.name, one["fields"]) for one in records if one["kind"] == "try"]
            update = make_update(*exchange_of(state), *messages, ended={str(invocation.own): records})
        return Command(goto="supervisor", update=update)

    async def _try_step(
        self, state: State, options: RunOptions, step_id: int, progress: PlanProgress
    ) -> dict[str, Any]:
        step = progress.step(step_id) or _unplanned(self.role.name, state)
        outcome = await self._work(state, options, progress, step)
        return outcome.as_fields(step, step.attempts + 1)

    async def _decide(
        self, state: State, members: Sequence[Worker], failed: TrackedStep, progress: PlanProgress
    ) -> LeadDecision:
        failure = self.lead.failure_of(progress, progress.step(failed.id) or failed, members)
        return await self.lead.decide(state, failure, members)

    async def _work_alone(self, state: State, options: RunOptions) -> Command[Literal["supervisor"]]:
        """Do the plan's current step; no other step is running."""
        progress = progress_of(state) or PlanProgress(title="", steps=())
        step = progress.current() or _unplanned(self.role.name, state)
        inbox, members = run_scope().inbox, options.at_work(self.available)

        def is_stopped() -> bool:
            if not inbox.changes:
                return False
            now = apply_changes(progress, inbox.changes, members).step(step.id)
            return now is not None and now.edition != step.edition

        work = self._work(state, options, progress, step)
        async with show_changes(state, members):
            outcome = await run_unless_stopped(work, inbox, is_stopped)
        if outcome is None:
            return Command(goto="supervisor", update=make_update())
        fields = outcome.as_fields(step, step.attempts)
        progress = progress.with_attempt(step.id, fields)
        is_alone = options.agent == self.role.name
        is_undelivered = bool(outcome.error_code) and (is_alone or self.role.name == REPORTER)
        is_undelivered = is_undelivered and not outcome.by_code
        # Without an answer, the error that ends the run contains the failure.
        now = progress.step(step.id)
        if is_alone and now is not None and now.is_partial and outcome.reason:
            text = f"{now.found}\n\n{LATER_TRY_FAILED} {explain_failure(outcome.reason)}"
            fields = {**fields, "status": "completed", "result": text, "error_code": ""}
        messages = [] if is_undelivered else [_message(self.role.name, fields, is_alone=is_alone)]
        update = make_update(*exchange_of(state), *messages, plan=progress.to_state())
        return Command(goto="supervisor", update=update)

    async def _work(
        self, state: State, options: RunOptions, progress: PlanProgress, step: TrackedStep
    ) -> _Attempt:
        """Make one attempt of a step, and find out which files it made, also before a pause."""
        before = await self._list_files()
        with set_in_context(READING_STEP, step.id):
            attempt = await self._attempt(state, options, progress, step)
        attempt = await attempt.with_unread(step.id)
        begun = run_scope().begun_at.get(step.id, math.inf) * _NANOSECONDS
        now = await self._list_files()
        made = sorted(path for path, size, at in now if at >= begun or (path, size, at) not in before)
        return replace(attempt, files=[*dict.fromkeys((*step.outcome.files, *made))][-MAX_ENTRIES:])

    async def _list_files(self) -> frozenset[FileState]:
        """Return the thread's files; none for a role that writes none, so that it gets none of others."""
        if self.items is None or not self.role.has_files:
            return frozenset()
        return await self.items.list_files()

    async def _attempt(
        self, state: State, options: RunOptions, progress: PlanProgress, step: TrackedStep
    ) -> _Attempt:
        """Make one attempt of a step."""
        history = history_of(state)
        index = await self._index(state, progress, step, history.request)
        task = _task(state, progress, step, self.role, index, history)
        continued = await load_messages(step.continuation)
        task = replace(task, items_of_thread=self.items, continued=continued)
        task = replace(
            task, team=options.enabled(self.available), named_items=await self._named_items(task, index)
        )
        if self.role.name == REPORTER or task.is_answer:
            task = replace(task, style=options.report_style or self.report_style)
        if self.role.name == REPORTER:
            task = replace(task, remarks=await _list_remarks(progress))
        if options.agent == self.role.name:
            task = replace(
                task,
                team=(),  # no other member works
                conversation=_conversation_of(state),
                caller=caller_of(state),
                start_page=options.start_page,
            )
        try:
            attempt = await self._try(progress, step, task)
            return await self._judged(task, attempt) if options.agent == self.role.name else attempt
        except BudgetExhausted as error:
            if self.role.name == REPORTER:
                return _Attempt(await write_bare_report(task, str(error)))
            answer = parse_failure(error.with_what_was_done())
            return _Attempt.of(answer, continuation=error.continuation)
        except (GraphBubbleUp, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - no defect of one step may end the others
            return await self._failed(task, error)

    async def _try(self, progress: PlanProgress, step: TrackedStep, task: Task) -> _Attempt:
        is_reporter = self.role.name == REPORTER
        try:
            async with current_meter().enforce_time_limit(reporting=is_reporter):
                answer = await self._answer(progress, step, task)
        except StepFailed as failure:
            return _Attempt.of(parse_failure(str(failure)), is_final=failure.is_final)
        if step.by_code:  # the answer is not a report by the reporter, which counts as a gap
            return _Attempt(answer, NO_REPORT, is_final=True)
        parsed = parse_answer(answer, is_report=is_reporter)
        # What the user did not approve is not tried in another way.
        return _Attempt.of(parsed, is_final=parsed.outcome.reason.startswith(REJECTED_BY_USER))

    async def _judged(self, task: Task, attempt: _Attempt) -> _Attempt:
        """Return the attempt of a member that works alone; what is known of its claims is sent."""
        if not attempt.reason:
            try:
                await judge_answer(task, attempt.text)
            except Exception as error:  # noqa: BLE001 - no answer may be lost because of its check
                _log.warning("The claims of an answer could not be checked: %s", error, exc_info=True)
        return attempt

    async def _failed(self, task: Task, error: Exception) -> _Attempt:
        """Return the outcome of a step that an error ended; a report is compiled by code if possible."""
        is_model = isinstance(error, ModelError)
        _log.warning("A step of the %s failed: %s", self.role.name, error, exc_info=not is_model)
        is_reporter = self.role.name == REPORTER
        has_findings = any(one.done or find_partial_work(one.text) for one in task.results)
        text, code = describe_error(error), error.code if isinstance(error, ManipleError) else "internal"
        reason = _model_reason(error) if isinstance(error, ModelError) else explain_failure(text)
        if is_reporter and has_findings:
            report = await write_bare_report(task, reason)
            return _Attempt(report, reason, True, code if is_model else "", by_code=is_model)
        if not isinstance(error, ModelError):
            return _Attempt(text, reason, is_reporter, code)
        # Where the next try cannot continue from the messages, it reads what was done instead.
        text = text if error.continuation else error.with_what_was_done()
        return _Attempt(text, reason, is_reporter, code, continuation=error.continuation)

    async def _answer(self, progress: PlanProgress, step: TrackedStep, task: Task) -> str:
        if step.by_code:
            return await write_bare_report(task, NO_REPORT)
        if repeated := repeated_step(progress, step):
            return _with_missing(progress, task, await check_report(task, repeated.result))
        return await self.agent.work(task)

    async def _named_items(self, task: Task, index: ItemIndex) -> list[StepResult]:
        """Return the items that a step names and that are not shown yet, if its member cannot open files."""
        if self.items is None or self.role.has_files:
            return []
        shown = {task.history.report_path, *(one.path for one in task.results)}
        named = await self.items.read_named(task.description)
        return [
            StepResult("", "", one.text, path=one.path, is_item=True)
            for one in named
            if one.path in index.stored and one.path not in shown
        ]

    async def _index(
        self, state: State, progress: PlanProgress, current: TrackedStep, request: int
    ) -> ItemIndex:
        """Return the items of the thread, including the results and reports so far.

        `request` is the number of the present request on the thread, from 1. A result that `current` repeats
        as the report is not listed twice.
        """
        if self.items is None:
            return ItemIndex()
        repeated = repeated_step(progress, current)
        results = [
            MirroredText(result_path(request, step.id, step.agent_name), f"# {step.title}\n\n{step.found}")
            for step in progress.steps
            if step.status == "completed"
            and len(step.found) >= MIN_RESULT_CHARACTERS
            and (repeated is None or step.id != repeated.id)
        ]
        try:
            return await self.items.update(
                current_evidence(), [*mirrored_reports(state), *mirrored_turns(state), *results]
            )
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a step can be worked on without its list of items
            _log.warning("The items of the thread could not be listed: %s", error, exc_info=True)
            return ItemIndex()


async def _list_remarks(progress: PlanProgress) -> list[str]:
    """Return what the reporter has to know about the material: what is open, and which sources are one."""
    duplicates = await find_duplicates(run_scope().evidence)
    return [*describe_open(progress), *describe_duplicates(duplicates)]


def _model_reason(error: ModelError) -> str:
    """Return why a step has no result; of a request that was refused, in the endpoint's own words."""
    if error.code != "model_bad_request":
        return MODEL_REASONS.get(error.code, NO_MODEL)
    return REFUSED.format(refusal=error.refusal) if error.refusal and not is_overflow(error) else TOO_LONG


def _with_missing(progress: PlanProgress, task: Task, answer: str) -> str:
    """Return a member's answer with a line about each step before it that is missing and that it omits."""
    places = {progress.place_of(step) for step in progress.unfinished}
    missing = [
        one.describe_missing()
        for one in task.results
        if not one.done and one.step in places and not names_missing(answer, one.title, one.reason)
    ]
    return "\n\n".join([answer, *missing])


def _message(name: Worker, fields: Mapping[str, Any], *, is_alone: bool = False) -> BaseMessage:
    """Return the message of a member after an attempt; for an error, its explanation."""
    text: str = fields["reason" if fields["error_code"] and not fields.get("by_code") else "result"]
    is_failed = fields["status"] == "failed"
    if is_failed:
        text = format_failure(text)
    message = AIMessage(fences_to_code(text)) if is_alone else HumanMessage(text)
    if is_failed:
        message.additional_kwargs[FAILED_MARK] = True
    return mark_author(name, message)


def _unplanned(name: Worker, state: State) -> TrackedStep:
    request = request_of(state)
    return TrackedStep(
        id=0,
        **PlannedStep(
            agent_name=name, title=shorten(request, TITLE_CHARACTERS), description=request
        ).model_dump(),
    )


def _task(
    state: State,
    progress: PlanProgress,
    step: TrackedStep,
    role: Role,
    index: ItemIndex,
    history: ThreadHistory,
) -> Task:
    request, given = history.request, run_scope().inbox.begin_step(step.id)

    def stored(path: str) -> str:
        return path if path in index.stored else ""

    results = [
        StepResult(
            one.agent_name,
            one.title,
            _shown(progress, one, plainly=step.agent_name == "reporter"),
            one.status == "completed",
            step=progress.place_of(one),
            path=stored(result_path(request, one.id, one.agent_name)),
            reason="" if one.status == "completed" else explain_failure(one.reason or one.result),
            lacks=explain_partial(one.model_dump()) if progress.lacks_part(one) else "",
        )
        for one in progress.given_to(step)
        if one.status not in TO_BEGIN and not one.is_removed and not _is_obsolete(progress, one, step)
    ]
    report = stored(report_path(len(reports_of(state))))
    shown = {report, *(one.path for one in results)}
    is_report = step.agent_name == "reporter"
    undescribed = (step.title, request_of(state))
    lost = private_of(state).get("lost_pictures") or ()
    return Task(
        request=request_of(state) + format_lost_pictures(lost),
        lost_pictures=lost,
        unseen_pictures=private_of(state).get("unseen_pictures") or (),
        number_source=private_of(state).get("number_source"),
        title=step.title,
        description=step.description,
        note=_note(progress, step),
        results=results,
        step=step.id,
        user_messages=[one.text for one in given],
        notes=notes_of_run(state, progress, [one.message_id for one in given]),
        locale=private_of(state).get("locale") or "",
        caller=caller_of(state) if is_report else "",
        thread_texts=_thread_texts(state) if is_report else (),
        thread_reports=_thread_reports(state) if is_report else (),
        files=(private_of(state).get("files") or ()) if role.has_files else (),
        is_answer=is_answer(progress, step),
        is_added_report=is_report and step.title == progress.title and step.description in undescribed,
        history=replace(history, report_path=report),
        plan=[
            PlanStepSummary(
                progress.place_of(one),
                one.agent_name,
                one.title,
                one.status,
                one.id == step.id,
                replaced_by=progress.place_of_replacement(one),
                is_partial=one.is_partial,
            )
            for one in progress.steps
            if not one.repeats and not one.is_removed
        ],
        removed=progress.removed,
        by_user=step.by_user,
        items=[one for one in index.items if one.path not in shown and _can_use(role, one)],
        older_items=index.older if role.name != "reporter" else 0,
        pictures=[one.path for one in index.items if _is_shown(role, one)],
        screenshots=[one.path for one in index.items if one.is_of_run and is_report],
    )


def _conversation_of(state: State) -> list[BaseMessage]:
    """Return the conversation for a member that answers alone, with the user's decisions in earlier turns.

    What was written to this run is left out: the member gets it with its step.
    """
    exchange = {part.id for one in run_scope().inbox.messages for part in as_exchange(one)}
    conversation = [one for one in conversation_of(state) if one.id not in exchange]
    decided = format_decided_turns(state)
    return [*conversation[:-1], *([HumanMessage(decided)] if decided else []), *conversation[-1:]]


def _is_obsolete(progress: PlanProgress, one: TrackedStep, reader: TrackedStep) -> bool:
    """Return whether the result of a failed step need not be shown, because its replacement is done."""
    return one.status == "failed" and one.replaced_by != reader.id and progress.is_made_up_for(one)


def _can_use(role: Role, item: Item) -> bool:
    """Return whether an item is listed for a role: it can open it, or show it in a report."""
    if role.name == "reporter":
        return item.kind in ("figure", "screenshot") or _is_shown(role, item)
    if role.has_files:
        return item.kind != "upload"  # `format_files` names those
    return is_mirror(item.path) or item.kind == "upload" or is_picture(item.path)


def _is_shown(role: Role, item: Item) -> bool:
    """Return whether a picture is shown to a role before its step, without being opened."""
    is_wanted = item.kind == "upload" or (item.kind == "figure" and role.name == "reporter")
    return is_wanted and is_picture(item.path)


def _thread_texts(state: State) -> list[str]:
    return [*texts_of_user(state), *(one.text for one in exchange_of(state))]


def _thread_reports(state: State) -> list[str]:
    return [report_text(one) for one in state["messages"] if one.name == "reporter"]


def _note(progress: PlanProgress, step: TrackedStep) -> str | None:
    if step.continuation:  # the agent itself sees what came of the earlier try
        return step.note
    if not step.result:
        stopped = "\n".join(run_scope().stopped_work.get(step.id, ()))
        before = STOPPED_BEFORE.format(found=fence_untrusted(stopped)) if stopped else None
        return "\n".join(filter(None, (step.note, before))) or None
    is_partial = step.outcome.status == "partial"
    before = PARTIAL_BEFORE if is_partial else FAILED_BEFORE
    lines = [step.note, before.format(lacks=step.outcome.reason, found=step.found)]
    if (step.outcome.needs or is_partial) and (provider := _provider_of(progress, step)):
        number, name = progress.place_of(provider), provider.agent_name
        lines.append(
            f"Since then, step {number} ({name}: {provider.title}) has provided what was missing; use its "
            "result."
        )
    return "\n".join(filter(None, lines))


def _provider_of(progress: PlanProgress, step: TrackedStep) -> TrackedStep | None:
    """Return the completed step that was inserted before a failed one to provide what it needs, or None."""
    given = progress.given_to(step)
    # Such a step is directly before it, and has a greater id than all steps of the first plan.
    newest = given[-1] if given and given[-1].id > step.id else None
    return newest if newest is not None and newest.status == "completed" else None


def _shown(progress: PlanProgress, step: TrackedStep, *, plainly: bool) -> str:
    """Return a step's result for another member; with `plainly`, without the text of an exception."""
    if step.is_partial and progress.is_made_up_for(step):
        place = progress.place_of_replacement(step)
        return f"{step.found}\n\n(Step {place} was to get this; see its result.)"
    if step.status == "completed":
        return step.found
    reason = (not step.error_code and step.result) or step.reason or "it was given up"
    reason = format_failure(reason) if plainly else reason
    return f"{MISSING} the step {step.title!r} was not completed: {reason}"
