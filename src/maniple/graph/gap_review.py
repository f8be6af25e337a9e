"""Rounds of further steps on open questions, before the report of a deep run (`depth: deep`).

When all steps of the plan are over, the lead is asked what is still open, and may add steps. What it answered
is stored in the plan (`GapRounds`), so that a restart continues between two rounds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from maniple.agents import find_current_roles, format_briefs
from maniple.agents.briefing import format_notes, format_plan, format_removed
from maniple.agents.finding_briefing import format_statements
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.profiles import profile_of
from maniple.agents.task import find_gaps
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence import Evidence, Source, UnreadPage
from maniple.evidence.duplicates import DuplicateSource, find_duplicates
from maniple.graph.adaptation import answers_of
from maniple.graph.earlier_turns import notes_of_run
from maniple.graph.lead import Lead, list_steps
from maniple.graph.plan import PlannedStep, PlanProgress, ResearchGap
from maniple.graph.state import State, request_of
from maniple.graph.written_plan import REPORTER, object_schema
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.scope.run_scope import current_meter, run_scope
from maniple.text import shorten
from maniple.types import GAP_REVIEW, Worker

MAX_ROUNDS = 2
MAX_NEW_STEPS = 3
"""Steps that a round can add."""
MAX_QUESTIONS = 8
ROUND_SHARE = 0.6
"""The share of any limit from which no round begins: the rest is for the steps at work and the report."""
FINDINGS_SHARE = 0.15
RESULTS_SHARE = 0.1
"""The shares of the prompt's room for the findings and for the results of the steps."""
MAX_PART_TOKENS = 6_000
"""The most tokens for each of them, since a round is asked more than once."""
SHOWN_SOURCES = 40
SHOWN_UNREAD = 15
_TITLE_CHARACTERS = 120
TOO_SMALL = "The lead's model is too small to judge what is open, so that no round follows the plan."
NO_RESEARCH = "Nothing was read for this request, so that there is nothing to research further."
ROUNDS_ARE_OVER = f"{MAX_ROUNDS} rounds were made, which is the limit."
NOTHING_NEW = "The last round brought no new source."
NO_GAP = "Nothing is open."
NO_STEP = "No step was added for what is open."
NO_ANSWER = "The lead gave no usable answer about what is open."
USER_FINISHES = "The user wants the report now."
_NO_LETTER = re.compile(r"[\W_]+")


class NewResearchStep(BaseModel):
    """A step that the lead adds."""

    agent_name: str
    title: str = Field(min_length=1)
    description: str = Field(min_length=1)
    needs: list[int] | None = None


class GapAnswer(BaseModel):
    """The lead's answer."""

    gaps: list[ResearchGap] = Field(default_factory=list[ResearchGap])
    steps: list[NewResearchStep] = Field(default_factory=list[NewResearchStep])


@dataclass(frozen=True, slots=True)
class _Readings:
    """What the run has read so far."""

    sources: Sequence[Source]
    unread: Sequence[UnreadPage]
    statements: str
    duplicates: Mapping[int, DuplicateSource]
    """The sources that repeat another one, by number."""

    @classmethod
    async def of(cls, evidence: Evidence, tokens: int) -> "_Readings":
        """Return the readings with the findings in at most `tokens`."""
        statements = format_statements(await evidence.findings(), tokens)
        duplicates = {one.number: one for one in await find_duplicates(evidence)}
        return cls(await evidence.sources(), await evidence.unread(), statements, duplicates)

    @property
    def own(self) -> list[Source]:
        """The sources that this run has read."""
        return [one for one in self.sources if not one.inherited]

    def count(self) -> int:
        """Return a number that grows with each new source, and each hit of a search whose page is read.

        A source that repeats another one is not new.
        """
        new = [one for one in self.own if one.number not in self.duplicates]
        return sum(2 if one.kind == "page" else 1 for one in new)


def is_due(progress: PlanProgress) -> bool:
    """Return whether all steps are over, the report has not begun, and the lead may add steps."""
    step = progress.current()
    return (
        step is not None
        and step.agent_name == REPORTER
        and step.status == "not_started"
        and not step.by_code
        and not progress.gap_rounds.is_over
        and any(one.status == "completed" for one in progress.steps)
    )


