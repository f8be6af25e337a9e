"""Checks the blocks of a report: its citations and quotations, and the claims in it."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from maniple.claims.added_citations import find_added_citations, has_claims
from maniple.claims.attribution import find_source_labels
from maniple.claims.check import ClaimCheck
from maniple.claims.earlier_marks import EarlierMarks
from maniple.claims.finding_check import FindingIndex
from maniple.claims.judge_passages import PassageFinder
from maniple.claims.judging import CallAllowance, JudgeRounds, PendingClaim, needs_judge
from maniple.claims.printed_rows import lay_out
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim, find_claims
from maniple.claims.verdict import ClaimReport, JudgedClaim, SourcePassage, Verdict, VerdictKind
from maniple.document.nodes import MARK
from maniple.evidence.check import SourceCheck, UnverifiedCitation
from maniple.evidence.citation import Citation
from maniple.evidence.reasons import ReasonCode, explain
from maniple.evidence.record import Evidence, Source
from maniple.evidence.source_list import language_of

MAX_CLAIMS = 3_000
"""Claims of a report that are judged; further ones are counted as left out."""
MAX_INDEXED = 4_000_000
"""Characters of all sources in which claims are looked up, earlier sources first. Cited ones always are."""
LANGUAGE_CHARACTERS = 5_000
"""Characters of a source that tell its language."""
_UNDECIDED: frozenset[VerdictKind] = frozenset({"open", "suspect"})
"""The verdicts that a finding decides: what rules object to, they object to in findings as well."""
ClaimKey = tuple[str, str, str, str, tuple[int, ...]]
"""What a verdict of a judge is about: a claim, the text before it, its row and column, and its citations."""
_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class TeamTexts:
    """What the team itself has said: a figure that only it has is open, and supports nothing.

    `answers` are those of members who have also run programs, `reports` earlier ones of the thread, in which
    marked lines do not count.
    """

    answers: Sequence[str] = ()
    reports: Sequence[str] = ()


class ReportCheck(SourceCheck):
    """A `SourceCheck` that also judges the claims of a report by rule, and takes the verdicts of a judge.

    The sources are indexed when the first block is judged. Verdicts are stored by block, so that the report
    as it was released can be summed up without judging it again.
    """

    def __init__(
        self,
        evidence: Evidence,
        sources: Sequence[Source],
        conversation: Iterable[str] = (),
        results: Iterable[str] = (),
        *,
        said: TeamTexts | None = None,
        researched: bool = False,
    ) -> None:
        conversation, results, said = tuple(conversation), tuple(results), said or TeamTexts()
        reports = tuple(map(_without_marked_lines, said.reports))
        known, found = [*conversation, *reports], [*results, *said.answers]
        super().__init__(evidence, sources, known, found, researched=researched)
        self._record = evidence
        self._given_texts = conversation
        self._result_texts, self._answer_texts, self._report_texts = results, said.answers, reports
        self._check: ClaimCheck | None = None
        self._marked_reports = said.reports
        self._earlier_marks = EarlierMarks((), self.number_of)
        self._noted = FindingIndex()
        self._indexed: dict[int, SourceIndex] = {}
        self._judged: dict[str, list[tuple[Claim, Verdict]]] = {}
        self._textless, self._unstored = set[int](), set[int]()
        self._claims_left = MAX_CLAIMS
        self._left_out: dict[str, int] = {}
        self._decided: dict[ClaimKey, Verdict] = {}
        self._finder: PassageFinder | None = None
        self._allowance = CallAllowance()

    @classmethod
    async def of(
        cls,
        evidence: Evidence,
        conversation: Iterable[str] = (),
        results: Iterable[str] = (),
        *,
        said: TeamTexts | None = None,
        researched: bool = False,
    ) -> Self:
        """Return a check against the present content of `evidence`."""
        sources = await evidence.sources()
        check = cls(evidence, sources, conversation, results, said=said, researched=researched)
        await check.load_unread()
        return check

    @property
    def checks_claims(self) -> bool:
        """Whether there is anything that claims can be compared with."""
        return bool(self.sources or self._result_texts or self._answer_texts)

    async def findings(self, block: str) -> list[UnverifiedCitation]:
        """Return the citations in `block` that could not be verified, and its wrong claims, in order."""
        found = [*await super().findings(block), *await self.find_wrong_claims(block)]
        return sorted(found, key=lambda one: (one.citation.end, one.citation.start))

    async def find_wrong_claims(self, block: str) -> list[UnverifiedCitation]:
        """Return the claims in `block` that are contradicted or absent, in order."""
        found = list[UnverifiedCitation]()
        for claim, verdict in await self._judge(block):
            if verdict.is_marked:
                citation = Citation("claim", claim.start, claim.end, claim.text, claim.citations)
                shown = verdict.passage.text if verdict.passage else ""
                found.append(UnverifiedCitation(citation, verdict.reasons, shown))
        return found

    async def claim_report(self, blocks: Iterable[str]) -> ClaimReport:
        """Return the verdicts on the claims of a report, given by its blocks."""
        judged, left_out = list[JudgedClaim](), 0
        for index, block in enumerate(blocks):
            judged += [_as_judged(one, verdict, index) for one, verdict in await self._judge(block)]
            left_out += self._left_out.get(block, 0)
        unsearched = tuple(number for number in self.sources if judged and number not in self._indexed)
        return ClaimReport(tuple(judged), left_out, unsearched, frozenset(self.sources))

    async def find_pending(self, *blocks: str) -> list[PendingClaim]:
        """Return the claims of blocks that a judge has to decide and that none was asked about, each once."""
        found = dict[ClaimKey, PendingClaim]()
        for block in blocks:
            for one in await self.list_claims(block):
                if needs_judge(one.rule) and _key_of(one.claim) not in self._decided:
                    found.setdefault(_key_of(one.claim), one)
        return [*found.values()]

    async def list_claims(self, block: str) -> list[PendingClaim]:
        """Return all claims of a block, with their verdicts."""
        language = language_of(block)
        return [
            PendingClaim(claim, verdict, language, block[claim.start : claim.end])
            for claim, verdict in await self._judge(block)
        ]

    async def open_judging(self, claims: Sequence[PendingClaim]) -> JudgeRounds:
        """Return the rounds in which a judge is asked about `claims`, with passages of the sources."""
        check = await self._open_check()
        if self._finder is None:
            self._finder = PassageFinder(check.sources, check.given, check.results)
        return await asyncio.to_thread(JudgeRounds, claims, self._finder, self._allowance)

    def take_verdicts(self, verdicts: Iterable[tuple[PendingClaim, Verdict]]) -> None:
        """Take the verdicts of a judge. They count for the same claims in other blocks, too."""
        self._decided |= {_key_of(pending.claim): verdict for pending, verdict in verdicts}
        for block, judged in self._judged.items():
            self._judged[block] = [(claim, self._decide(claim, verdict)) for claim, verdict in judged]

    def _decide(self, claim: Claim, rule: Verdict) -> Verdict:
        return self._decided.get(_key_of(claim), rule) if needs_judge(rule) else rule

    def start_report(self) -> None:
        """Forget the blocks that were judged, before another report with the same sources."""
        self._judged, self._left_out, self._claims_left = {}, {}, MAX_CLAIMS
        self._decided, self._allowance = {}, CallAllowance()
        if self._check is not None:
            self._check.forget_blocks()

    async def supports_new_citations(self, before: str, after: str) -> bool:
        """Return whether each citation that `after` adds to a claim of `before` names a source of that claim.

        The source must have the claim's quotations and figures, or, without any, one of its long words. Then
        no claim is given the source of another one beside it, as in the same cell of a table.
        """
        added = await asyncio.to_thread(find_added_citations, before, after)
        for number, claims in added.items():
            if number not in self.sources:
                return False
            index, wording = await self._index(number), await self.wording_of(number)
            if not await asyncio.to_thread(has_claims, wording, index, claims):
                return False
        return True

    async def _judge(self, block: str) -> list[tuple[Claim, Verdict]]:
        if not self.checks_claims or not block.strip():
            return []
        if block not in self._judged:
            check = await self._open_check()
            claims = await asyncio.to_thread(find_claims, block, self.number_of)
            for number in {number for one in claims for number in one.citations} & self.sources.keys():
                check.sources[number] = await self._index(number)
            kept = claims[: self._claims_left]
            self._claims_left -= len(kept)
            self._left_out[block] = len(claims) - len(kept)
            language = language_of(block)
            verdicts = await asyncio.to_thread(check.judge, kept, language)
            self._judged[block] = [
                (one, self._decide(one, await self._with_known(one, verdict, language)))
                for one, verdict in zip(kept, verdicts, strict=True)
            ]
        return self._judged[block]

    async def _with_known(self, claim: Claim, verdict: Verdict, language: str) -> Verdict:
        """Return the verdict on a claim; what no rule decides may repeat a marked claim or a finding."""
        if verdict.kind not in _UNDECIDED:
            return verdict
        return self._earlier_marks.find(claim, language) or await self._with_finding(claim, verdict)

    async def _with_finding(self, claim: Claim, verdict: Verdict) -> Verdict:
        """Return the verdict on a claim; it is supported by the finding that it repeats."""
        if claim.kind == "cell":
            return verdict
        found = self._noted.find(claim.text, claim.citations)
        if found is None or found.source not in self.sources:
            return verdict
        texts = await self._record.texts(found.source)
        digests = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
        index = next((place for place, one in enumerate(digests) if one == found.sha256), 0)
        passage = SourcePassage(found.source, found.quote, found.start, index)
        return Verdict("supported", explain(ReasonCode.NOTED, source=f"[{found.source}]"), passage)

    async def _open_check(self) -> ClaimCheck:
        if self._check is None:
            self._noted = FindingIndex(await self._record.findings())
            self._earlier_marks = await asyncio.to_thread(EarlierMarks, self._marked_reports, self.number_of)
            dates = {datetime.fromtimestamp(one.retrieved_at, UTC).date() for one in self.sources.values()}
            given = [*self._given_texts, *map(str, sorted(dates))]
            room = MAX_INDEXED
            for number in self.sources:
                if room > 0:
                    await self._index(number)
                    room -= self._indexed[number].characters
            # "It answered 503" is no claim about what a page says.
            said = [*self._answer_texts, *self._report_texts, *self.unread_reasons]
            self._check = ClaimCheck(
                dict(self._indexed),
                await asyncio.to_thread(SourceIndex, 0, "", given),
                await asyncio.to_thread(_index_results, self._result_texts),
                await asyncio.to_thread(SourceIndex, 0, "", said),
                {one.number: find_source_labels(one.title, one.url) for one in self.sources.values()},
                self._textless,
                self._unstored,
            )
        return self._check

    async def _index(self, number: int) -> SourceIndex:
        if number not in self._indexed:
            source = self.sources[number]
            texts = await self._record.texts(number)
            if not texts:
                (self._textless if source.sha256 == _NOTHING else self._unstored).add(number)
            language = language_of("\n".join(texts)[:LANGUAGE_CHARACTERS])
            self._indexed[number] = await asyncio.to_thread(
                SourceIndex, number, source.title, texts, language
            )
        return self._indexed[number]


def _index_results(texts: Sequence[str]) -> SourceIndex:
    return SourceIndex(0, "", map(lay_out, texts))


def _without_marked_lines(report: str) -> str:
    """Return an earlier report without what its check had marked, so that nothing is true by repetition."""
    return "\n".join(line for line in report.splitlines() if MARK not in line)


def _as_judged(claim: Claim, verdict: Verdict, block: int) -> JudgedClaim:
    return JudgedClaim(
        claim.text, claim.citations, verdict, claim.row, claim.column, block, claim.start, claim.end
    )


def _key_of(claim: Claim) -> ClaimKey:
    return claim.text, claim.before, claim.row, claim.column, claim.citations
