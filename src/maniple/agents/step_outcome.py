"""The outcome of a step as data: parsed once, where a member's answer arrives.

Members end a step in words: `STEP FAILED: why`, `PARTIAL: what is missing`, `NEEDS: what another member
could provide`. Models write these labels as a heading, in bold, as a list or between other lines. No code
outside of this module looks for them in a result.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from pydantic import BaseModel, model_validator

from maniple.agents.task import MISSING_IN_IT, PARTIAL_WORK
from maniple.text import shorten
from maniple.types import STEP_NEEDS

OutcomeStatus = Literal["done", "partial", "failed"]
LabelName = Literal["failed", "partial", "missing", "needs"]

NO_ANSWER = "the member gave no answer"
NO_REASON = "the member gave no reason"
NOT_SAID = "the member did not say what is missing"
REASON_CHARACTERS = 300
_MAX_NEEDS_CHARACTERS = 2_000
MAX_ENTRIES = 50
"""The limit of findings, and of files, of one step."""

_MARKS = r"[ \t>|*#_`~+•-]{0,20}(?:\d{1,2}[.)][ \t*_`]{0,10})?"
_WORDS = "|".join(
    (
        "(?P<failed>STEP[ _]FAILED)",
        "(?P<partial>(?:STEP[ _])?PARTIAL(?:LY DONE)?)",
        "(?P<missing>MISSING)",
        "(?P<needs>NEEDS?)",
    )
)
_ASIDE = r"(?:[ \t]{0,5}\([^()\n]{0,60}\))?"
_SEPARATOR = r"[ \t*_`]{0,10}(?:[:：|]|[-–—=](?=\s|$))"
_LABEL = re.compile(
    rf"{_MARKS}(?:{_WORDS}){_ASIDE}(?:{_SEPARATOR}(?P<rest>.*)|[ \t*_`]{{0,10}}$)", re.IGNORECASE
)
_BEGINNING = re.compile(r"\A[\s*#_`]{0,50}STEP FAILED\b[\s:*_`]*", re.IGNORECASE)
_NEEDS_IN_LINE = re.compile(r"[\s(*_]{1,6}NEEDS[*_]{0,3}[:：]")
_CODE_FENCE = re.compile(r"[ \t>]{0,6}(`{3,}|~{3,})")
_WRAPPED = re.compile(r"\A\s*(`{3,}|~{3,})[\w-]{0,20}\n(?P<text>.*)\n\1\s*\Z", re.DOTALL)
_DATA = re.compile(r"</?data\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"[ \t]{0,20}(?:[-*+•]|\d{1,2}[.)])[ \t]")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_NOTHING = re.compile(
    r"(?:none|nothing|no|n/?a|null|nil|keine?s?|nichts|rien|nada|无|没有)?[\s.!-]*", re.IGNORECASE
)
_CITATION = re.compile(r"\[\d{1,4}\]")
_EXTENSIONS = (
    "csv|docx?|gif|html?|ipynb|jpe?g|json|log|md|odt|parquet|pdf|png|pptx?|py|sql|svg|tex|tsv|txt|webp|xlsx?"
    "|xml|ya?ml|zip"
)
_PATH = re.compile(
    rf"(?<![\w./:@\\-])(?:[\w-]{{1,80}}/){{0,8}}[\w-]{{1,120}}\.(?:{_EXTENSIONS})\b", re.IGNORECASE
)
_ITEM = re.compile(rf"{_CITATION.pattern}|{_PATH.pattern}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?!\[\d)|(?<=[。！？])(?!\s*\[\d)")
_NAMES: tuple[LabelName, ...] = get_args(LabelName)
_ABOUT_ANOTHER_STEP = "the step '"
"""Follows `MISSING:` in a line about another step (`StepResult.describe_missing`), which a member quotes."""


class StepFinding(BaseModel):
    """A sentence of a result with the items that it rests on."""

    text: str
    items: list[str] = []
    """Its citations, as `[3]`, and the paths of the items that it names, in their order."""

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value  # as it was stored at first


class StepOutcome(BaseModel):
    """How a member ended its step."""

    status: OutcomeStatus = "done"
    reason: str = ""
    """Why it failed, in one line; for a partial result, what is missing in it."""
    needs: str = ""
    """What another member could provide; it may have several lines."""
    findings: list[StepFinding] = []
    """The sentences of the result that cite a source or name an item of the thread."""
    files: list[str] = []
    """The paths of the files that the step made or changed."""

    @property
    def summary(self) -> str:
        """The reason and what is needed, in one short line."""
        needs = f"{STEP_NEEDS} {self.needs}" if self.needs else ""
        return shorten(" ".join(filter(None, (self.reason, needs))), REASON_CHARACTERS)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A member's answer: the text for the others, and its outcome."""

    text: str
    outcome: StepOutcome


