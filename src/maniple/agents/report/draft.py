"""A report while it is written: what of it may be shown."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from maniple.agents.report.mending import mends
from maniple.evidence.blocks import Blocks
from maniple.evidence.check import Finding, SourceCheck, marked
from maniple.evidence.source_list import WrittenList, heading_for, source_list


@dataclass(frozen=True, slots=True)
class Passage:
    """A block of the report, and what in it does not hold."""

    text: str
    findings: Sequence[Finding] = ()


Mend = Callable[[Sequence[Passage]], Awaitable[Mapping[int, str]]]
"""Gives new texts for passages, by their places in the sequence; none for those that it cannot mend."""


class Draft:
    """Takes a report as its model writes it and gives what holds, block by block.

    From the first block that does not hold on, the rest is kept back until all of it is there: then `mend`
    is asked once, what still does not hold is marked, and the sources that are cited are listed, in the place
    of a list that the model wrote. `at_hand` are the sources to list for a report that cites none.
    """

    def __init__(
        self, check: SourceCheck, mend: Mend | None = None, *, locale: str = "", at_hand: Collection[int] = ()
    ) -> None:
        self._check = check
        self._mend = mend
        self._locale = locale
        self._at_hand = at_hand
        self._blocks = Blocks()
        self._own_list = WrittenList()
        self._kept: list[Passage] = []
        self._shown: list[str] = []

    async def feed(self, text: str) -> str:
        """Return what may be shown now that `text` has been written."""
        return await self._checked(self._without_list(self._blocks.feed(text)))

    async def end(self) -> str:
        """Return the rest of the report. It takes a model call at most."""
        rest = [await self._checked([*self._without_list(self._blocks.end()), *self._own_list.end()])]
        for passage in await self._mended():
            rest.append(marked(passage.text, passage.findings))
        self._shown += rest[1:]
        return "".join(rest) + await self._listed()

    def _without_list(self, blocks: Sequence[str]) -> list[str]:
        return [left for block in blocks for left in self._own_list.feed(block)]

    async def _checked(self, blocks: Sequence[str]) -> str:
        ready: list[str] = []
        for block in blocks:
            findings = await self._check.findings(block)
            if findings or self._kept:
                self._kept.append(Passage(block, findings))
            else:
                ready.append(block)
        self._shown += ready
        return "".join(ready)

    async def _mended(self) -> list[Passage]:
        failing = [index for index, passage in enumerate(self._kept) if passage.findings]
        if failing and self._mend is not None:
            replies = await self._mend([self._kept[index] for index in failing])
            for place, index in enumerate(failing):
                if reply := replies.get(place, "").strip():
                    self._kept[index] = await self._better(self._kept[index], reply)
        return self._kept

    async def _better(self, passage: Passage, reply: str) -> Passage:
        """Return what holds better of a passage and what its writer gave for it; as good is not better."""
        ending = passage.text[len(passage.text.rstrip()) :]
        findings = await self._check.findings(reply)
        if len(findings) >= len(passage.findings):
            return passage
        if not await mends(passage.text, passage.findings, reply, self._check):
            return passage
        return Passage(reply + ending, findings)

    async def _listed(self) -> str:
        report = "".join(self._shown)
        if not report.strip():
            return ""
        numbers = await self._check.cited(report) or await self._check.cited("".join(self._own_list.taken))
        sources = [self._check.sources[number] for number in sorted(numbers or self._at_hand)]
        heading = self._own_list.heading or heading_for(report, self._locale)
        added = source_list(sources, heading)
        return "\n" * max(2 - _newlines_behind(report), 0) + added if added else ""


def _newlines_behind(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))
