"""Long reports: an outline, sections that are written in parallel, and a closing section that joins them."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from maniple.agents.briefing import (
    REPORT_SHARE,
    RESULTS_SHARE,
    format_history,
    format_items,
    format_notes,
    format_results,
)
from maniple.agents.finding_briefing import FINDINGS_SHARE, format_findings
from maniple.agents.gap_statements import state_gap
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.report_draft import Draft, FormDraft
from maniple.agents.report_outline import (
    LEAST_SECTIONS,
    MOST_SECTIONS,
    OutlineSection,
    ReportOutline,
    may_be_outline,
    read_outline,
)
from maniple.agents.section_edits import recognize_edits
from maniple.agents.step_outcome import parse_answer
from maniple.agents.task import StepResult, Task
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence import NotedFinding, Source
from maniple.evidence.source_list import format_sources
from maniple.llms import hide_call
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.text import shorten, without_thoughts
from maniple.types import SECTION_SOURCE

LEAST_SOURCES = 3
"""The sources from which an outline is offered for a request that does not set the style `long`."""
TRIES = 2
"""Of a section."""
CLOSING_WORDS = 250
_ASK_OUTLINE = (
    "[From maniple, not from the user] That is no outline: {problem}. Answer with the outline alone."
)
_ASK_WHOLE = "[From maniple, not from the user] That is no outline. Write the whole report now, without one."
_CONTINUE = (
    "[From maniple, not from the user] Your text broke off. Go on directly behind its last word, and repeat "
    "nothing of it."
)
_MODEL_FAILED = "the model failed ({code})"
_MISSING_SECTION = "this section could not be written: {reason}"
_MISSING_CLOSING = "the closing section could not be written: {reason}"
_OWN_HEADING = re.compile(r"(#{1,6})[ \t]+([^\n]*)(?:\n|\Z)")
_REASON_CHARACTERS = 200
_log = logging.getLogger(__name__)


class SectionNotWritten(Exception):
    """A section has no text, or not all of it, after all tries; the message is the reason."""


def offer_outline(style: str, sources: int) -> str:
    """Return the prompt that asks for an outline, or offers it; "" where there is too little to report."""
    if style == "long" or (style == "auto" and sources >= LEAST_SOURCES):
        return render("long_report", style=style, least=LEAST_SECTIONS, most=MOST_SECTIONS)
    return ""


@dataclass(frozen=True, slots=True)
class ReportMaterial:
    """What the sections of a report are written from.

    `system` is the reporter's own prompt. `find_cited` returns the numbers of the sources that a text cites.
    """

    task: Task
    system: Sequence[BaseMessage]
    sources: Mapping[int, Source]
    findings: Sequence[NotedFinding]
    find_cited: Callable[[str], Awaitable[set[int]]]

    async def build_prompt(
        self, outline: ReportOutline, section: OutlineSection, room: int
    ) -> list[BaseMessage]:
        """Return the prompt of a section: the request, the outline, and what the section names.

        A section that names nothing sees everything.
        """
        task, number = self.task, outline.sections.index(section) + 1
        sources = [self.sources[one] for one in section.sources if one in self.sources]
        if not section.sources and not section.steps:
            sources = [*self.sources.values()]
        findings = format_findings(self.findings, sources, int(FINDINGS_SHARE * room))
        listed = f"The sources, to be cited by number:\n{fence_untrusted(format_sources(sources))}"
        texts = [
            f"Request: {task.request}",
            format_history(task.history, int(REPORT_SHARE * room)),
            listed if sources else "",
            findings,
            *format_results(await self._choose_results(section), int(RESULTS_SHARE * room)),
            format_items(task.items),
            format_notes(task.notes),
            f"The whole report is this step:\n{task.instruction()}",
            render(
                "report_section",
                outline=outline.describe(),
                number=number,
                heading=section.heading,
                answers=section.answers,
            ),
        ]
        return [*self.system, *(HumanMessage(text) for text in texts if text)]

    async def _choose_results(self, section: OutlineSection) -> list[StepResult]:
        """Return the results that a section names by step, or by a source that they cite."""
        results, wanted = [*self.task.named_items, *self.task.results], set(section.sources)
        if not section.sources and not section.steps:
            return results
        return [
            one
            for one in results
            if one.is_item or one.step in section.steps or wanted & await self.find_cited(one.text)
        ]


@dataclass(slots=True)
class _SectionText:
    """A section while it is written: its pieces, then None or the reason why it is not complete."""

    section: OutlineSection
    pieces: asyncio.Queue[str | Exception | None] = field(
        default_factory=asyncio.Queue[str | Exception | None]
    )

    async def read(self) -> AsyncIterator[str]:
        """Yield the pieces of the text. Raises what ended it."""
        while (piece := await self.pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece


@dataclass(frozen=True, slots=True)
class SectionWriters:
    """Write the sections of an outline with `model`, at most `parallel` at the same time.

    The calls count towards the budget; their text comes with the report, so they are hidden from streams.
    """

    model: BaseChatModel
    material: ReportMaterial
    parallel: int

    async def write(
        self, outline: ReportOutline
    ) -> AsyncGenerator[tuple[OutlineSection, AsyncIterator[str]]]:
        """Yield each section in order with its text, which can be read while the next ones are written."""
        places = asyncio.Semaphore(self.parallel)
        texts = [_SectionText(one) for one in outline.sections]
        tasks = [asyncio.create_task(self._write(outline, one, places)) for one in texts]
        try:
            for one in texts:
                yield one.section, one.read()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, outline: ReportOutline, text: _SectionText, places: asyncio.Semaphore) -> None:
        async with places:
            try:
                prompt = await self.material.build_prompt(outline, text.section, room_of(self.model))
                await self._try(prompt, text)
            except Exception as error:  # noqa: BLE001 - it is raised where the section is read
                text.pieces.put_nowait(error)
            else:
                text.pieces.put_nowait(None)

    async def _try(self, prompt: Sequence[BaseMessage], text: _SectionText) -> None:
        """Write a section; one that fails, or breaks off, is continued or written again once."""
        written, reason = list[str](), ""
        for _ in range(TRIES):
            begun = "".join(written)
            again = [AIMessage(begun), HumanMessage(_CONTINUE)] if begun.strip() else []
            try:
                is_cut = await self._send([*prompt, *again], text, written)
            except ModelError as error:
                reason = _MODEL_FAILED.format(code=error.code)
                continue
            if not is_cut and "".join(written).strip():
                return
            reason = "the model's answer was cut off" if is_cut else "the model gave no text"
        raise SectionNotWritten(reason)

    async def _send(self, prompt: list[BaseMessage], text: _SectionText, written: list[str]) -> bool:
        """Pass on the answer to a prompt; return whether it was cut at the limit of its length."""

        async def stream(messages: list[BaseMessage]) -> bool:
            is_cut = False
            async for chunk in self.model.astream(messages, config=hide_call(SECTION_SOURCE)):
                is_cut = is_cut or chunk.response_metadata.get("finish_reason") == "length"
                if chunk.text:
                    written.append(chunk.text)
                    text.pieces.put_nowait(chunk.text)
            return is_cut

        return await send_within_window(self.model, prompt, stream)

    async def close(self, report: str) -> str:
        """Return the closing section of a report. Raises `ModelError` or `BudgetExhausted`."""
        shown = render("report_closing", report=report, words=CLOSING_WORDS)
        request = HumanMessage(f"Request: {self.material.task.request}")
        prompt = [*self.material.system, request, HumanMessage(shown)]

        async def send(messages: list[BaseMessage]) -> AIMessage:
            return await self.model.ainvoke(messages, config=hide_call(SECTION_SOURCE))

        return without_thoughts((await send_within_window(self.model, prompt, send)).text).strip()


@dataclass(frozen=True, slots=True)
class OutlineReader:
    """Reads the outline in an answer to `messages`, which is asked for once more if it has none."""

    model: BaseChatModel
    messages: Sequence[BaseMessage]

    async def read(self, answer: str) -> ReportOutline | str:
        """Return the outline, or a whole report: where it has no outline twice, as JSON is no report."""
        try:
            return await read_outline(answer)
        except ValueError as problem:
            asked = [AIMessage(answer), HumanMessage(_ASK_OUTLINE.format(problem=problem))]
        second = await self._send(asked)
        try:
            return await read_outline(second)
        except ValueError as problem:
            _log.warning("The reporter gave no outline of a long report: %s", problem)
        if not may_be_outline(answer):
            return answer
        return await self._send([*asked, AIMessage(second), HumanMessage(_ASK_WHOLE)])

    async def _send(self, added: Sequence[BaseMessage]) -> str:
        async def send(messages: list[BaseMessage]) -> AIMessage:
            return await self.model.ainvoke(messages, config=hide_call(SECTION_SOURCE))

        return without_thoughts((await send_within_window(self.model, [*self.messages, *added], send)).text)


class LongReportDraft(FormDraft):
    """A draft whose text may be the outline of a long report, which is written from it section by section.

    `draft` checks the sections one after the other. A section that could not be written is named as a gap.
    With `is_required` every answer is read as an outline.
    """

    def __init__(
        self, draft: Draft, reader: OutlineReader, writers: SectionWriters, *, is_required: bool
    ) -> None:
        super().__init__(draft, may_be_outline, has_form=True if is_required else None)
        self._reader = reader
        self._writers = writers
        self._shown: list[str] = []

    async def end(self) -> str:
        """Return the rest of the report, with all its sections."""
        return "".join([one async for one in self.end_parts()])

    async def end_parts(self, *, has_calls: bool = False) -> AsyncGenerator[str]:
        """Yield the rest of the report while it is written; what comes with tool calls is no outline.

        Raises the error of the first section if none can be written.
        """
        answer = "".join(self._begun)
        if has_calls or not (self._has_form and _is_answered(answer)):
            yield await self._pass_on() + await self._draft.end()
            return
        outline = await self._reader.read(answer)
        if isinstance(outline, str):
            yield await self._draft.feed(outline) + await self._draft.end()
            return
        async for part in self._write(outline):
            self._shown.append(part)
            yield part
        yield await self._draft.feed(await self._close(outline)) + await self._draft.end()

    async def _write(self, outline: ReportOutline) -> AsyncIterator[str]:
        """Yield the title, the introduction and the sections, each of them checked."""
        head = f"# {outline.title}\n\n{outline.introduction.strip()}"
        yield await self._draft.feed(f"{head.rstrip()}\n\n") + await self._draft.end_section()
        failures = list[Exception]()
        async with aclosing(self._writers.write(outline)) as sections:
            async for section, pieces in sections:
                yield await self._draft.feed(f"## {section.heading}\n\n")
                breaks = ""
                try:
                    async for piece in _without_own_heading(section.heading, pieces):
                        breaks = "\n\n" if piece.strip() else breaks
                        yield await self._draft.feed(piece)
                except (ModelError, BudgetExhausted, SectionNotWritten) as error:
                    failures.append(error)
                    yield await self._draft.feed(breaks + self._name_gap(section.heading, error))
                yield await self._draft.feed("\n\n") + await self._draft.end_section()
        if len(failures) == len(outline.sections):
            raise _as_model_error(failures[0])

    async def _close(self, outline: ReportOutline) -> str:
        """Return the closing section, or the line that says why there is none."""
        try:
            closing = await self._writers.close("".join(self._shown))
        except (ModelError, BudgetExhausted) as error:
            return f"{self._name_gap(outline.title, error, _MISSING_CLOSING)}\n"
        return f"{closing}\n" if closing else ""

    def _name_gap(self, title: str, error: Exception, why: str = _MISSING_SECTION) -> str:
        # The message of a `ModelError` names the endpoint, which is no matter of the report's readers.
        reason = _MODEL_FAILED.format(code=error.code) if isinstance(error, ModelError) else str(error)
        lacks = why.format(reason=shorten(reason, _REASON_CHARACTERS))
        gap = StepResult("reporter", title, "", done=False, reason=lacks)
        return state_gap(gap, "".join(self._shown), self._writers.material.task.locale)


def _is_answered(answer: str) -> bool:
    """Return whether an answer is meant as an outline: not empty, no failure, edits or tool call in text."""
    if not answer.strip() or recognize_edits(answer, is_complete=True):
        return False
    if parse_answer(answer, is_report=True).outcome.status == "failed":
        return False
    return not may_be_outline(answer) or '"sections"' in answer


def _as_model_error(error: Exception) -> Exception:
    """Return the error of a report of which no section could be written."""
    return (
        ModelError(str(error), code="model_bad_response") if isinstance(error, SectionNotWritten) else error
    )


async def _without_own_heading(heading: str, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the text of a section without the heading that the model wrote although code does."""
    begun, is_begun = "", False
    async for piece in pieces:
        if is_begun:
            yield piece
            continue
        begun = (begun + piece).lstrip()
        if not begun.startswith("#") or "\n" in begun:
            is_begun = bool(begun)
            yield _drop_heading(heading, begun)
    if not is_begun:
        yield _drop_heading(heading, begun)


def _drop_heading(heading: str, text: str) -> str:
    found = _OWN_HEADING.match(text)
    if found is None:
        return text
    is_section = len(found[1]) <= 2 or found[2].strip(" #*").casefold() == heading.casefold()
    return text[found.end() :].lstrip() if is_section else text