@dataclass(frozen=True, slots=True)
class _Label:
    """A label at the beginning of a line."""

    name: LabelName
    line: int
    rest: str
    is_capital: bool


def parse_answer(text: str, *, is_report: bool = False) -> ParsedAnswer:
    """Return a member's answer with its outcome.

    A report is done unless it begins with `STEP FAILED:`; other labels in it are about its subject.
    """
    if not text.strip():
        return ParsedAnswer(NO_ANSWER, StepOutcome(status="failed", reason=NO_ANSWER))
    wrapped = _WRAPPED.match(text)
    inner = wrapped["text"] if wrapped else text
    if _BEGINNING.match(inner):
        return _failed(inner)
    if is_report:
        return ParsedAnswer(text, _done(text))
    lines = _prose_lines(inner)
    labels = list(_labels(lines))
    if any(one.name == "failed" and one.is_capital for one in labels):
        return _failed(inner)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    partial = [one for one in labels if one.name == "partial" and (one.is_capital or one.line == first)]
    missing = [one for one in labels if one.name == "missing" and one.is_capital]
    missing = [one for one in missing if not one.rest.startswith(_ABOUT_ANOTHER_STEP)]
    lacks = [block for one in (*partial, *missing) if (block := _block(lines, one))]
    if partial or lacks:
        reason = shorten(
            "; ".join(dict.fromkeys(shorten(one, REASON_CHARACTERS) for one in lacks)), REASON_CHARACTERS
        )
        outcome = _done(text).model_copy(
            update={"status": "partial", "reason": reason or NOT_SAID, "needs": _needs(lines, labels)}
        )
        return ParsedAnswer(_relabel(inner, [*partial, *missing], outcome.reason), outcome)
    if _needs(lines, [one for one in labels if one.is_capital], in_lines=False):
        return _failed(inner)
    return ParsedAnswer(text, _done(text))


def parse_failure(text: str) -> ParsedAnswer:
    """Return the outcome of a step that code ended; labels in the text are not the member's."""
    outcome = _done(text).model_copy(update={"status": "failed", "reason": _first_line(text) or NO_REASON})
    return ParsedAnswer(text or NO_REASON, outcome)


def _failed(text: str) -> ParsedAnswer:
    """Return the answer of a member that says that its step failed; the text begins with the reason."""
    found = _BEGINNING.match(text)
    text = text[found.end() :] if found else _with_failure_first(text)
    if not text.strip():
        return ParsedAnswer(NO_REASON, StepOutcome(status="failed", reason=NO_REASON))
    lines = _prose_lines(text)
    labels = [one for one in _labels(lines) if one.name == "needs"]
    own = {one.line for one in labels}
    reason = next((line for number, line in enumerate(lines) if line.strip() and number not in own), "")
    if found := _NEEDS_IN_LINE.search(reason):
        reason = reason[: found.start()]
    needs = _needs(lines, labels)
    if not needs and not reason.strip():
        reason = _first_line(text)
    reason = shorten(_strip_marks(reason), REASON_CHARACTERS)
    return ParsedAnswer(
        text, _done(text).model_copy(update={"status": "failed", "reason": reason, "needs": needs})
    )


