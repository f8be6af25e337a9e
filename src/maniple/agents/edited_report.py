"""A follow-up that edits the thread's last report by section instead of writing it again."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from maniple.agents.gap_statements import state_gap
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.report_draft import Draft, FormDraft
from maniple.agents.report_repair import SHARE_OF_TIME
from maniple.agents.section_edits import (
    EditedReport,
    ReportPart,
    apply_edits,
    find_sections,
    is_editable,
    list_headings,
    parse_edits,
    recognize_edits,
)
from maniple.agents.task import StepResult, Task
from maniple.errors import BudgetExhausted, ModelError
from maniple.llms import hide_call
from maniple.prompts import render
from maniple.scope.run_scope import run_scope
from maniple.text import without_thoughts
from maniple.types import REPAIR_SOURCE

EDIT_SECONDS = 120.0
"""The time for edits that are asked for again."""
REWRITE_SECONDS = 600.0
"""The time for a whole report, where its edits do not fit."""
MAX_PROBLEMS = 10
"""Edits that do not fit which are named to the model, and in the report."""
_ASK_AGAIN = (
    "[From maniple, not from the user] These changes do not fit the answer:\n{problems}\n"
    "Give all blocks again, corrected, and nothing else."
)
_ASK_WHOLE = (
    "[From maniple, not from the user] The changes still do not fit:\n{problems}\n"
    "Write the whole changed answer now, without blocks."
)
_log = logging.getLogger(__name__)


async def describe_sections(report: str) -> str:
    """Return the prompt that offers to edit `report` by section; "" where it is too short for that."""
    sections = await asyncio.to_thread(find_sections, report)
    return render("section_edits", headings=list_headings(sections)) if is_editable(report, sections) else ""


@dataclass(frozen=True, slots=True)
class ReportEditor:
    """Applies a model's edits to the last report of `task`.

    Edits that do not fit are asked for once more, then the whole report is. Both calls count towards the
    budget and are not streamed. `messages` is the prompt that was answered by edits.
    """

    model: BaseChatModel
    messages: Sequence[BaseMessage]
    task: Task

    async def edit(self, answer: str) -> Sequence[ReportPart]:
        """Return the report after the edits of `answer`.

        If no call brings edits that all fit or a whole report, those that fit are applied and the others are
        named at the end. Raises `ModelError` or `BudgetExhausted` if none fits and there is no further call.
        """
        first = await self._apply(answer)
        if not first.problems:
            return first.parts
        best = first
        try:
            again = [AIMessage(answer), _ask(_ASK_AGAIN, first)]
            second_answer = await self._send(again, EDIT_SECONDS)
            second = await self._apply(second_answer)
            if not second.problems:
                return second.parts
            best = second if second.is_changed and len(second.problems) < len(first.problems) else first
            again += [AIMessage(second_answer), _ask(_ASK_WHOLE, second)]
            whole = await self._send(again, REWRITE_SECONDS)
            if whole.strip() and not recognize_edits(whole, is_complete=True):
                return [ReportPart(whole, is_unchanged=False)]
        except (ModelError, BudgetExhausted):
            if not best.is_changed:
                raise
        except TimeoutError:
            _log.warning("The time for the edits of a report is over; those that fit are applied.")
        return [*best.parts, self._name_unapplied(best)]

    async def _apply(self, answer: str) -> EditedReport:
        return await asyncio.to_thread(_apply, self.task.history.report, answer)

    def _name_unapplied(self, edited: EditedReport) -> ReportPart:
        lacks = " ".join(edited.problems[:MAX_PROBLEMS])
        report = self.task.history.report
        result = StepResult("reporter", self.task.title, "", lacks=f"Changes that do not fit: {lacks}")
        return ReportPart(f"\n\n{state_gap(result, report, self.task.locale)}\n", is_unchanged=False)

    async def _send(self, added: Sequence[BaseMessage], seconds: float) -> str:
        """Return the answer to the prompt and `added`. Raises `TimeoutError` if there is no time for it."""
        meter = run_scope().meter
        left = SHARE_OF_TIME * meter.seconds_left if meter else seconds
        if left <= 0:
            raise TimeoutError
        async with asyncio.timeout(min(seconds, left)):
            answer = await send_within_window(self.model, [*self.messages, *added], self._invoke)
        return without_thoughts(answer.text)

    async def _invoke(self, messages: Sequence[BaseMessage]) -> AIMessage:
        return await self.model.ainvoke(list(messages), config=hide_call(REPAIR_SOURCE))


class EditingDraft(FormDraft):
    """A draft whose text may be edits of the last report instead of a whole one; `draft` checks the result.

    Edits are applied when all of them are there, as a later one may change an earlier section. Then the whole
    report is released, its unchanged parts as they were.
    """

    def __init__(self, draft: Draft, editor: ReportEditor) -> None:
        super().__init__(draft, recognize_edits)
        self._editor = editor

    async def end_section(self) -> str:
        """Return the rest of a section of a whole report."""
        before = await self._pass_on() if self._begun else ""
        self._has_form = False
        return before + await self._draft.end_section()

    async def end(self) -> str:
        """Return the rest of the report. Edits that do not fit take up to two model calls."""
        answer = "".join(self._begun)
        if self._has_form is None:
            self._has_form = recognize_edits(answer, is_complete=True)
        if not self._has_form:
            return await self._pass_on() + await self._draft.end()
        shown = list[str]()
        for part in await self._editor.edit(answer):
            take = self._draft.feed_unchanged if part.is_unchanged else self._draft.feed
            shown.append(await take(part.text))
        return "".join([*shown, await self._draft.end()])


def _apply(report: str, answer: str) -> EditedReport:
    return apply_edits(report, parse_edits(answer))


def _ask(prompt: str, edited: EditedReport) -> HumanMessage:
    return HumanMessage(
        prompt.format(problems="\n".join(f"- {one}" for one in edited.problems[:MAX_PROBLEMS]))
    )