@dataclass(frozen=True, slots=True)
class GapReviewer:
    """Asks the lead what is open before the report, and adds its steps to the plan."""

    lead: Lead

    async def review(self, state: State, progress: PlanProgress, members: Sequence[Worker]) -> PlanProgress:
        """Return the plan with the steps of a new round, or with the rounds over; send its event.

        Without a usable answer, or room in the budget, the rounds are over.
        """
        tokens = min(int(FINDINGS_SHARE * room_of(self.lead.model)), MAX_PART_TOKENS)
        read = await _Readings.of(run_scope().evidence, tokens)
        if notice := self._find_end(progress, read):
            return await _close(progress, notice)
        try:
            async with current_meter().enforce_time_limit():
                answer = await self._ask(state, progress, members, read)
        except BudgetExhausted as error:
            return await _close(progress, str(error))
        except (ShapeError, ModelError):
            return await _close(progress, NO_ANSWER)
        return await _apply(progress, answer, read.count())

    def _find_end(self, progress: PlanProgress, read: _Readings) -> str:
        """Return why no round begins; "" if one may."""
        rounds = progress.gap_rounds
        if not profile_of(self.lead.model).judges_failures:
            return TOO_SMALL
        if _is_to_finish():
            return USER_FINISHES
        if not read.own and not read.unread:
            return NO_RESEARCH
        if rounds.rounds >= MAX_ROUNDS:
            return ROUNDS_ARE_OVER
        if rounds.rounds and read.count() <= rounds.readings:
            return NOTHING_NEW
        used = current_meter().describe_near_limit(ROUND_SHARE)
        return f"The rest of the budget is kept for the report: {used}." if used else ""

    async def _ask(
        self, state: State, progress: PlanProgress, members: Sequence[Worker], read: _Readings
    ) -> GapAnswer:
        lead = self.lead
        names = [name for name in members if name != REPORTER]
        briefs = format_briefs(names, await find_current_roles(lead.roles, lead.search))
        prompt = render("gaps", members=briefs, team=names, max_steps=MAX_NEW_STEPS, locale="")
        messages = [SystemMessage(prompt), *_describe(state, progress, read, room_of(lead.model))]
        shape = Shape("GapAnswer", _schema(names), GapAnswer)
        answer, _ = await send_within_window(
            lead.model,
            messages,
            lambda shown: ask_for(lead.model, shown, shape, check=lambda one: _check(one, names)),
        )
        return answer


def describe_open(progress: PlanProgress) -> list[str]:
    """Return for the reporter what was open when the lead looked last, one line each."""
    lines: list[str] = []
    for one in progress.gap_rounds.questions:
        why = f" ({one.why})" if one.why else ""
        if one.open:
            lines.append(f"Still open, and no step can answer it; the report says so: {one.question}{why}")
        else:
            lines.append(f"Still open before the last steps; say what of it they leave: {one.question}{why}")
    return lines


def _is_to_finish() -> bool:
    decided = run_scope().inbox.decided
    return any(one.reply is not None and one.reply.disposition == "finishing" for one in decided)


def _describe(state: State, progress: PlanProgress, read: _Readings, room: int) -> list[BaseMessage]:
    """Return the messages with the request, the plan, and what was found and not found."""
    left = current_meter().describe_left()
    results = answers_of(progress, min(int(RESULTS_SHARE * room), MAX_PART_TOKENS))
    plan = "\n".join(filter(None, (format_plan(list_steps(progress)), format_removed(progress.removed))))
    asked = progress.gap_rounds.questions
    texts = [
        f"Request: {request_of(state)}",
        format_notes(notes_of_run(state, progress)),
        plan,
        *(str(one.content) for one in results),
        _list_sources(read),
        read.statements,
        _list_missing(progress, read.unread),
        "\n".join(["What was open before the last round:", *(f"- {one.question}" for one in asked)])
        if asked
        else "",
        f"The run may still use {left}, the report included." if left else "",
    ]
    return [HumanMessage(text) for text in texts if text]


def _list_sources(read: _Readings) -> str:
    """Return the newest sources, one a line, with what they repeat; "" for none."""
    if not (sources := read.sources):
        return ""
    shown = sources[-SHOWN_SOURCES:]
    lines = [
        f"[{one.number}] {shorten(' '.join(one.title.split()), _TITLE_CHARACTERS)}: {one.url}"
        f"{'' if one.kind == 'page' else ' (only found, not read)'}"
        f"{f' ({same.describe()})' if (same := read.duplicates.get(one.number)) else ''}"
        for one in shown
    ]
    older = f"{len(sources) - len(shown)} older sources are not listed." if len(sources) > len(shown) else ""
    return "\n".join(filter(None, ("The sources:", fence_untrusted("\n".join(lines)), older)))


