"""What a judge model is asked about the claims of a report, and which of its answers count.

There are no calls here: `JudgeRounds` makes the requests and takes the answers. An answer counts only if code
can check it: the words that it points to stand in the passage, and a figure that stands nowhere is calculated
in a way that holds. So a page cannot make its own verdict, whatever it tells the model.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict

from maniple.claims.arithmetic import find_equations
from maniple.claims.context import ClaimContext
from maniple.claims.figures import find_figures
from maniple.claims.judge_passages import PassageFinder, SourcePiece
from maniple.claims.quantities import FigureMention, is_rounded
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim
from maniple.claims.terms import find_terms
from maniple.claims.verdict import SourcePassage, Verdict
from maniple.text import shorten

MAX_BATCH = 20
"""Claims of one request."""
MAX_ROUNDS = 3
"""Requests for one claim: the first, one after an answer that does not count, one with other passages."""
CLAIM_CHARACTERS, CONTEXT_CHARACTERS = 1_200, 300
"""Characters of a claim, and of what stands before it or at its row or column, in a request."""
LEAST_WORDS = 2
"""Words of a claim that its sources know from which the sentence of a span must have one of them."""
OPAQUE = "\ufffc"
CONSTANTS = frozenset(
    map(Decimal, (1, 2, 4, 7, 10, 12, 24, 30, 52, 60, 100, 360, 365, 366, 1_000, 1_024, 3_600, 10**6, 10**9))
)
"""Numbers that a calculation may use although no source has them: of periods, shares and scales."""
SCALES = (1, 10**3, 10**4, 10**6, 10**8, 10**9, 10**12)
"""Scales that a calculation may leave out: `40 / 120` for "40 million"."""
VERDICTS = ("supported", "contradicted", "absent", "unclear")
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


@dataclass(slots=True, eq=False)
class ClaimCase:
    """A claim that a judge has to decide."""

    id: str
    pending: PendingClaim
    absent_figures: tuple[FigureMention, ...]
    """Its figures that stand neither in a cited source nor in what the user said or a program printed."""
    passages: dict[str, SourcePiece] = field(default_factory=dict[str, SourcePiece])
    """What is shown now, by `pid`."""
    shown: list[SourcePiece] = field(default_factory=list[SourcePiece])
    verdict: Verdict | None = None
    """The verdict, once it is accepted."""
    why: str = ""
    """The reason that the model gave. It may repeat what a page says, so it is not part of the verdict."""
    refusal: str = ""
    """Why the last answer does not count, for the model and, if there is no other one, for the user."""
    is_over: bool = False
    """Whether nothing more is asked about it."""
    _has_retried: bool = False

    def show(self, pieces: Sequence[SourcePiece]) -> None:
        """Take the passages to show next; their numbers go on."""
        start = len(self.shown) + 1
        self.passages = {f"{self.id}.{number}": one for number, one in enumerate(pieces, start)}
        self.shown += pieces

    def show_fewer(self) -> None:
        """Leave out the last of the passages."""
        self.passages.popitem()
        self.shown.pop()

    def accept(self, verdict: Verdict) -> None:
        """Take the final verdict."""
        self.verdict, self.is_over = replace(verdict, decided_by="judge"), True

    def refuse(self, reason: str) -> None:
        """Note that an answer does not count; the claim is asked about once more."""
        self.refusal, self.is_over = reason, self._has_retried
        self._has_retried = True

    def give_up(self, reason: str) -> None:
        """Ask nothing more about the claim."""
        self.refusal, self.is_over = reason, True


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


def keep_rule(rule: Verdict, reason: str) -> Verdict:
    """Return what is known about a claim that no judge has decided: what the rules say, or why it is open."""
    if rule.kind == "supported" or rule.is_marked or rule.is_proved:
        return rule
    return Verdict("open", f"not checked by the judge model: {reason}", rule.passage)


class JudgeRounds:
    """The claims that a judge is asked about, from the first request to the verdicts.

    A claim for which no passage is found is not asked about and stays as the rules have left it. Look-ups
    block for some milliseconds for each claim: call the methods in a thread.
    """

    def __init__(self, claims: Iterable[PendingClaim], finder: PassageFinder) -> None:
        self._finder = finder
        self._round = 0
        self.cases: list[ClaimCase] = []
        for number, one in enumerate(claims, start=1):
            case = ClaimCase(f"c{number}", one, ())
            case.show(finder.find(one.claim, one.language))
            if case.passages:
                case.absent_figures = tuple(self._find_absent_figures(one))
                self.cases.append(case)

    def next_batches(self, room: int, measure: Callable[[str], int]) -> list[JudgeBatch]:
        """Return the requests of the next round; none if nothing is left to ask.

        `room` is the largest size of a request, in the unit of `measure`. A claim that is longer by itself
        loses its last passages; if that does not help, it is given up.
        """
        self._round += 1
        batches, cases, texts, size = list[JudgeBatch](), list[ClaimCase](), list[str](), 0
        for case in (one for one in self.cases if not one.is_over and self._round <= MAX_ROUNDS):
            text = _fit_case(case, room, measure)
            if case.is_over:
                continue
            needed = measure(text)
            if cases and (len(cases) == MAX_BATCH or size + needed > room):
                batches.append(_build_batch(cases, texts))
                cases, texts, size = [], [], 0
            cases.append(case)
            texts.append(text)
            size += needed
        return [*batches, *([_build_batch(cases, texts)] if cases else [])]

    def take(self, batch: JudgeBatch, answer: JudgeAnswer) -> None:
        """Take the answer to a request: each claim gets its verdict, is asked about again, or is given up."""
        given = {one.id.strip(): one for one in answer.verdicts}
        counts = Counter(one.id.strip() for one in answer.verdicts)
        for case in batch.cases:
            match counts[case.id]:
                case 0:
                    case.refuse("the answer has no verdict on it")
                case 1:
                    self._take_verdict(case, given[case.id])
                case _:
                    case.refuse("the answer has several verdicts on it")

    def refuse(self, batch: JudgeBatch, reason: str) -> None:
        """Note that an answer as a whole does not count."""
        for case in batch.cases:
            case.refuse(reason)

    def stop(self, reason: str, batch: JudgeBatch | None = None) -> None:
        """Ask nothing more about the claims of a request, or about all that have no verdict."""
        for case in batch.cases if batch else self.cases:
            if not case.is_over:
                case.give_up(reason)

    def verdicts(self) -> Iterator[tuple[PendingClaim, Verdict]]:
        """Yield the claims that were asked about with what is known about them now.

        A verdict that is accepted replaces that of the rules, unless code has proved theirs. Without one, or
        if the judge cannot decide, what a rule supports or marks stays so, and another claim is open.
        """
        for case in self.cases:
            yield case.pending, _settle(case)

    def _take_verdict(self, case: ClaimCase, given: GivenVerdict) -> None:
        case.why = given.why or ""
        verdict = given.verdict.strip().casefold()
        if verdict == "absent":
            self._take_absence(case)
        elif verdict == "unclear":
            case.accept(Verdict("open", "the judge model could not decide it", case.pending.rule.passage))
        elif verdict in VERDICTS:
            self._take_finding(case, given, is_supported=verdict == "supported")
        else:
            case.refuse(f"its verdict is none of {', '.join(VERDICTS)}")

    def _take_absence(self, case: ClaimCase) -> None:
        """Show other passages, or accept that a claim stands nowhere if it was shown all that are like it."""
        claim = case.pending.claim
        if len(case.shown) > len(case.passages):
            case.accept(Verdict("absent", _describe_absence(claim)))
            return
        case.show(self._finder.find(claim, case.pending.language, shown=case.shown, is_wide=True))
        case.refusal = ""
        if not case.passages:
            case.accept(Verdict("absent", _describe_absence(claim)))

    def _take_finding(self, case: ClaimCase, given: GivenVerdict, *, is_supported: bool) -> None:
        """Take a verdict that rests on words of a passage."""
        piece = case.passages.get((given.pid or "").strip())
        part = piece.find_part(given.span or "") if piece else None
        if piece is None:
            case.refuse("its pid is not one of the passages of the claim")
        elif part is None:
            case.refuse("its span does not stand in the passage, word for word")
        elif not self._is_about(case.pending, part):
            case.refuse("the sentence of its span has nothing of the claim")
        elif _is_cited(case.pending.claim, piece):
            self._take_cited(case, given, piece, part, is_supported=is_supported)
        elif is_supported:
            reason = f"stands in [{piece.source}], not in what is cited"
            case.accept(Verdict("contradicted", reason, part))
        else:
            case.refuse("only a cited source can contradict the claim")

    def _take_cited(
        self,
        case: ClaimCase,
        given: GivenVerdict,
        piece: SourcePiece,
        part: SourcePassage,
        *,
        is_supported: bool,
    ) -> None:
        name = (
            f"[{piece.source}]"
            if piece.source
            else "the conversation"
            if piece.origin == "user"
            else "a result"
        )
        if not is_supported:
            if piece.origin == "user":
                case.refuse("only a cited source can contradict the claim")
            else:
                case.accept(Verdict("contradicted", f"{name} says something else (judge model)", part))
        elif missing := self._find_uncalculated(case, given.operation or ""):
            case.refuse(f"{missing} does not stand in the sources, and the operation does not give it")
        else:
            case.accept(Verdict("supported", f"{name} says so (judge model)", part))

    def _is_about(self, pending: PendingClaim, part: SourcePassage) -> bool:
        """Return whether a sentence or row of a source has a word or figure of a claim.

        A claim in another language than its sources may have neither, so only what they know is compared.
        """
        claim = pending.claim
        words = find_terms(f"{claim.row} {claim.column} {claim.text} {claim.before} {claim.heading}")
        known = {one for one in words if any(index.knows(one) for index in self._finder.sources.values())}
        if len(known) < LEAST_WORDS or 2 * len(known) < len(words):
            return True
        if not known.isdisjoint(find_terms(part.text)):
            return True
        figures = {one.value for one in find_figures(claim.text, pending.language)}
        return any(one.value in figures for one in find_figures(part.text))

    def _find_absent_figures(self, pending: PendingClaim) -> Iterator[FigureMention]:
        """Yield the figures of a claim that have to be calculated; none of a claim that a rule supports."""
        if pending.rule.kind == "supported":
            return
        indexes = [*self._known_to(pending.claim)]
        for group in ClaimContext.of(pending.claim, (), (), pending.language).groups:
            if group[0].is_judged and not any(_has_figure(indexes, one) for one in group):
                yield group[0]

    def _known_to(self, claim: Claim) -> Iterator[SourceIndex]:
        """Yield what a claim may rest on: the sources that it cites, or all, and what is no source."""
        sources = self._finder.sources
        cited = [sources[number] for number in claim.citations if number in sources]
        yield from (*(cited or sources.values()), self._finder.given, self._finder.results)

    def _find_uncalculated(self, case: ClaimCase, operation: str) -> str:
        """Return the first figure that stands nowhere and that `operation` does not give; "" if none."""
        known = [*self._known_to(case.pending.claim)]
        for figure in case.absent_figures:
            if not any(_gives(line, figure, known) for line in _split_operations(operation, figure)):
                return figure.text
        return ""


def _settle(case: ClaimCase) -> Verdict:
    rule, judged = case.pending.rule, case.verdict
    if judged is None or rule.is_proved:
        return keep_rule(rule, case.refusal or "it gave no answer")
    if judged.kind == "open" and (rule.kind == "supported" or rule.is_marked):
        return rule
    return judged


def _has_figure(indexes: Iterable[SourceIndex], figure: FigureMention) -> bool:
    return any(index.find_figure(figure) for index in indexes)


def _is_cited(claim: Claim, piece: SourcePiece) -> bool:
    """Return whether a claim may rest on a piece: it cites its source or none, or the piece has no source."""
    return not claim.citations or piece.origin != "source" or piece.source in claim.citations


def _split_operations(operation: str, figure: FigureMention) -> Iterator[str]:
    """Yield the calculations of an answer; one without a result gets the figure as its result."""
    for line in filter(None, map(str.strip, operation.replace(";", "\n").split("\n"))):
        yield line
        if "=" not in line and "≈" not in line:
            yield f"{line} = {figure.text}"


def _gives(operation: str, figure: FigureMention, known: Sequence[SourceIndex]) -> bool:
    """Return whether a calculation holds, gives a figure, and uses only what is known."""
    figures = find_figures(operation)
    for one in find_equations(operation, figures=figures):
        operands = [
            each for each in figures if one.start <= each.start < one.end and each.start != one.result.start
        ]
        is_known = all(abs(each.value) in CONSTANTS or _is_known(known, each) for each in operands)
        if one.holds and is_known and _is_value_of(one.expected, figure):
            return True
    return False


def _is_known(known: Sequence[SourceIndex], operand: FigureMention) -> bool:
    """Return whether a source has an operand, also if the calculation leaves out its unit or scale."""
    if _has_figure(known, operand):
        return True
    bare = replace(operand, kind="number", unit="")
    scales = (1,) if operand.scale != 1 else SCALES
    return any(_has_figure(known, _scaled(bare, Decimal(scale))) for scale in scales)


def _scaled(figure: FigureMention, scale: Decimal) -> FigureMention:
    readings, steps = (tuple(value * scale for value in some) for some in (figure.readings, figure.steps))
    return replace(figure, readings=readings, steps=steps)


def _is_value_of(value: Decimal, figure: FigureMention) -> bool:
    """Return whether a calculated value is that of a figure, up to the scale of its unit, and rounded."""
    for reading, step in zip(figure.readings, figure.steps, strict=True):
        for scale in {Decimal(1), figure.scale, figure.factor, figure.scale * figure.factor}:
            for found in {value, value * 100} if figure.kind == "percent" else {value}:
                if is_rounded(found * scale, figure, reading, step):
                    return True
    return False


def _describe_absence(claim: Claim) -> str:
    cited = ", ".join(f"[{number}]" for number in claim.citations)
    return (
        f"the judge model found it nowhere in {cited}" if cited else "the judge model found it in no source"
    )


def _fit_case(case: ClaimCase, room: int, measure: Callable[[str], int]) -> str:
    """Return the JSON of a claim, with as many passages as fit."""
    text = _describe_case(case)
    while measure(text) > room and len(case.passages) > 1:
        case.show_fewer()
        text = _describe_case(case)
    if measure(text) > room:
        case.give_up("it does not fit into the window of the model")
    return text


def _build_batch(cases: Sequence[ClaimCase], texts: Sequence[str]) -> JudgeBatch:
    return JudgeBatch(tuple(cases), '{"claims": [\n' + ",\n".join(texts) + "\n]}")


def _describe_case(case: ClaimCase) -> str:
    claim = case.pending.claim
    described = {
        "id": case.id,
        "text": shorten(claim.text.replace(OPAQUE, "…"), CLAIM_CHARACTERS),
        "row": shorten(claim.row, CONTEXT_CHARACTERS),
        "column": shorten(claim.column, CONTEXT_CHARACTERS),
        "before": shorten(claim.before.replace(OPAQUE, "…"), CONTEXT_CHARACTERS),
        "passages": [
            {"pid": pid, "source": _name_source(one), "heading": one.heading, "text": one.text}
            for pid, one in case.passages.items()
        ],
        "question": _ask(case),
    }
    return json.dumps({key: value for key, value in described.items() if value}, ensure_ascii=False)


def _name_source(piece: SourcePiece) -> str:
    return {"source": f"[{piece.source}]", "user": "the user", "program": "a program's output"}[piece.origin]


def _ask(case: ClaimCase) -> str:
    """Return what is to be found out about a claim, and what was wrong with the answer before."""
    rule = case.pending.rule
    if case.absent_figures:
        figures = ", ".join(one.text for one in case.absent_figures)
        question = f"{figures} was not found in the sources. From which of their figures does it follow?"
    elif rule.kind == "suspect":
        question = f"Is that right? A rule doubts it: {rule.reason}"
    else:
        question = "Do the passages say this?"
    return f"{question} Your last answer does not count: {case.refusal}." if case.refusal else question
