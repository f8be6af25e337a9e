"""One node for every worker."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import ROLES, Agent, Role, StepFailed, StepResult, Task, mark_author
from maniple.agents.middleware.fencing import fences_to_code
from maniple.agents.report import check_report
from maniple.agents.run_scope import run_scope
from maniple.agents.task import PlanStepSummary, explain_failure
from maniple.errors import BudgetExhausted, ModelError
from maniple.graph.lead import NEEDS
from maniple.graph.limits import bare_report, current_meter
from maniple.graph.plan import TO_BEGIN, PlannedStep, PlanProgress, TrackedStep
from maniple.graph.state import (
    FAILED_MARK,
    RunOptions,
    State,
    caller_of,
    conversation_of,
    history_of,
    is_users,
    make_update,
    mirrored_reports,
    private_of,
    progress_of,
    reports_of,
    request_of,
)
from maniple.graph.waves import StepTurn, Waves, not_begun
from maniple.graph.written_plan import is_answer, repeated_step
from maniple.tools.evidence import current_evidence
from maniple.tools.items import (
    MIN_RESULT_CHARACTERS,
    Item,
    ItemIndex,
    MirroredText,
    ThreadItems,
    is_mirror,
    report_path,
    result_path,
)
from maniple.types import Worker

_FAILED = re.compile(r"\A[\s*#_`]{0,50}STEP FAILED\b[\s:*_`]*", re.I)
REASON_CHARACTERS = 300
NO_REPORT = "The reporter gave none."
NO_MODEL = "The model did not answer. Check its endpoint, then retry the run."
NO_REASON = "the member gave no reason"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """Hand one step to one agent and bring back its answer."""

    role: Role
    agent: Agent
    available: Sequence[Worker] = ()
    items: ThreadItems | None = None
    waves: Waves = field(default_factory=lambda: Waves(ROLES, 1))

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["supervisor"]]:
        progress = progress_of(state) or PlanProgress(title="", steps=())
        if plan_edits := run_scope().plan_edits:
            plan_edits.open()  # after a restart, or the user would have to wait for the next step
        async with self.waves.turn(state, progress, _unplanned(self.role.name, state)) as turn:
            if turn is None:
                return Command(goto="supervisor", update=make_update(**not_begun(state)))
            return await self._work(state, RunOptions.of(runtime, state), turn)

    async def _work(
        self, state: State, options: RunOptions, turn: StepTurn
    ) -> Command[Literal["supervisor"]]:
        progress, step = turn.progress, turn.step
        is_alone = options.agent == self.role.name
        index = await self._index(state, progress)
        task = _task(state, progress, step, self.role, options.enabled(self.available), index)
        if is_alone:
            task = replace(task, conversation=conversation_of(state), caller=caller_of(state))
        text, reason, is_final = await self._try(progress, step, task)
        done = not reason
        said = AIMessage(fences_to_code(text)) if is_alone else HumanMessage(text)
        if not done:
            said.additional_kwargs[FAILED_MARK] = True
        message = mark_author(self.role.name, said)
        progress = progress.tried(step.id, done=done, result=text, reason=reason, settled=is_final)
        return Command(goto="supervisor", update=make_update(message, **turn.end(progress)))

    async def _try(self, progress: PlanProgress, step: TrackedStep, task: Task) -> tuple[str, str, bool]:
        """Return the result of a step, why it is not done ("" if it is), and whether no other try helps."""
        is_reporter = self.role.name == "reporter"
        try:
            async with current_meter().enforce_time_limit(reporting=is_reporter):
                answer = await self._answer(progress, step, task)
            text, done = _report_of(answer) if is_reporter else outcome_of(answer)
        except StepFailed as failure:
            return str(failure), reason_of(str(failure)) or NO_REASON, failure.is_final
        except BudgetExhausted as error:
            if is_reporter:
                return await bare_report(task, str(error)), "", False
            text = error.with_what_was_done()
            return text, reason_of(text), False
        except ModelError as error:
            if not is_reporter or not any(result.done for result in task.results):
                raise
            _log.warning("The reporter's model failed: %s", error)
            return await bare_report(task, NO_MODEL), NO_MODEL, True
        if step.by_code:  # there is an answer, but no report, which is a gap
            return text, NO_REPORT, True
        return text, "" if done else reason_of(text) or NO_REASON, False

    async def _answer(self, progress: PlanProgress, step: TrackedStep, task: Task) -> str:
        if step.by_code:
            return await bare_report(task, NO_REPORT)
        if repeated := repeated_step(progress, step):
            return await check_report(task, repeated.result)
        return await self.agent.work(task)

    async def _index(self, state: State, progress: PlanProgress) -> ItemIndex:
        """Return what the thread has, once the results and reports so far are among it."""
        if self.items is None:
            return ItemIndex()
        request = len(history_of(state).requests) + 1
        results = [
            MirroredText(result_path(request, step.id, step.agent_name), f"# {step.title}\n\n{step.result}")
            for step in progress.steps
            if step.status == "completed" and len(step.result) >= MIN_RESULT_CHARACTERS
        ]
        return await self.items.update(current_evidence(), [*mirrored_reports(state), *results])


def _report_of(text: str) -> tuple[str, bool]:
    """Return a report, and whether it is one: it may say anything that does not begin with `STEP FAILED:`."""
    return outcome_of(text) if not text or _FAILED.match(text) else (text, True)


def outcome_of(text: str) -> tuple[str, bool]:
    """Return a worker's answer and whether its step is done.

    An empty answer, one that begins with `STEP FAILED:` and one whose last line asks for something with
    `NEEDS:` are not.
    """
    if not text:
        return "the member gave no answer", False
    if found := _FAILED.match(text):
        return text[found.end() :] or "the member gave no reason", False
    return text, NEEDS.match(text.rstrip().rpartition("\n")[2]) is None


def reason_of(failure: str) -> str:
    """Return why a step failed in one line: the first line of what the worker said, and what it needs."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    if not lines:
        return ""
    line = " ".join(dict.fromkeys((lines[0], lines[-1]))) if NEEDS.match(lines[-1]) else lines[0]
    return line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 1]}…"