def _list_missing(progress: PlanProgress, unread: Sequence[UnreadPage]) -> str:
    """Return what failed, and which pages could not be read; "" for nothing."""
    lines = [f"- {title}: {why}" for title, why in find_gaps(progress.to_state())]
    lines += [f"- {one.url}: {one.reason}" for one in unread[-SHOWN_UNREAD:]]
    if len(unread) > SHOWN_UNREAD:
        lines.append(f"- and {len(unread) - SHOWN_UNREAD} more pages")
    if not lines:
        return ""
    return "\n".join(["What failed or could not be read:", fence_untrusted("\n".join(lines))])


def _schema(names: Sequence[Worker]) -> dict[str, Any]:
    text = {"type": "string"}
    numbers = {"type": "array", "items": {"type": "integer"}}
    gap = object_schema(question=text, why=text, open={"type": "boolean"})
    step = object_schema(
        agent_name={"type": "string", "enum": list(names)},
        title=text,
        description=text,
        needs={"anyOf": [numbers, {"type": "null"}]},
    )
    return object_schema(
        gaps={"type": "array", "items": gap, "maxItems": MAX_QUESTIONS},
        steps={"type": "array", "items": step, "maxItems": MAX_NEW_STEPS},
    )


def _check(answer: GapAnswer, names: Sequence[Worker]) -> GapAnswer:
    if unknown := sorted({one.agent_name for one in answer.steps} - set(names)):
        raise ValueError(f"agent_name {', '.join(unknown)} is not on the team; use only {', '.join(names)}")
    return answer


async def _apply(progress: PlanProgress, answer: GapAnswer, readings: int) -> PlanProgress:
    """Return the plan after the lead's answer; send its event."""
    questions = answer.gaps[:MAX_QUESTIONS]
    if not questions:
        refused = [(one.title, "no gap was named for it") for one in answer.steps]
        return await _close(progress.with_gap_rounds(questions=()), NO_GAP, refused)
    if not answer.steps:
        # Where the lead plans nothing for its gaps, it says that no step can answer them.
        questions = [one.model_copy(update={"open": True}) for one in questions]
    steps, refused = _choose_steps(progress, answer.steps)
    progress = progress.with_gap_rounds(questions=tuple(questions))
    if not steps:
        return await _close(progress, NO_STEP, refused)
    number = progress.gap_rounds.rounds + 1
    progress = progress.extended(steps).with_gap_rounds(rounds=number, readings=readings)
    await _report(progress, [one.title for one in steps], refused, None)
    return progress


def _choose_steps(
    progress: PlanProgress, steps: Sequence[NewResearchStep]
) -> tuple[list[PlannedStep], list[tuple[str, str]]]:
    """Return the steps to add, and title and reason of the others."""
    known = {_letters(text) for one in progress.steps for text in (one.title, one.description)}
    known |= {_letters(title) for title in progress.dropped}
    ids = {one.id for one in progress.steps if one.agent_name != REPORTER}
    chosen: list[PlannedStep] = []
    refused: list[tuple[str, str]] = []
    for one in steps:
        texts = {_letters(one.title), _letters(one.description)}
        if len(chosen) == MAX_NEW_STEPS:
            refused.append((one.title, f"a round has at most {MAX_NEW_STEPS} steps"))
        elif texts & known:
            refused.append((one.title, "it repeats a step of the plan"))
        else:
            known |= texts
            chosen.append(_planned(one, ids))
    return chosen, refused


def _planned(step: NewResearchStep, ids: set[int]) -> PlannedStep:
    """Return the step; it needs all results if it names a step that does not exist."""
    needs = None if step.needs is None or not ids.issuperset(step.needs) else sorted({*step.needs})
    return PlannedStep(
        agent_name=step.agent_name, title=step.title, description=step.description, needs=needs
    )


def _letters(text: str) -> str:
    return _NO_LETTER.sub(" ", text).strip().casefold()


async def _close(
    progress: PlanProgress, notice: str, refused: Sequence[tuple[str, str]] = ()
) -> PlanProgress:
    """Return the plan without further rounds; send an event with the reason."""
    progress = progress.with_gap_rounds(is_over=True)
    await _report(progress, [], refused, notice)
    return progress


async def _report(
    progress: PlanProgress, steps: Sequence[str], refused: Sequence[tuple[str, str]], notice: str | None
) -> None:
    rounds = progress.gap_rounds
    event: Mapping[str, Any] = {
        "round": rounds.rounds,
        "questions": [
            {"question": one.question, "why": one.why, "open": bool(one.open)} for one in rounds.questions
        ],
        "steps": list(steps),
        "refused": [{"title": title, "reason": reason} for title, reason in refused],
        "notice": notice,
    }
    await adispatch_custom_event(GAP_REVIEW, event)
