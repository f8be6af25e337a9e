"""What a judge model is asked about the claims of a report, and which of its answers count.

There are no calls here: `JudgeRounds` makes the requests and takes the answers. An answer counts only if code
can check it: the words that it points to stand in the passage, and a figure that stands nowhere is calculated
in a way that holds. So a page cannot make its own verdict, whatever it tells the model.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from pydantic import BaseModel, ConfigDict

from maniple.claims.context import ClaimContext
from maniple.claims.dates import find_dates
from maniple.claims.figures import find_figures
from maniple.claims.judge_figures import (
    KnownFigures,
    ShownFigure,
    read_day_and_month,
    read_figures,
    stands_in,
)
from maniple.claims.judge_passages import PassageFinder, SourcePiece
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim
from maniple.claims.terms import find_terms
from maniple.claims.verdict import SourcePassage, Verdict
from maniple.evidence.reasons import ReasonCode, Reasons, explain, join_sentences, name_sources
from maniple.text import shorten

MAX_BATCH = 30
"""Claims of one request."""
CLAIMS_PER_CALL = 20
"""Claims for which one request may be made. A request has more, so that some are left to ask again."""
LEAST_CALLS = 2
"""Requests that a report may need at least: one, and one for what is asked again."""
SMALL_SHARE = 4
"""First requests for which one more may be made, if the window of the model is too small for full ones."""
MAX_REQUESTS = 3
"""Requests for one claim: the first, one after an answer that does not count, one with other passages."""
CLAIM_CHARACTERS, CONTEXT_CHARACTERS = 1_200, 300
"""Characters of a claim, and of what stands before it or at its row or column, in a request."""
LEAST_WORDS = 2
"""Words of a claim that its sources know from which the sentence of a span must have one of them."""
LEADS = (":", "：")
SAME_LETTERS = 5
"""The first letters that two forms of a word share: "licence" and "licensed".

Of 4,510 pairs of a claim and a random sentence of its source 18.1 % share a stem, and 18.6 % such letters.
"""
OPAQUE = "\ufffc"
_CITED_NUMBER = re.compile(r"\[(\d{1,4})\]")
_OTHER_MARKUP = re.compile(r"\]\(|[`|$<^~\\]")
VERDICTS = ("supported", "contradicted", "absent", "unclear", "exempt")
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "why": {"type": "string"},
                    "verdict": {"type": "string", "enum": list(VERDICTS)},
                    "pid": {"type": "string"},
                    "span": {"type": "string"},
                    "operation": {"type": "string"},
                },
                "required": ["id", "why", "verdict", "pid", "span", "operation"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}
"""The JSON schema of an answer. The reason comes before the verdict, so that it leads to it."""


class GivenVerdict(BaseModel):
    """A verdict as a model gives it. Any text is accepted, so that one mistake spoils one claim only."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str
    verdict: str = ""
    pid: str | None = None
    span: str | None = None
    operation: str | None = None
    why: str | None = None


class JudgeAnswer(BaseModel):
    """The answer to one request."""

    model_config = ConfigDict(extra="ignore")

    verdicts: list[GivenVerdict]


@dataclass(frozen=True, slots=True)
class PendingClaim:
    """A claim of a report, what the rules know about it, and the language of its block."""

    claim: Claim
    rule: Verdict
    language: str = ""
    markdown: str = ""
    """The claim as the report has it, with its citations."""


