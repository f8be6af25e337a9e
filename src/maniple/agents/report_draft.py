"""Drafts: reports that are checked block by block while the model writes them."""

import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Sequence,
)
from typing import Protocol

from maniple.agents.claim_events import ReleasedBlocks, ReportMark
from maniple.agents.gap_statements import is_stated, state_gap
from maniple.agents.report_repair import RepairPassages, ReportPassage, is_repair
from maniple.agents.report_score import is_score, may_be_score
from maniple.agents.task import StepResult
from maniple.claims.report_check import ReportCheck
from maniple.claims.verdict import ClaimReport
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.blocks import Blocks
from maniple.evidence.source_list import ModelSourceList, format_source_list, heading_for
from maniple.tools.reading_notes import is_note, may_be_note

MAX_AHEAD = 8_000
"""The number of characters of an incomplete block that may be shown.

The rest waits for the end of the block.
"""
_MAY_BE_AN_ADDRESS = re.compile(r"[/&\\]|www|\]\(|\w:\w", re.IGNORECASE)
_MAY_CITE = re.compile(r"[/&\\\[【［<>\"“”„‟«»‹›「」『』〝〟｢｣❝❛＂'’‘‚]|www|\w:\w", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
LIST_AT_END = re.compile(r"(?:\A|\n+)## [^\n]+\n\n(?:- \[\d+\] [^\n]+\n?)+\Z")
"""The list of sources as `format_source_list` writes it."""

JudgeBlocks = Callable[[Sequence[str]], Awaitable[None]]
"""Asks a judge about the claims of blocks; the check takes the verdicts."""


class Draft(Protocol):
    """A report that is checked while the model writes it."""

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        ...

    async def feed_unchanged(self, text: str) -> str:
        """Take whole blocks that the thread's last report has as well; they are checked, but not repaired."""
        ...

    async def end_section(self) -> str:
        """Return the rest of what was taken, checked and repaired, before the next section of a report."""
        ...

    async def end(self) -> str:
        """Return the rest of the report."""
        ...

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released. Read it after `end`."""
        ...

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released. Call it after `end`."""
        ...


class ReportDraft:
    """Checks a report block by block while the model writes it, and releases the blocks that pass.

    From the first block with a finding on, all blocks are held back until the report or its section is
    complete; with a `judge` from the first block with a claim to judge. Then the judge is
    asked about these, `repair` is called once, and remaining findings are marked in the text. At the end a
    list of the cited sources replaces the list that the model wrote. `at_hand` are the sources to list if the
    report cites none.
    """

    def __init__(
        self,
        check: ReportCheck,
        repair: RepairPassages | None = None,
        *,
        judge: JudgeBlocks | None = None,
        locale: str = "",
        at_hand: Collection[int] = (),
    ) -> None:
        self._check = check
        self._repair = repair
        self._judge = judge
        self._locale = locale
        self._at_hand = at_hand
        self._blocks = Blocks()
        self._own_list = ModelSourceList()
        self._held_back: list[ReportPassage] = []
        self._shown_parts: list[str] = []
        self._released = ReleasedBlocks()

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        return await self._check_blocks(self._remove_own_list(self._blocks.feed(text)))

    async def feed_unchanged(self, text: str) -> str:
        """Take whole blocks of the last report; they are checked, judged and marked, but not repaired."""
        before = await self._check_blocks(self._remove_own_list(self._blocks.end()))
        self._blocks = Blocks()
        own = Blocks()
        blocks = self._remove_own_list([*own.feed(text), *own.end()])
        return before + await self._check_blocks(blocks, is_settled=True)

    async def end(self) -> str:
        """Return the rest of the report. It makes at most one model call, beside those of the judge."""
        return await self.end_section() + await self._format_sources()

    async def end_section(self) -> str:
        """Return the rest of a section, judged and repaired. It makes the same calls as `end`."""
        rest = [await self._check_blocks([*self._remove_own_list(self._blocks.end()), *self._own_list.end()])]
        await self._judge_passages()
        for passage in await self._repair_passages():
            rest.append(self._released.add(passage.text, passage.findings))
        self._shown_parts += rest[1:]
        self._blocks, self._held_back = Blocks(), []
        return "".join(rest)

    def _remove_own_list(self, blocks: Sequence[str]) -> list[str]:
        return [left for block in blocks if not _is_left_out(block) for left in self._own_list.feed(block)]

    async def _check_blocks(self, blocks: Sequence[str], *, is_settled: bool = False) -> str:
        ready: list[str] = []
        for block in map(_mask, blocks):
            findings = await self._check.findings(block)
            is_to_repair = bool(findings) and not is_settled
            if is_to_repair or self._held_back or await self._waits_for_judge(block):
                self._held_back.append(ReportPassage(block, findings, is_settled))
            else:
                ready.append(self._released.add(block, findings))
        self._shown_parts += ready
        return "".join(ready)

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._released.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._check.claim_report(self._released.texts)

    async def _waits_for_judge(self, block: str) -> bool:
        return self._judge is not None and bool(await self._check.find_pending(block))

    async def _judge_passages(self) -> None:
        """Ask the judge about what is held back; its findings join those of the rules."""
        if self._judge is None or not self._held_back:
            return
        await self._judge([passage.text for passage in self._held_back])
        self._held_back = [await self._add_wrong_claims(passage) for passage in self._held_back]

    async def _add_wrong_claims(self, passage: ReportPassage) -> ReportPassage:
        """Return a passage with its claims as the judge sees them; its citations are not looked up again."""
        others = [one for one in passage.findings if one.citation.kind != "claim"]
        findings = [*others, *await self._check.find_wrong_claims(passage.text)]
        ordered = sorted(findings, key=lambda one: (one.citation.end, one.citation.start))
        return ReportPassage(passage.text, ordered, passage.is_settled)

    async def _repair_passages(self) -> list[ReportPassage]:
        failing = [
            index
            for index, passage in enumerate(self._held_back)
            if passage.findings and not passage.is_settled
        ]
        if failing and self._repair is not None:
            replies = await self._repair([self._held_back[index] for index in failing])
            texts = [_mask(replies.get(place, "")).strip() for place in range(len(failing))]
            if self._judge is not None:
                # Else a repair would pass that only words a wrong claim in another way.
                await self._judge([*filter(None, texts)])
            for text, index in zip(texts, failing, strict=True):
                if text:
                    self._held_back[index] = await self._choose_passage(self._held_back[index], text)
        return self._held_back

    async def _choose_passage(self, passage: ReportPassage, reply: str) -> ReportPassage:
        """Return the model's reply if it has fewer findings than the passage, else the passage."""
        ending = passage.text[len(passage.text.rstrip()) :]
        findings = await self._check.findings(reply)
        if len(findings) >= len(passage.findings):
            return passage
        if not await is_repair(passage.text, passage.findings, reply, self._check):
            return passage
        return ReportPassage(reply + ending, findings)

    async def _format_sources(self) -> str:
        report = "".join(self._shown_parts)
        if not report.strip():
            return ""
        numbers = await self._check.cited(report) or await self._check.cited("".join(self._own_list.taken))
        sources = [self._check.sources[number] for number in sorted(numbers or self._at_hand)]
        heading = self._own_list.heading or heading_for(report, self._locale)
        added = format_source_list(sources, heading)
        return "\n" * max(2 - _newlines_behind(report), 0) + added if added else ""


def _is_left_out(block: str) -> bool:
    """Return whether a block is no text of a report: a score of its claims, or a note that a tool gave."""
    return is_score(block) or is_note(block)


def _mask(block: str) -> str:
    """Return a block without the secrets in its addresses; most blocks have none."""
    return hide_secrets(block) if "://" in block else block


def _newlines_behind(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


class OuterDraft:
    """A draft around another one, which checks the text."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    async def feed_unchanged(self, text: str) -> str:
        """Take whole blocks of the last report; return the text that may be shown now."""
        return await self._draft.feed_unchanged(text)

    async def end_section(self) -> str:
        """Return the rest of a section."""
        return await self._draft.end_section()

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._draft.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._draft.judge_claims()


class FormDraft(OuterDraft):
    """A draft whose text may have a form of its own, which is read when it is complete.

    `recognize` returns whether an answer that begins so has the form, or None while its beginning does not
    tell. Until then the text is held back; text without the form is passed on.
    """

    def __init__(
        self, draft: Draft, recognize: Callable[[str], bool | None], *, has_form: bool | None = None
    ) -> None:
        super().__init__(draft)
        self._recognize = recognize
        self._has_form = has_form
        self._begun: list[str] = []

    async def feed(self, text: str) -> str:
        """Take the next part of the answer; return the text that may be shown now."""
        if self._has_form is False:
            return await self._draft.feed(text)
        self._begun.append(text)
        if self._has_form is None:
            self._has_form = self._recognize("".join(self._begun))
        return await self._pass_on() if self._has_form is False else ""

    async def _pass_on(self) -> str:
        text, self._begun = "".join(self._begun), []
        return await self._draft.feed(text)


class StatedDraft(OuterDraft):
    """A draft with a line, before its sources, about each gap of the steps that it does not speak of."""

    def __init__(self, draft: Draft, results: Sequence[StepResult], locale: str = "") -> None:
        super().__init__(draft)
        self._locale = locale
        self._lacking = [one for one in results if not one.done or one.lacks]
        self._shown: list[str] = []

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        self._shown.append(await self._draft.feed(text))
        return self._shown[-1]

    async def feed_unchanged(self, text: str) -> str:
        """Take whole blocks of the last report; return the text that may be shown now."""
        self._shown.append(await self._draft.feed_unchanged(text))
        return self._shown[-1]

    async def end_section(self) -> str:
        """Return the rest of a section."""
        self._shown.append(await self._draft.end_section())
        return self._shown[-1]

    async def end(self) -> str:
        """Return the rest of the report."""
        rest = await self._draft.end()
        report = "".join([*self._shown, rest])
        if not report.strip():
            return rest
        found = LIST_AT_END.search(rest)
        own, listed = (rest[: found.start()], found[0].lstrip("\n")) if found else (rest, "")
        before = "".join([*self._shown, own])
        omitted = [one for one in self._lacking if not is_stated(before, one)]
        if not omitted:
            return rest
        gap = "\n" * max(2 - _newlines_behind(before), 0)
        lines = [state_gap(one, before, self._locale) for one in omitted]
        return own + gap + "\n\n".join([*lines, *filter(None, [listed])])


class UncitedDraft:
    """Checks the addresses of a report without sources while the model writes it.

    Text is shown up to the first character that may belong to an address. If the check includes words, text
    is shown up to the first character that may begin a citation or a quotation, and if it includes claims, up
    to the first digit. The rest waits for the end of the block.
    """

    def __init__(self, check: ReportCheck) -> None:
        self._check = check
        self._waits = _MAY_CITE if check.checks_words else _MAY_BE_AN_ADDRESS
        self._blocks = Blocks()
        self._shown_characters = 0
        self._released = ReleasedBlocks()

    async def feed(self, text: str) -> str:
        """Take the next part of the report; return the text that may be shown now."""
        ready = [await self._rest_of(block) for block in self._blocks.feed(text)]
        if self._blocks.pending_characters <= MAX_AHEAD:
            begun = self._blocks.pending
            if may_be_score(begun) or may_be_note(begun):
                return "".join(ready)
            if not self._waits.search(begun) and not (self._check.checks_claims and _DIGIT.search(begun)):
                ready.append(begun[self._shown_characters :])
                self._shown_characters = len(begun)
        return "".join(ready)

    async def feed_unchanged(self, text: str) -> str:
        """Take whole blocks of the last report; return the text that may be shown now."""
        before, own = await self.end_section(), Blocks()
        blocks = [*own.feed(text), *own.end()]
        return before + "".join([await self._rest_of(block) for block in blocks])

    async def end(self) -> str:
        """Return the rest of the report."""
        return await self.end_section()

    async def end_section(self) -> str:
        """Return the rest of a section."""
        rest = [await self._rest_of(block) for block in self._blocks.end()]
        self._blocks = Blocks()
        return "".join(rest)

    @property
    def marks(self) -> Sequence[ReportMark]:
        """The marks of the report as it was released."""
        return self._released.marks

    async def judge_claims(self) -> ClaimReport:
        """Return the verdicts on the claims of the report as it was released."""
        return await self._check.claim_report(self._released.texts)

    async def _rest_of(self, block: str) -> str:
        # The shown part contains nothing that could be marked, so no mark can lie before its end. That holds
        # for the next block, too, if the end of this one arrived together with text of the next.
        if _is_left_out(block):
            return ""
        block = _mask(block)
        shown, self._shown_characters = self._shown_characters, max(self._shown_characters - len(block), 0)
        return self._released.add(block, await self._check.findings(block))[shown:]