def _with_failure_first(text: str) -> str:
    """Return a text with what follows its label `STEP FAILED` before what precedes it."""
    lines = _prose_lines(text)
    found = next((one for one in _labels(lines) if one.name == "failed" and one.is_capital), None)
    if found is None:
        return text
    whole = text.splitlines()
    after = "\n".join([found.rest, *whole[found.line + 1 :]]).strip()
    before = "\n".join(whole[: found.line]).strip()
    return "\n\n".join(filter(None, (after, before)))


def _relabel(text: str, labels: Sequence[_Label], reason: str) -> str:
    """Return a partial result that says what is missing in it without a label.

    Members are shown it and quote from it; a label would be taken for their own.
    """
    lines = text.splitlines()
    for one in labels:
        lines[one.line] = f"{MISSING_IN_IT} {one.rest}" if one.rest else ""
    text = "\n".join(lines).strip()
    return text if MISSING_IN_IT in text else f"{text}\n\n{MISSING_IN_IT} {reason}".strip()


def _prose_lines(text: str) -> list[str]:
    """Return the lines that are the member's own words: those of code, of data and of tools are empty."""
    lines: list[str] = []
    fence, is_data = "", False
    own, mark, rest = text.partition(PARTIAL_WORK)
    for line in own.splitlines():
        opened = _CODE_FENCE.match(line)
        is_fence = opened is not None and (not fence or opened[1].startswith(fence))
        if opened is not None and is_fence:
            fence = "" if fence else opened[1]
        tags = _DATA.findall(line)
        lines.append("" if is_fence or fence or is_data or tags else line)
        if tags:
            is_data = not tags[-1].startswith("</")
    return [*lines, *("" for _ in (mark + rest).splitlines()[1:])]


def _labels(lines: Sequence[str]) -> Iterator[_Label]:
    for number, line in enumerate(lines):
        if found := _LABEL.match(line):
            name: LabelName = next(name for name in _NAMES if found[name])
            word = found[name]
            yield _Label(name, number, _strip_marks(found["rest"] or ""), word == word.upper())


def _block(lines: Sequence[str], label: _Label) -> str:
    """Return what a label says: the rest of its line, and the list, or else the paragraph, below it."""
    own = lines[label.line]
    depth = len(own) - len(own.lstrip()) if _LIST_ITEM.match(own) else -1
    block = [label.rest] if label.rest else []
    for line in lines[label.line + 1 :]:
        if not line.strip():
            if block:
                break
            continue
        is_below = len(line) - len(line.lstrip()) > depth
        is_item = _LIST_ITEM.match(line) is not None
        if not is_below or _LABEL.match(line) or _HEADING.match(line) or (label.rest and not is_item):
            break
        block.append(line.strip())
    text = "\n".join(block)
    return "" if _NOTHING.fullmatch(_strip_marks(text)) else text


def _needs(lines: Sequence[str], labels: Sequence[_Label], *, in_lines: bool = True) -> str:
    """Return what the labels `NEEDS` say; with `in_lines`, also in the middle of a line."""
    found = {one.line: _block(lines, one) for one in labels if one.name == "needs"}
    for number, line in enumerate(lines if in_lines else ()):
        if number not in found and (inner := _NEEDS_IN_LINE.search(line)):
            found[number] = _block(lines, _Label("needs", number, _strip_marks(line[inner.end() :]), True))
    text = "\n".join(dict.fromkeys(found[number] for number in sorted(found) if found[number]))
    return text[:_MAX_NEEDS_CHARACTERS]


def _done(text: str) -> StepOutcome:
    """Return the outcome of a step that is done, with what its text shows."""
    sentences = (one.strip() for line in text.splitlines() for one in _SENTENCE_END.split(line))
    found = (StepFinding(text=one, items=_items_in(one)) for one in sentences)
    return StepOutcome(findings=list(islice((one for one in found if one.items), MAX_ENTRIES)))


def _items_in(sentence: str) -> list[str]:
    return list(dict.fromkeys(one[0] for one in _ITEM.finditer(sentence)))


def _first_line(text: str) -> str:
    return next((shorten(line, REASON_CHARACTERS) for line in text.splitlines() if line.strip()), "")


def _strip_marks(text: str) -> str:
    return text.strip(" \t*_`|")