@dataclass(slots=True, eq=False)
class ClaimCase:
    """A claim that a judge has to decide."""

    id: str
    pending: PendingClaim
    absent_figures: tuple[FigureMention, ...]
    """Its figures that stand neither in a cited source nor in what the user said or a program printed."""
    passages: dict[str, SourcePiece] = field(default_factory=dict[str, SourcePiece])
    """What is shown now, by `pid`."""
    usable: dict[str, SourcePiece] = field(default_factory=dict[str, SourcePiece])
    """What an answer may rest on, by `pid`: also passages of cited sources that stand with other claims."""
    shown: list[SourcePiece] = field(default_factory=list[SourcePiece])
    verdict: Verdict | None = None
    """The verdict, once it is accepted."""
    why: str = ""
    """The reason that the model gave. It may repeat what a page says, so it is not part of the verdict."""
    refusal: Reasons = ()
    """Why the last answer does not count, for the model and, if there is no other one, for the user."""
    detail: str = ""
    """What else the model is told of the refusal. It may repeat its answer, so that it is in no verdict."""
    is_searched_again: bool = False
    """Whether the passages shown now are those of the second search."""
    is_over: bool = False
    """Whether nothing more is asked about it."""
    requests: int = 0
    """The requests that had it."""
    _has_retried: bool = False

    def show(self, passages: Mapping[str, SourcePiece]) -> None:
        """Take the passages to show next, by `pid`."""
        self.passages = {**passages}
        self.shown += passages.values()

    def show_fewer(self) -> None:
        """Leave out the last of the passages."""
        self.passages.popitem()
        self.shown.pop()

    def accept(self, verdict: Verdict) -> None:
        """Take the final verdict."""
        self.verdict, self.is_over = replace(verdict, decided_by="judge"), True

    def refuse(self, reasons: Reasons, detail: str = "") -> None:
        """Note that an answer does not count; the claim is asked about once more."""
        self.refusal, self.detail, self.is_over = reasons, detail, self._has_retried
        self._has_retried = True

    def give_up(self, reasons: Reasons) -> None:
        """Ask nothing more about the claim."""
        self.refusal, self.is_over = reasons, True