def _unplanned(name: Worker, state: State) -> TrackedStep:
    request = request_of(state)
    return TrackedStep(
        id=0, **PlannedStep(agent_name=name, title=request[:80], description=request).model_dump()
    )


def _task(
    state: State, progress: PlanProgress, step: TrackedStep, role: Role, team: Sequence[str], index: ItemIndex
) -> Task:
    history = history_of(state)
    request = len(history.requests) + 1

    def stored(path: str) -> str:
        return path if path in index.stored else ""

    results = [
        StepResult(
            one.agent_name,
            one.title,
            _shown(one),
            one.status == "completed",
            step=one.id,
            path=stored(result_path(request, one.id, one.agent_name)),
            reason="" if one.status == "completed" else explain_failure(one.reason or one.result),
        )
        for one in progress.given_to(step)
        if one.status not in TO_BEGIN
    ]
    report = stored(report_path(len(reports_of(state))))
    shown = {report, *(one.path for one in results)}
    is_report = step.agent_name == "reporter"
    return Task(
        request=request_of(state),
        title=step.title,
        description=step.description,
        note=_note(step),
        results=results,
        team=team,
        locale=private_of(state).get("locale") or "",
        caller=caller_of(state) if is_report else "",
        thread_texts=_said(state) if is_report else (),
        files=(private_of(state).get("files") or ()) if role.has_files else (),
        is_answer=is_answer(progress, step),
        history=replace(history, report_path=report),
        plan=[
            PlanStepSummary(one.id, one.agent_name, one.title, one.status, one.id == step.id)
            for one in progress.steps
            if not one.repeats
        ],
        items=[one for one in index.items if one.path not in shown and _can_use(role, one)],
        older_items=index.older if role.name != "reporter" else 0,
    )


def _can_use(role: Role, item: Item) -> bool:
    """Return whether an item is listed for a role: it can open it, or show it in a report."""
    if role.name == "reporter":
        return item.kind == "figure"
    if role.has_files:
        return item.kind != "upload"  # `format_files` names those
    return is_mirror(item.path)


def _said(state: State) -> list[str]:
    return [one.text for one in state["messages"] if is_users(one) or one.name == "reporter"]


def _note(step: TrackedStep) -> str | None:
    if not step.result:
        return step.note
    return "\n".join(filter(None, (step.note, f"An earlier try failed: {step.result}")))


def _shown(step: TrackedStep) -> str:
    if step.status == "completed":
        return step.result
    reason = step.result or step.reason or "it was given up"
    return f"MISSING: the step {step.title!r} was not completed: {reason}"
