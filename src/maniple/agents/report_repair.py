"""The repair of passages of a report that do not agree with their sources."""

import asyncio
import re
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.claims.report_check import ReportCheck
from maniple.errors import BudgetExhausted, ModelError
from maniple.evidence.check import UnverifiedCitation
from maniple.evidence.citation import Citation
from maniple.evidence.excerpt import find_excerpt
from maniple.evidence.source_list import format_sources
from maniple.llms import hide_call
from maniple.prompts import render
from maniple.reading.markdown import MarkdownScanner
from maniple.scope.run_scope import run_scope
from maniple.text import shorten, without_thoughts
from maniple.types import REPAIR_SOURCE

REPAIR_SECONDS = 120.0
MAX_PASSAGES = 20
MAX_OBJECTIONS = 20
"""The limit of findings that are reported for one passage."""
MAX_SOURCES = 40
CLAIM_CHARACTERS = 400
"""Characters of a wrong claim that the repair request repeats."""
SHARE_OF_TIME = 0.8
"""The share of the run's remaining time for repairs, because the report must be delivered within that time.
"""
_PASSAGE = re.compile(r'<passage number="(\d{1,4})">')
LEAST_SHARE = 0.5
"""The smallest length of a repair, as a share of the characters without findings."""
_KINDS = {
    "table": re.compile(r"[ \t]*\|"),
    "list": re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"),
    "heading": re.compile(r" {0,3}#{1,6}[ \t]"),
}


@dataclass(frozen=True, slots=True)
class ReportPassage:
    """A block of the report, and the findings against it."""

    text: str
    findings: Sequence[UnverifiedCitation] = ()
    is_settled: bool = False
    """Whether it stays as it is, as a block that an edit of a report does not touch."""


RepairPassages = Callable[[Sequence[ReportPassage]], Awaitable[Mapping[int, str]]]
"""Returns new texts for passages by their indexes; passages that cannot be repaired are left out."""


async def is_repair(
    passage: str, findings: Iterable[UnverifiedCitation], reply: str, check: ReportCheck
) -> bool:
    """Return whether `reply` preserves the parts of `passage` that have no findings.

    It must not leave a code block open, change the kind of a block (table, list, heading, paragraph), lose a
    citation without findings, cite a source for what does not stand there, or be much shorter than the parts
    without findings.
    """
    objected = [finding.citation for finding in findings]
    doubted = {number for one in objected if one.kind in ("quotation", "claim") for number in one.numbers}
    unobjected = len(passage.strip()) - sum(one.end - one.start for one in _outermost(objected))
    if len(reply) < LEAST_SHARE * unobjected or _block_kinds(reply) != _block_kinds(passage):
        return False
    if not await check.cited(passage) - doubted <= await check.cited(reply):
        return False
    return await check.supports_new_citations(passage, reply)


def _outermost(citations: Iterable[Citation]) -> Iterator[Citation]:
    """Yield the citations that are not inside of another one: a claim has its citations in it."""
    end = 0
    for one in sorted(citations, key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            yield one
            end = one.end


def _block_kinds(text: str) -> set[str]:
    """Return the kinds of blocks in `text` beside paragraphs; an open code block is a kind of its own."""
    fences = MarkdownScanner()
    prose: list[str] = []
    for line in text.splitlines():
        if not fences.take(line).is_code:
            prose.append(line)
    kinds = {kind for kind, begin in _KINDS.items() if any(map(begin.match, prose))}
    return kinds | {"open code"} if fences.mark else kinds


@dataclass(frozen=True, slots=True)
class ReportRepair:
    """Asks `model` for new passages in one call, which counts towards the budget but is not streamed to
    clients.

    If the budget or the time is used up, or the model fails, passages stay unchanged.
    """

    model: BaseChatModel
    check: ReportCheck

    async def __call__(self, passages: Sequence[ReportPassage]) -> Mapping[int, str]:
        meter = run_scope().meter
        left = meter.seconds_left if meter else REPAIR_SECONDS
        if left <= 0:
            return {}
        try:
            async with asyncio.timeout(min(REPAIR_SECONDS, SHARE_OF_TIME * left)):
                request = await self._build_request(passages[:MAX_PASSAGES])
                prompt = [SystemMessage(render("repair")), HumanMessage(request)]
                answer = await send_within_window(self.model, prompt, self._send)
        except (ModelError, BudgetExhausted, TimeoutError):
            return {}
        return _parse_passages(without_thoughts(answer.text))

    async def _send(self, messages: Sequence[BaseMessage]) -> AIMessage:
        return await self.model.ainvoke(list(messages), config=hide_call(REPAIR_SOURCE))

    async def _build_request(self, passages: Sequence[ReportPassage]) -> str:
        sources = list(self.check.sources.values())[:MAX_SOURCES]
        parts = [f"The sources:\n{fence_untrusted(format_sources(sources))}"]
        for number, passage in enumerate(passages, start=1):
            parts.append(f'<passage number="{number}">\n{passage.text.strip()}\n</passage>')
            parts += [await self._describe_finding(finding) for finding in passage.findings[:MAX_OBJECTIONS]]
        return "\n\n".join(parts)

    async def _describe_finding(self, finding: UnverifiedCitation) -> str:
        line = f"Wrong in it: {finding.reason}"
        if finding.citation.kind == "claim":
            line = f"{line}\nThe claim: {shorten(finding.citation.text, CLAIM_CHARACTERS)}"
            passage = fence_untrusted(finding.passage) if finding.passage else ""
            return f"{line}\nWhat stands there:\n{passage}" if passage else line
        if finding.citation.kind != "quotation":
            return line
        texts = await self.check.texts(finding.citation)
        near = await asyncio.to_thread(find_excerpt, finding.citation.text, texts)
        return f"{line}\nWhat stands there:\n{fence_untrusted(near)}" if near else line


def _parse_passages(answer: str) -> dict[int, str]:
    """Return the passages of an answer by index, from 0; if one occurs twice, the last."""
    _, *pieces = _PASSAGE.split(answer)
    return {
        int(number) - 1: text.partition("</passage>")[0].strip()
        for number, text in zip(pieces[::2], pieces[1::2], strict=True)
        if "</passage>" in text
    }
