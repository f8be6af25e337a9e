"""The outcome of a step as data: parsed once, where a member's answer arrives.

Members end a step in words: `STEP FAILED: why`, `PARTIAL: what is missing`, `NEEDS: what another member
could provide`. Models write these labels as a heading, in bold, as a list or between other lines, and say
what they need also under a heading or in a sentence of their own. No code outside of this module looks for
these in a result. Other members and the user read them without the labels.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, model_validator

from maniple.agents.answer_words import NEED, OWN_EXCEPTION, OWN_FAILURE, OWN_NEED
from maniple.agents.outcome_labels import (
    CODE_FENCE,
    FAILED_FIRST,
    HEADING,
    LIST_ITEM,
    MARKS,
    NEEDS_IN_LINE,
    NOTHING,
    Label,
    find_labels,
    in_words,
    is_own,
    read_label,
    strip_marks,
)
from maniple.agents.task import (
    MISSING_IN_IT,
    NEEDED_FOR_IT,
    PARTIAL_WORK,
    SENTENCE_ENDS,
    format_needs,
    strip_list_mark,
)
from maniple.text import shorten

OutcomeStatus = Literal["done", "partial", "failed"]

NO_ANSWER = "the member gave no answer"
NO_REASON = "the member gave no reason"
NOT_SAID = "the member did not say what is missing"
REASON_CHARACTERS = 300
_MAX_NEEDS_CHARACTERS = 2_000
MAX_ENTRIES = 50
"""The limit of findings, and of files, of one step."""

_WRAPPED = re.compile(r"\A\s*(`{3,}|~{3,})[\w-]{0,20}\n(?P<text>.*)\n\1\s*\Z", re.DOTALL)
_DATA = re.compile(r"</?data\b", re.IGNORECASE)
_HEADED = re.compile(
    rf"(?P<marks>{MARKS})(?P<head>[^:：\n]{{2,80}}?)[*_`]{{0,3}}"
    r"(?:(?:[:：][*_`]{0,3}[ \t]+|：[*_`]{0,3})(?P<rest>.*)|[:：][*_`]{0,3}[ \t]*|(?P<bare>[ \t]*))$"
)
"""A line that begins with, or is, a heading: marked as one, in bold, or with a colon."""
_CITATION = re.compile(r"\[\d{1,4}\]")
_EXTENSIONS = (
    "csv|docx?|gif|html?|ipynb|jpe?g|json|log|md|odt|parquet|pdf|png|pptx?|py|sql|svg|tex|tsv|txt|webp|xlsx?"
    "|xml|ya?ml|zip"
)
_PATH = re.compile(
    rf"(?<![\w./:@\\-])(?:[\w-]{{1,80}}/){{0,8}}[\w-]{{1,120}}\.(?:{_EXTENSIONS})\b", re.IGNORECASE
)
_ITEM = re.compile(rf"{_CITATION.pattern}|{_PATH.pattern}", re.IGNORECASE)
_MAX_HEAD_WORDS = 4
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?!\[\d)|(?<=[。！？])(?!\s*\[\d)")


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
        """The reason and what is needed, each shortened, in one line."""
        reason, needs = shorten(self.reason, REASON_CHARACTERS), format_needs(self.needs)
        if needs and reason and reason[-1] not in SENTENCE_ENDS:
            reason += "."
        return " ".join(filter(None, (reason, needs)))


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A member's answer: the text for the others, and its outcome."""

    text: str
    outcome: StepOutcome