@dataclass(slots=True)
class CallAllowance:
    """The requests about the claims of a report: how many there may be, and how many there were."""

    claims: int = 0
    calls: int = 0

    def grant(self, claims: int, first_calls: int) -> int:
        """Return the requests for further claims, of which the first round needs `first_calls`.

        What the claims before have left is added.
        """
        self.claims += claims
        left = max(LEAST_CALLS, ceil(self.claims / CLAIMS_PER_CALL)) - self.calls
        return max(left, first_calls + first_calls // SMALL_SHARE)


@dataclass(frozen=True, slots=True)
class JudgeBatch:
    """The claims of one request, and its JSON."""

    cases: tuple[ClaimCase, ...]
    text: str


def needs_judge(verdict: Verdict) -> bool:
    """Return whether a judge is asked: there is something to check, and neither code nor a judge settled it.

    Rules compare words and figures, so what they support or mark may still mean something else.
    """
    return verdict.kind != "exempt" and verdict.decided_by != "judge" and not verdict.is_proved


def keep_rule(rule: Verdict, reasons: Reasons) -> Verdict:
    """Return what is known about a claim that no judge has decided: what the rules say, or why it is open."""
    if rule.kind == "supported" or rule.is_marked or rule.is_proved:
        return rule
    return Verdict("open", explain(ReasonCode.NOT_JUDGED) + reasons, rule.passage)


class JudgeRounds:
    """The claims that a judge is asked about, from the first request to the verdicts.

    A claim for which no passage is found is not asked about and stays as the rules have left it. `allowance`
    bounds the requests; claims that are still undecided then stay so. Look-ups block for some milliseconds
    for each claim: call the methods in a thread.
    """

    def __init__(
        self, claims: Iterable[PendingClaim], finder: PassageFinder, allowance: CallAllowance | None = None
    ) -> None:
        self._finder = finder
        self._allowance = allowance or CallAllowance()
        self._calls_left: int | None = None
        self._figures: dict[SourcePiece, list[ShownFigure]] = {}
        self._pids: dict[SourcePiece, str] = {}
        self.cases: list[ClaimCase] = []
        for number, one in enumerate(claims, start=1):
            case = ClaimCase(f"c{number}", one, ())
            case.show(self._number(finder.find(one.claim, one.language)))
            if case.passages:
                case.absent_figures = tuple(self._find_absent_figures(one))
                self.cases.append(case)

    @property
    def calls(self) -> int:
        """The requests that were made, also for the claims of the report before these."""
        return self._allowance.calls

    def next_batches(self, room: int, measure: Callable[[str], int]) -> list[JudgeBatch]:
        """Return the requests of the next round; none if nothing is left to ask.

        Claims that nobody was asked about come first; others are asked about again together with the last of
        them, those first that no rule supports. A passage of several claims stands in a request once, with
        the first of them. `room` is the largest size of a request, in the unit of `measure`. A claim that is
        longer by itself loses its last passages; if that does not help, it is given up.
        """
        waiting = [one for one in self.cases if not one.is_over and one.requests < MAX_REQUESTS]
        batches = [*_cut_batches(sorted(waiting, key=_order_of), room, measure)]
        if self._calls_left is None:
            self._calls_left = self._allowance.grant(len(self.cases), len(batches))
        chosen = batches[: self._calls_left]
        if 1 < len(chosen) == self._calls_left and len(chosen[-1].cases) < MAX_BATCH:
            chosen.pop()  # what is asked again joins it
        self._calls_left -= len(chosen)
        self._allowance.calls += len(chosen)
        for case in (case for batch in chosen for case in batch.cases):
            case.requests += 1
        if not chosen or not self._calls_left:
            self._close({id(case) for batch in chosen for case in batch.cases})
        return chosen

    def take(self, batch: JudgeBatch, answer: JudgeAnswer) -> None:
        """Take the answer to a request: each claim gets its verdict, is asked about again, or is given up.

        A verdict may rest on passages that stand with another claim, since the model has read all of them.
        Only the own passages of a claim can show that it names the wrong source.
        """
        given = {one.id.strip(): one for one in answer.verdicts}
        listed = {pid: piece for case in batch.cases for pid, piece in case.passages.items()}
        for case in batch.cases:
            claim = case.pending.claim
            case.usable = {pid: one for pid, one in listed.items() if _is_cited(claim, one)} | case.passages
        counts = Counter(one.id.strip() for one in answer.verdicts)
        for case in batch.cases:
            match counts[case.id]:
                case 0:
                    case.refuse(explain(ReasonCode.NO_VERDICT))
                case 1:
                    self._take_verdict(case, given[case.id])
                case _:
                    case.refuse(explain(ReasonCode.SEVERAL_VERDICTS))

    def refuse(self, batch: JudgeBatch, reasons: Reasons, detail: str = "") -> None:
        """Note that an answer as a whole does not count. The model is told `detail`, too; a report is not."""
        for case in batch.cases:
            case.refuse(reasons, detail)

    def stop(self, reasons: Reasons, batch: JudgeBatch | None = None) -> None:
        """Ask nothing more about the claims of a request, or about all that have no verdict."""
        for case in batch.cases if batch else self.cases:
            if not case.is_over:
                case.give_up(reasons)

    def verdicts(self) -> Iterator[tuple[PendingClaim, Verdict]]:
        """Yield the claims that were asked about with what is known about them now.

        A verdict that is accepted replaces that of the rules, unless code has proved theirs. Without one, or
        if the judge cannot decide, what a rule supports or marks stays so, and another claim is open.
        """
        for case in self.cases:
            yield case.pending, _settle(case)

    def _close(self, asked: Set[int]) -> None:
        """Ask nothing more about the claims that are not in the last requests."""
        for case in self.cases:
            if not case.is_over and id(case) not in asked:
                case.give_up(case.refusal or _explain_end(case))

    def _number(self, pieces: Sequence[SourcePiece]) -> dict[str, SourcePiece]:
        """Return passages by `pid`, which is the same for all claims."""
        for one in pieces:
            self._pids.setdefault(one, f"p{len(self._pids) + 1}")
        return {self._pids[one]: one for one in pieces}

    def _take_verdict(self, case: ClaimCase, given: GivenVerdict) -> None:
        case.why = given.why or ""
        verdict = given.verdict.strip().casefold()
        if verdict == "absent":
            self._take_absence(case)
        elif verdict == "unclear":
            case.accept(Verdict("open", explain(ReasonCode.UNDECIDED), case.pending.rule.passage))
        elif verdict == "exempt":
            self._take_exemption(case)
        elif verdict in VERDICTS:
            self._take_finding(case, given, is_supported=verdict == "supported")
        else:
            case.refuse(explain(ReasonCode.UNKNOWN_VERDICT, verdicts=", ".join(VERDICTS)))

    def _take_absence(self, case: ClaimCase) -> None:
        """Show other passages, or accept that a claim stands nowhere if it was shown all that are like it."""
        claim = case.pending.claim
        if case.is_searched_again:
            case.accept(Verdict("absent", _explain_absence(claim)))
            return
        found = self._finder.find(claim, case.pending.language, shown=case.shown, is_wide=True)
        case.show(self._number(found))
        case.refusal, case.detail, case.is_searched_again = (), "", True
        if not case.passages:
            case.accept(Verdict("absent", _explain_absence(claim)))

    def _take_exemption(self, case: ClaimCase) -> None:
        """Accept that a claim says nothing that has to be in a source, if it has no figure and no date.

        "The sites in 2023:" may have a date, because it leads to a list.
        """
        text, language = case.pending.claim.text, case.pending.language
        dates = find_dates(text, language)
        has_figure = any(one.is_judged for one in find_figures(text, language, dates))
        if has_figure or (dates and not text.rstrip().endswith(LEADS)):
            case.refuse(explain(ReasonCode.NOT_EXEMPT))
        else:
            case.accept(Verdict("exempt", explain(ReasonCode.JUDGED_EXEMPT)))

    def _take_finding(self, case: ClaimCase, given: GivenVerdict, *, is_supported: bool) -> None:
        """Take a verdict that rests on words of a passage."""
        piece = case.usable.get((given.pid or "").strip())
        part = piece.find_part(given.span or "") if piece else None
        if piece is None:
            case.refuse(explain(ReasonCode.UNKNOWN_PASSAGE))
        elif part is None:
            case.refuse(explain(ReasonCode.UNKNOWN_SPAN))
        elif not self._is_about(case.pending, piece, part, is_supported=is_supported):
            case.refuse(explain(ReasonCode.UNRELATED_SPAN))
        elif _is_cited(case.pending.claim, piece):
            self._take_cited(case, given, piece, part, is_supported=is_supported)
        elif is_supported:
            reasons = explain(ReasonCode.WORDS_IN_OTHER_SOURCE, source=f"[{piece.source}]")
            case.accept(Verdict("contradicted", reasons, part))
        else:
            case.refuse(explain(ReasonCode.NOT_CITED))

    def _take_cited(
        self,
        case: ClaimCase,
        given: GivenVerdict,
        piece: SourcePiece,
        part: SourcePassage,
        *,
        is_supported: bool,
    ) -> None:
        if not is_supported:
            if piece.origin == "user":
                case.refuse(explain(ReasonCode.NOT_CITED))
            else:
                case.accept(Verdict("contradicted", _explain_finding(piece, is_supported=False), part))
        elif missing := self._find_uncalculated(case, given.operation or ""):
            case.refuse(explain(ReasonCode.NOT_GIVEN, value=missing))
        else:
            case.accept(Verdict("supported", _explain_finding(piece, is_supported=True), part))

    def _is_about(
        self, pending: PendingClaim, piece: SourcePiece, part: SourcePassage, *, is_supported: bool
    ) -> bool:
        """Return whether a sentence of a source, or a row with its head, has a word or figure of a claim.

        A claim in another language than its source may have neither. Then it is enough that the passage has a
        name or figure of it, or that none of its figures stands in the source.
        """
        claim, index = pending.claim, self._finder.index_of(piece)
        words = find_terms(f"{claim.row} {claim.column} {claim.text} {claim.before} {claim.heading}")
        known = {one for one in words if index.knows(one)}
        figures = find_figures(f"{claim.row} | {claim.column} | {claim.text}", pending.language)
        if self._shares(replace(piece, parts=(part,)), words, figures):
            return True
        if not _is_translated(pending.language, index.language, len(known), len(words)):
            return False
        if not is_supported or self._shares(piece, words, figures):
            return True
        return not any(one.is_judged and index.find_figure(one) for one in figures)

    def _shares(self, piece: SourcePiece, words: Set[str], figures: Sequence[FigureMention]) -> bool:
        """Return whether a passage has one of some words, also in another form, or of some figures."""
        if not _find_beginnings(find_terms(piece.text)).isdisjoint(_find_beginnings(words)):
            return True
        found = read_figures(piece, self._finder.index_of(piece).language)
        return any(agree(one, shown.figure) for shown in found for one in figures)

    def _find_absent_figures(self, pending: PendingClaim) -> Iterator[FigureMention]:
        """Yield the figures of a claim that have to be calculated; none of a claim that a rule supports."""
        if pending.rule.kind == "supported":
            return
        indexes = [*self._known_to(pending.claim)]
        for group in ClaimContext.of(pending.claim, (), (), pending.language).groups:
            if group[0].is_judged and not any(_has_figure(indexes, one, pending.claim.text) for one in group):
                yield group[0]

    def _known_to(self, claim: Claim) -> Iterator[SourceIndex]:
        """Yield what a claim may rest on: the sources that it cites, or all, and what is no source."""
        sources = self._finder.sources
        cited = [sources[number] for number in claim.citations if number in sources]
        yield from (*(cited or sources.values()), self._finder.given, self._finder.results)

    def _find_uncalculated(self, case: ClaimCase, operation: str) -> str:
        """Return the first figure that stands nowhere and that `operation` does not give; "" if none."""
        pieces = [one for one in case.usable.values() if _is_cited(case.pending.claim, one)]
        shown = [figure for one in pieces for figure in self._read_figures(one)]
        known = KnownFigures([*self._known_to(case.pending.claim)], shown)
        for figure in case.absent_figures:
            if not (stands_in(figure, shown) or known.give(operation, figure)):
                return figure.text
        return ""

    def _read_figures(self, piece: SourcePiece) -> list[ShownFigure]:
        if piece not in self._figures:
            self._figures[piece] = [*read_figures(piece, self._finder.index_of(piece).language)]
        return self._figures[piece]


def _order_of(case: ClaimCase) -> tuple[bool, bool]:
    """Return where a claim stands among those that wait: the new ones first, then what no rule supports."""
    is_again = case.requests > 0
    return is_again, is_again and case.pending.rule.kind == "supported"


def _explain_finding(piece: SourcePiece, *, is_supported: bool) -> Reasons:
    if piece.source:
        code = ReasonCode.JUDGED_SUPPORTED if is_supported else ReasonCode.JUDGED_CONTRADICTED
        return explain(code, source=f"[{piece.source}]")
    if piece.origin == "user":
        return explain(ReasonCode.JUDGED_GIVEN)
    return explain(ReasonCode.RESULT_SUPPORTS if is_supported else ReasonCode.RESULT_CONTRADICTS)


def _explain_end(case: ClaimCase) -> Reasons:
    return explain(ReasonCode.NO_SECOND_REQUEST if case.is_searched_again else ReasonCode.NO_REQUEST_LEFT)


def _settle(case: ClaimCase) -> Verdict:
    rule, judged = case.pending.rule, case.verdict
    if judged is None or rule.is_proved:
        return keep_rule(rule, case.refusal or explain(ReasonCode.NO_ANSWER))
    if judged.kind in ("open", "exempt") and (rule.kind == "supported" or rule.is_marked):
        return rule
    return judged


def _has_figure(indexes: Iterable[SourceIndex], figure: FigureMention, text: str) -> bool:
    date = read_day_and_month(figure, text)
    return any(index.find_figure(figure) or (date and index.find_date(date)) for index in indexes)


def _find_beginnings(terms: Set[str]) -> set[str]:
    return {one[:SAME_LETTERS] for one in terms}


def _is_translated(language: str, source_language: str, known: int, words: int) -> bool:
    """Return whether a claim is in another language than a source, which knows `known` of its `words`."""
    if known < LEAST_WORDS:
        return True
    # A page may be in several languages, so its words count more than what it is mostly in.
    is_same = bool(language) and language == source_language
    return not is_same and 2 * known < words


def _is_cited(claim: Claim, piece: SourcePiece) -> bool:
    """Return whether a claim may rest on a piece: it cites its source or none, or the piece has no source."""
    return not claim.citations or piece.origin != "source" or piece.source in claim.citations


def _explain_absence(claim: Claim) -> Reasons:
    if not claim.citations:
        return explain(ReasonCode.JUDGED_IN_NO_SOURCE)
    return explain(ReasonCode.JUDGED_NOT_IN_CITED, source=name_sources(claim.citations))


def _cut_batches(
    cases: Iterable[ClaimCase], room: int, measure: Callable[[str], int]
) -> Iterator[JudgeBatch]:
    chosen, texts, given, size = list[ClaimCase](), list[str](), set[str](), 0
    for case in cases:
        text = _fit_case(case, room, measure)
        if case.is_over:
            continue
        shorter = _describe_case(case, given)
        if chosen and (len(chosen) == MAX_BATCH or size + measure(shorter) > room):
            yield _build_batch(chosen, texts)
            chosen, texts, given, size = [], [], set[str](), 0
        chosen.append(case)
        texts.append(shorter if given else text)
        size += measure(texts[-1])
        given |= case.passages.keys()
    if chosen:
        yield _build_batch(chosen, texts)


def _fit_case(case: ClaimCase, room: int, measure: Callable[[str], int]) -> str:
    """Return the JSON of a claim, with as many passages as fit."""
    text = _describe_case(case)
    while measure(text) > room and len(case.passages) > 1:
        case.show_fewer()
        text = _describe_case(case)
    if measure(text) > room:
        case.give_up(explain(ReasonCode.TOO_LONG))
    return text


def _build_batch(cases: Sequence[ClaimCase], texts: Sequence[str]) -> JudgeBatch:
    return JudgeBatch(tuple(cases), '{"claims": [\n' + ",\n".join(texts) + "\n]}")


def _describe_case(case: ClaimCase, given: Set[str] = frozenset()) -> str:
    """Return the JSON of a claim; of the passages in `given` it has the `pid` only."""
    claim = case.pending.claim
    described = {
        "id": case.id,
        "text": shorten(_show_claim(case.pending), CLAIM_CHARACTERS),
        "row": shorten(claim.row, CONTEXT_CHARACTERS),
        "column": shorten(claim.column, CONTEXT_CHARACTERS),
        "before": shorten(claim.before.replace(OPAQUE, "…"), CONTEXT_CHARACTERS),
        "passages": [
            {"pid": pid}
            if pid in given
            else {"pid": pid, "source": _name_source(one), "heading": one.heading, "text": one.text}
            for pid, one in case.passages.items()
        ],
        "question": _ask(case),
    }
    return json.dumps({key: value for key, value in described.items() if value}, ensure_ascii=False)


def _show_claim(pending: PendingClaim) -> str:
    """Return the text of a claim with its citations, where they stand if all of them are written as `[5]`."""
    claim = pending.claim
    written = [*map(int, _CITED_NUMBER.findall(pending.markdown))]
    if written and {*written} == {*claim.citations} and not _OTHER_MARKUP.search(pending.markdown):
        return pending.markdown.strip()
    text, cited = claim.text.replace(OPAQUE, "…"), "".join(f" [{number}]" for number in claim.citations)
    return f"{text[:-1]}{cited}{text[-1]}" if cited and text[-1:] in ".。" else text + cited


def _name_source(piece: SourcePiece) -> str:
    return {"source": f"[{piece.source}]", "user": "the user", "program": "a program's output"}[piece.origin]


def _ask(case: ClaimCase) -> str:
    """Return what is to be found out about a claim, and what was wrong with the answer before."""
    rule = case.pending.rule
    if case.absent_figures:
        figures = ", ".join(one.text for one in case.absent_figures)
        question = (
            f"{figures}: not found as written. Do the passages say it in another form, does it follow from "
            "their figures (give the operation), or do they say something else?"
        )
    elif rule.kind == "suspect" and rule.is_precise:
        question = f"Is that right? A rule doubts it: {rule.reason}"
    else:
        question = "Do the passages say this?"
    if case.is_searched_again:
        question += (
            " These passages are from a second search, also in sources that the claim does not cite. If only "
            "one of those says it, answer `supported` with its pid: the claim names the wrong source."
        )
    refused = ": ".join(filter(None, (join_sentences(case.refusal), case.detail)))
    return f"{question} Your last answer does not count: {refused}." if refused else question