def parse_answer(text: str, *, is_report: bool = False) -> ParsedAnswer:
    """Return a member's answer with its outcome.

    A report is done unless it begins with `STEP FAILED:`; other labels in it are about its subject.
    """
    if not text.strip():
        return ParsedAnswer(NO_ANSWER, StepOutcome(status="failed", reason=NO_ANSWER))
    wrapped = _WRAPPED.match(text)
    inner = wrapped["text"] if wrapped else text
    if FAILED_FIRST.match(inner):
        return _failed(inner)
    if is_report:
        return ParsedAnswer(text, _done(text))
    lines = _prose_lines(inner)
    labels = list(find_labels(lines))
    own = [one for one in labels if is_own(one, lines, _end_of(lines, one))]
    if any(one.name == "failed" for one in own):
        return _failed(inner)
    empty = [one for one in own if _says_nothing(lines, one)]
    lacking = [one for one in own if one.name != "needs" and one not in empty]
    lacking = [one for one in lacking if one.is_capital] or lacking
    lacks = [block for one in lacking if (block := _block(lines, one))]
    if any(one.name == "partial" for one in lacking) or lacks:
        return _partial(inner, lines, labels, lacking, lacks)
    if _needs(lines, [one for one in own if one.name == "needs"], in_lines=False):
        return _failed(inner)
    if empty:
        text = _replace_labels(inner, empty)
        lines = _prose_lines(text)
    return _without_label(text, lines)


def _partial(
    text: str, lines: Sequence[str], labels: Sequence[Label], lacking: Sequence[Label], lacks: Sequence[str]
) -> ParsedAnswer:
    """Return the answer whose labels `lacking` say that it is partial, and in `lacks` what is missing."""
    reasons = dict.fromkeys(_list_in_line(one) for one in lacks)
    reason = shorten("; ".join(reasons), REASON_CHARACTERS) or NOT_SAID
    needs = _needs(lines, labels)
    if not needs:
        own = {one.line for one in lacking}
        first = next(number for number, line in enumerate(lines) if line.strip())
        # Below a label that begins the answer stands the result, with its own headings.
        after = min(own) if min(own) > first else _last_heading(lines) - 1
        needs, _ = _spoken_needs(lines, own, headings_after=after)
    update = {"status": "partial", "reason": reason, "needs": needs}
    spoken = [*lacking, *(one for one in labels if one.name == "needs")]
    return ParsedAnswer(_relabel(text, spoken, reason), _done(text).model_copy(update=update))


def _list_in_line(block: str) -> str:
    """Return what a label says in one line, without the marks of a list."""
    lines = (strip_list_mark(line).strip() for line in block.splitlines())
    return shorten("; ".join(filter(None, lines)), REASON_CHARACTERS)


def _without_label(text: str, lines: Sequence[str]) -> ParsedAnswer:
    """Return an answer without labels: partial if its member could not do it, or needs something.

    Its first sentence says so, a last heading in its own name ("What I would need"), or a sentence that says
    what it did everything but.
    """
    at = next((number for number, line in enumerate(lines) if line.strip()), 0)
    first = next((one for one in _SENTENCE_END.split(lines[at]) if one.strip()), "") if lines else ""
    excepted = "" if OWN_FAILURE.search(first) else _find_exception(lines)
    has_failed = bool(excepted) or OWN_FAILURE.search(first) is not None
    needs, headings = _spoken_needs(
        lines, [at], headings_after=-1 if has_failed else _last_heading(lines) - 1
    )
    is_asking = any(OWN_NEED.search(lines[one]) for one in headings)
    if not has_failed and not is_asking:
        return ParsedAnswer(text, _done(text))
    reason = shorten(strip_marks(excepted or first), REASON_CHARACTERS)
    update = {"status": "partial", "reason": reason or NOT_SAID, "needs": needs}
    return ParsedAnswer(text, _done(text).model_copy(update=update))


def _find_exception(lines: Sequence[str]) -> str:
    """Return the sentence of the first or last line in which a member says what it did everything but."""
    written = [line for line in lines if line.strip()] or [""]
    sentences = (one for line in (written[0], written[-1]) for one in _SENTENCE_END.split(line))
    return next((strip_list_mark(one) for one in sentences if OWN_EXCEPTION.search(one)), "")


def parse_failure(text: str) -> ParsedAnswer:
    """Return the outcome of a step that code ended; labels in the text are not the member's."""
    outcome = _done(text).model_copy(update={"status": "failed", "reason": _first_line(text) or NO_REASON})
    return ParsedAnswer(text or NO_REASON, outcome)


def _failed(text: str) -> ParsedAnswer:
    """Return the answer of a member that says that its step failed; the text begins with the reason."""
    found = FAILED_FIRST.match(text)
    text = text[found.end() :] if found else _with_failure_first(text)
    if not text.strip():
        return ParsedAnswer(NO_REASON, StepOutcome(status="failed", reason=NO_REASON))
    lines = _prose_lines(text)
    labels = [one for one in find_labels(lines) if one.name == "needs"]
    own = {number for one in labels for number in range(one.line, _end_of_block(lines, one))}
    reason = next((line for number, line in enumerate(lines) if line.strip() and number not in own), "")
    if found := NEEDS_IN_LINE.search(reason):
        reason = reason[: found.start()]
    needs = _needs(lines, labels)
    if not needs:
        reasons = [at for at, line in enumerate(lines) if line.strip()][:1]
        needs, headings = _spoken_needs(lines, reasons)
        if headings and headings[0] in reasons:
            reason = ""
    if not needs and not reason.strip():
        reason = _first_line(text)
    reason = shorten(strip_marks(reason), REASON_CHARACTERS)
    outcome = _done(text).model_copy(update={"status": "failed", "reason": reason, "needs": needs})
    return ParsedAnswer(_replace_labels(text, labels), outcome)


def _with_failure_first(text: str) -> str:
    """Return a text with what follows its label `STEP FAILED` before what precedes it."""
    lines = _prose_lines(text)
    found = next((one for one in find_labels(lines) if one.name == "failed" and one.is_capital), None)
    if found is None:
        return text
    whole = text.splitlines()
    after = "\n".join([found.rest, *whole[found.line + 1 :]]).strip()
    before = "\n".join(whole[: found.line]).strip()
    return "\n\n".join(filter(None, (after, before)))


def _relabel(text: str, labels: Sequence[Label], reason: str) -> str:
    """Return a partial result that says what is missing in it without a label.

    Members are shown it and quote from it; a label would be taken for their own.
    """
    text = _replace_labels(text, labels)
    is_said = MISSING_IN_IT in text or any(one.name != "needs" and not one.is_prompted for one in labels)
    return text if is_said else f"{text}\n\n{MISSING_IN_IT} {reason}".strip()


def _replace_labels(text: str, labels: Sequence[Label]) -> str:
    """Return a text whose lines with labels say the same in words."""
    lines = [
        NEEDS_IN_LINE.sub(f" {NEEDED_FOR_IT}", line) if is_own else line
        for line, is_own in zip(text.splitlines(), _prose_lines(text), strict=True)
    ]
    for one in labels:
        is_bare = one.says_nothing or (one.is_prompted and not one.rest and one.name != "needs")
        lines[one.line] = "" if is_bare else in_words(one, lines[one.line])
    return "\n".join(lines).strip()


def _prose_lines(text: str) -> list[str]:
    """Return the lines that are the member's own words: those of code, of data and of tools are empty."""
    lines: list[str] = []
    fence, is_data = "", False
    own, mark, rest = text.partition(PARTIAL_WORK)
    for line in own.splitlines():
        opened = CODE_FENCE.match(line)
        is_fence = opened is not None and (not fence or opened[1].startswith(fence))
        if opened is not None and is_fence:
            fence = "" if fence else opened[1]
        tags = _DATA.findall(line)
        lines.append("" if is_fence or fence or is_data or tags else line)
        if tags:
            is_data = not tags[-1].startswith("</")
    return [*lines, *("" for _ in (mark + rest).splitlines()[1:])]


def _block(lines: Sequence[str], label: Label) -> str:
    """Return what a label says: the rest of its line, and the list, or else the paragraph, below it."""
    text = _raw_block(lines, label)
    return "" if NOTHING.fullmatch(strip_marks(text)) else text


def _says_nothing(lines: Sequence[str], label: Label) -> bool:
    """Return whether a label says that nothing is missing, which is not the same as saying nothing."""
    return bool(text := strip_marks(_raw_block(lines, label))) and NOTHING.fullmatch(text) is not None


def _raw_block(lines: Sequence[str], label: Label) -> str:
    below = [line.strip() for line in lines[label.line + 1 : _end_of_block(lines, label)] if line.strip()]
    return "\n".join([label.rest, *below] if label.rest else below)


def _end_of(lines: Sequence[str], label: Label) -> int:
    """Return the number of the line after what a label says; below a heading, after its section."""
    if not HEADING.match(lines[label.line]):
        return _end_of_block(lines, label)
    after = range(label.line + 1, len(lines))
    return next((number for number in after if HEADING.match(lines[number])), len(lines))


def _end_of_block(lines: Sequence[str], label: Label) -> int:
    own, has_text = lines[label.line], bool(label.rest)
    depth = len(own) - len(own.lstrip()) if LIST_ITEM.match(own) else -1
    for number in range(label.line + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            if has_text:
                return number
            continue
        is_below = len(line) - len(line.lstrip()) > depth
        is_item = LIST_ITEM.match(line) is not None
        is_other = read_label(line) is not None or HEADING.match(line)
        if not is_below or is_other or (label.rest and not is_item):
            return number
        has_text = True
    return len(lines)


def _needs(lines: Sequence[str], labels: Sequence[Label], *, in_lines: bool = True) -> str:
    """Return what the labels `NEEDS` say; with `in_lines`, also in the middle of a line."""
    found = {one.line: _block(lines, one) for one in labels if one.name == "needs"}
    for number, line in enumerate(lines if in_lines else ()):
        if number not in found and (inner := NEEDS_IN_LINE.search(line)):
            found[number] = _block(lines, _need_at(number, line[inner.end() :]))
    text = "\n".join(dict.fromkeys(found[number] for number in sorted(found) if found[number]))
    return text[:_MAX_NEEDS_CHARACTERS]


def _need_at(line: int, rest: str) -> Label:
    """Return the label that a need in the middle of a line, or a heading of needs, amounts to."""
    return Label("needs", line, strip_marks(rest), is_capital=True, is_clear=True)


def _spoken_needs(
    lines: Sequence[str], own: Collection[int], *, headings_after: int = -1
) -> tuple[str, list[int]]:
    """Return what a member says without a label that it needs, and the lines of the headings above that.

    The lines `own` are read already: they are no sentences of needs. Headings before a line may be about the
    subject of the result.
    """
    found: dict[str, None] = {}
    headings: list[int] = []
    for number, line in enumerate(lines):
        head = _find_heading(line) if number > headings_after else None
        rest = strip_marks(head["rest"] or "") if head else ""
        is_read = rest and number in own
        if head and not is_read and (block := _block(lines, _need_at(number, rest))):
            headings.append(number)
            is_sentence = rest and len(head["head"].split()) > _MAX_HEAD_WORDS
            found[strip_marks(line) if is_sentence else block] = None
        elif number not in own:
            said = (strip_marks(LIST_ITEM.sub("", one)) for one in _SENTENCE_END.split(line))
            found |= dict.fromkeys(one for one in said if OWN_NEED.search(one))
    blocks = [one for one in found if not any(one != other and one in other for other in found)]
    return "\n".join(blocks)[:_MAX_NEEDS_CHARACTERS], headings


def _find_heading(line: str) -> re.Match[str] | None:
    """Return a line that begins with a heading of what is needed, with its `rest`; None if it is none."""
    head = _HEADED.match(line)
    return head if head and NEED.search(head["head"]) and _is_marked(head) else None


def _is_marked(head: re.Match[str]) -> bool:
    """Return whether a line has marks of a heading, or a colon."""
    return head["bare"] is None or "#" in head["marks"] or head[0].rstrip().endswith(("**", "__"))


def _last_heading(lines: Sequence[str]) -> int:
    heads = ((at, _HEADED.match(line)) for at, line in enumerate(lines))
    return max((at for at, head in heads if head and not head["rest"] and _is_marked(head)), default=0)


def _done(text: str) -> StepOutcome:
    """Return the outcome of a step that is done, with what its text shows."""
    sentences = (one.strip() for line in text.splitlines() for one in _SENTENCE_END.split(line))
    found = (StepFinding(text=one, items=_items_in(one)) for one in sentences)
    return StepOutcome(findings=list(islice((one for one in found if one.items), MAX_ENTRIES)))


def _items_in(sentence: str) -> list[str]:
    return list(dict.fromkeys(one[0] for one in _ITEM.finditer(sentence)))


def _first_line(text: str) -> str:
    return next((shorten(line, REASON_CHARACTERS) for line in text.splitlines() if line.strip()), "")
