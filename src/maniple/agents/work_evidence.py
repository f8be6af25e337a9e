"""Signs in an answer that its member did not do the work: an announced call, or results without any call.

Most signs are of form and hold in every language; `answer_words` has the words for what has no form.
"""

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import product
from math import isclose
from typing import Literal
from urllib.parse import urlsplit

from maniple.agents.answer_words import (
    ACCESS,
    ANNOUNCES,
    EXECUTED,
    FAILED,
    FILE_ROLES,
    FROM_KNOWLEDGE,
    LIMITS,
    MENTIONS,
    MODALITY,
    SOURCES,
    TOOL_WORK,
)
from maniple.agents.call_envelopes import MARKS
from maniple.agents.deliverables import (
    find_claimed_files,
    find_file_names,
    is_among,
    is_claimed,
    prose_of,
    split_sentences,
    without_code,
)
from maniple.agents.done_calls import DoneCall, names_address, shows_address, shows_file
from maniple.agents.hand_work import HandWork, find_claimed_work, find_ordered_work
from maniple.agents.step_outcome import parse_answer
from maniple.agents.text_calls import find_calls, find_own_calls, without_blocks
from maniple.types import Worker

WORK, WRITTEN, DRAWING = "the work", "a written file", "the drawing"
"""What is unsupported if a step needs a tool, or if an answer says that it wrote or drew."""
_RUN = "what was run"
_HAND_WORK: dict[HandWork, str] = {"runs": _RUN, "draws": DRAWING, "saves": WRITTEN}
_HANDS_ONLY: frozenset[Worker] = frozenset({"browser", "browsing", "file_manager"})
"""Members all of whose work is done with tools."""
_MAX_CHARACTERS = 20_000
_FENCE_END = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*")
_CALL_MARKS = re.compile(rf"```[ \t]*tool_(?:code|calls?|use)\b|{MARKS}", re.IGNORECASE | re.MULTILINE)
_CALL_CLOSING = re.compile(r"^[ \t]*```[ \t]*$|</[^>\n]{1,40}>|<[|｜][^>\n]{0,40}end[|｜]>", re.MULTILINE)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]{1,200}`(?!`)")
_MARKUP = " \t*_`>#"
_LAST_SENTENCE = re.compile(r"[.!?。！？…]\s+|[。！？]|\n")
_CUT_SENTENCE = 300
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_PART_END = re.compile(r"\n|[.!?…]\s+(?=\S)|[。！？](?=.)")
"""Ends a sentence or a line that another one follows."""
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]，。]+", re.IGNORECASE)
_NEAR = 60
"""How far before an address a word says what to do with it."""
_BESIDE = 12
"""How far before a name a negation is about it: not from a.test."""
_CLAUSE_END = re.compile(r"[,，、;；(]|\b(?:but|that|aber|dass|mais|que|pero)\b|但", re.IGNORECASE)
_LIST_MARK = re.compile(r"^[ \t>]*\d{1,3}[.)、][ \t]*", re.MULTILINE)
_CITATION = re.compile(r"\[\d{1,4}\]")
_NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?:[.,'\u202f\u00a0 ]\d{3})*(?:[.,]\d+)?")
_MAX_NUMBERS = 60
_SMALL = 10
"""Whole numbers up to this one are counted without a program."""
_FEW_NUMBERS = 10
_ROUNDED = 0.005
"""The greatest difference to a result that is given with two decimals."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_WORDS_BESIDE_ADDRESSES = 3
_ACTS = "acts"
"""The kind of `TOOL_WORK` that changes something."""
_WORD_OR_NUMBER = re.compile(r"[^\W\d_]{4,}|\d[\d.,]*")
_STEM = 6
_MIN_REPEATED, _REPEATED_SHARE = 2, 0.6
"""An answer repeats results if so many of its words and numbers are known, beside those of its order."""
_MATERIAL = re.compile(
    r"^[ \t>]*(`{3,}|~{3,}).*?(?:^[ \t>]*\1[ \t]*$|\Z)|\{[^}]{6,2000}\}"
    r"|[\"“„«‘「《][^\"”“»’」》]{19,}[\"”“»’」》]|(?<!\w)'[^'\n]{19,}'(?!\w)"
    r"|(?:：|:(?=\s))[\s\d.*-]*(?P<rest>.{6,})\Z",
    re.MULTILINE | re.DOTALL,
)
"""What a task brings along to work on: code, data, a quotation, or what follows a colon."""


Announcement = Literal["call", "colon", "words"]


def find_announcement(answer: str, tools: Set[str] = frozenset()) -> Announcement | None:
    """Return how an answer is, or announces at its end, an unmade call of a tool; None if it does not.

    `tools` are the names of the member's tools: a call of another one that ends an answer is an example.
    """
    text = answer.strip()
    if not text:
        return None
    before, fenced = _split_last_fence(text[-_MAX_CHARACTERS:])
    whole = text if not fenced or before.strip() else fenced
    if _is_call(whole, tools) or _has_call_at_end(text) or (not fenced and find_own_calls(text, tools)):
        return "call"
    if fenced and before.strip():
        is_announced = _find_announced(before.rstrip().rstrip(":：")) == "words"
        return "call" if _is_call(fenced, tools, only_own=True) else "words" if is_announced else None
    return _find_announced(text)


def before_announcement(answer: str, how: Announcement) -> str:
    """Return an answer without the announcement or the call that ends it."""
    ends = [one.end() for one in (_PARAGRAPH_END if how == "call" else _PART_END).finditer(answer)]
    return answer[: ends[-1]].strip() if ends else ""


def _split_last_fence(text: str) -> tuple[str, str]:
    """Return the text before the fenced code that ends it, and that; without such code, the text and ""."""
    lines = text.splitlines()
    end = _FENCE_END.fullmatch(lines[-1])
    opened = (at for at in reversed(range(len(lines) - 1)) if end and lines[at].lstrip().startswith(end[1]))
    start = next(opened, None)
    if start is None:
        return text, ""
    return "\n".join(lines[:start]), "\n".join(lines[start + 1 : -1]).strip()


def _find_announced(text: str) -> Announcement | None:
    last_line = text.rstrip().rpartition("\n")[2].strip(_MARKUP)
    if last_line.endswith((":", "：")):
        return "colon"
    last = [one for one in _LAST_SENTENCE.split(last_line) if one.strip()][-1:]
    sentence = last[0].strip(_MARKUP) if last else ""
    return "words" if len(sentence) <= _CUT_SENTENCE and ANNOUNCES.match(sentence) else None


def _is_call(text: str, tools: Set[str], *, only_own: bool = False) -> bool:
    """Return whether a text is nothing but calls of tools; with `only_own`, of those in `tools`."""
    blocks = find_calls(text, tools)
    if without_blocks(text, blocks):
        return False
    calls = [call for one in blocks for call in one.calls]
    return any(one.name in tools or one.is_envelope or (one.is_sure and not only_own) for one in calls)


def _has_call_at_end(text: str) -> bool:
    """Return whether the text ends with a call in some model's marks; prose follows an example."""
    shown = _INLINE_CODE.sub(" ", text[-_MAX_CHARACTERS:])
    marks = [*_CALL_MARKS.finditer(shown)]
    if not marks:
        return False
    _, *after = _CALL_CLOSING.split(shown[marks[-1].end() :])
    return not after or not after[-1].strip()


@dataclass(frozen=True, slots=True)
class StepTexts:
    """What a member was shown of its step, and what it did."""

    member: Worker
    asked: str
    """What the step asks for."""
    given: str
    """All that it was shown, which contains `asked`."""
    results: str = ""
    """The results of other steps, which are part of it."""
    earlier: str = ""
    """What it, and the team, answered in earlier turns."""
    searches: bool = True
    """Whether it can search the web; a researcher that cannot also gives what it knows."""
    sees: bool = False
    """Whether it was shown pictures, whose figures nobody else reads."""
    files: Collection[str] = ()
    """The paths of the thread's files whose contents it was not shown."""
    has_failed_calls: bool = False
    """Whether it called tools that failed, so that it may report their failure."""
    calls: Sequence[DoneCall] = ()
    """Those that succeeded."""
    has_made_files: bool | None = None
    """Whether a file was made or changed in the step; None if that is unknown."""
    is_told: bool = False
    """Whether the user answered a question of the member: its step may need less than its order says."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What in an answer can only come from a tool."""

    what: str
    """As it is said to the member."""
    may_be_known: bool = False
    """Whether the member may also know it by itself."""


def find_unsupported(step: StepTexts, answer: str) -> Unsupported | None:
    """Return what in the answer of a member can only come from a call that it did not make; None for nothing.

    A failure claims nothing, and no answer does that begins with a question or with what cannot be done. What
    a step brings along can be translated, rewritten or summarised without a tool.
    """
    text = answer.strip()
    status = parse_answer(text).outcome.status if text else "failed"
    if status == "failed" or _begins_without_claim(text):
        return None
    if step.calls:
        what = _find_beside_calls(step, text) if status == "done" else ""
        return Unsupported(what) if what else None
    return _find_without_calls(step, text)


def _find_without_calls(step: StepTexts, text: str) -> Unsupported | None:
    if step.has_failed_calls and _reports_failure(text, step):
        return None
    shown = f"{step.given}\n{step.earlier}"
    new = (one for one in _ADDRESS.findall(without_code(text)) if one.rstrip(".,;") not in shown)
    if address := next(new, ""):
        return Unsupported(address[:100])
    order, material = _split_material(step.asked[:_MAX_CHARACTERS])
    if not set(find_claimed_files(text, with_links=False)) <= set(find_file_names(material)):
        return Unsupported(WRITTEN)
    material += step.results
    is_said_run = any(is_claimed(one, EXECUTED) for one in split_sentences(prose_of(text)))
    if is_said_run and not EXECUTED.search(f"{material}\n{step.earlier}"):
        return Unsupported(_RUN)
    if what := _find_hand_work(step, order, material, text):
        return Unsupported(what)
    number, is_computed = _find_new_number(text, step)
    is_known = is_computed or (_repeats_results(text, step) and not _orders_acts(order))
    if not is_known and (what := _find_tool_work(step, order, has_material=bool(material) or step.sees)):
        return Unsupported(what)
    needs_tool = not step.sees and TOOL_WORK.search(order) is not None
    finds_figures = step.member == "coder" or (step.member == "researcher" and step.searches)
    finds_figures = finds_figures and not step.sees and not FROM_KNOWLEDGE.search(order)
    return Unsupported(number, not needs_tool) if number and (finds_figures or needs_tool) else None


def _find_hand_work(step: StepTexts, order: str, material: str, text: str) -> str:
    """Return what the order asks to run, draw or save and the answer claims, and no call can have done."""
    if _is_explained(order):
        return ""
    kinds = find_ordered_work(order, has_address=_ADDRESS.search(order) is not None)
    undone: list[HandWork] = [
        kind for kind in kinds if not any(_may_have_done(one, kind, step) for one in step.calls)
    ]
    claimed = find_claimed_work(text, undone, f"{material}\n{step.results}\n{step.earlier}")
    return _HAND_WORK[claimed] if claimed else ""


def _may_have_done(call: DoneCall, work: HandWork, step: StepTexts) -> bool:
    """Return whether a call can have done a kind of work; a program that drew or saved left a file."""
    if call.runs_programs and work != "runs" and step.has_made_files is False:
        return False
    return call.may_have_done(work)


def _find_beside_calls(step: StepTexts, text: str) -> str:
    is_program = any(one.runs_programs for one in step.calls)
    if is_program and step.has_made_files is not False:
        return ""  # it may have done any work
    order, material = _split_material(step.asked[:_MAX_CHARACTERS])
    if (what := _find_hand_work(step, order, material, text)) or is_program:
        return what  # a program may compute the names of what it reads
    return _find_unseen(step, order, text)


def _find_unseen(step: StepTexts, order: str, text: str) -> str:
    """Return what the order names that no call showed, and the answer does not leave out; "" for nothing."""
    if step.is_told or _is_explained(order):
        return ""
    known = f"{step.results}\n{step.earlier}"
    for address in _find_addresses(order):
        is_known = shows_address(step.calls, address) or names_address(known, address)
        if not is_known and not _is_left_out(text, [urlsplit(address).hostname or address]):
            return f"what {address[:100]} shows"
    for name in find_file_names(order):
        paths = [one for one in step.files if is_among(name, [one])]
        own = name.casefold().rpartition("/")[2]
        is_known = not paths or shows_file(step.calls, name, paths) or own in known.casefold()
        if not is_known and not _is_left_out(text, [own, own.rpartition(".")[0]]):
            return f"what was done with `{name}`"
    return ""


def _find_addresses(order: str) -> list[str]:
    """Return the addresses that an order says to open, without those that are to be written down."""
    return [
        found[0].rstrip(".,;:!?*_")
        for sentence in split_sentences(order)
        for found in _ADDRESS.finditer(sentence)
        if not MENTIONS.search(sentence[max(0, found.start() - _NEAR) : found.start()])
    ]


def _is_left_out(text: str, names: Collection[str]) -> bool:
    """Return whether an answer says that a part of the work was not done, such as what has one of `names`.

    That a page does not have something is no such sentence.
    """
    sentences = split_sentences(without_code(text))
    clauses = [one.casefold() for sentence in sentences for one in _CLAUSE_END.split(sentence)]
    return any(_says_left_out(one, [name.casefold() for name in names]) for one in clauses)


def _says_left_out(clause: str, names: Collection[str]) -> bool:
    lacks = {one.lastgroup: one.end() for one in MODALITY.finditer(clause)}
    has_failed = "unable" in lacks or FAILED.search(clause) is not None
    if not has_failed and "negated" not in lacks and not LIMITS.search(clause):
        return False
    if ACCESS.search(clause):
        return True
    places = [at for name in names if (at := clause.find(name)) >= 0]
    is_named = any(has_failed or 0 <= at - lacks.get("negated", at + 1) <= _BESIDE for at in places)
    return is_named or (has_failed and SOURCES.search(clause) is not None)


def files_in_material(asked: str) -> list[str]:
    """Return the names of files in what a task brings along to work on, such as a text to translate."""
    return find_file_names(_split_material(asked[:_MAX_CHARACTERS])[1])


def _split_material(asked: str) -> tuple[str, str]:
    """Return an order without its material, and that; in "Tests: run them" and "Read: URL" there is none."""
    found = [one for one in _MATERIAL.finditer(asked) if not _is_order(one["rest"] or "")]
    order = asked
    for one in reversed(found):
        order = f"{order[: one.start()]} {order[one.end() :]}"
    return order, "\n".join(one[0] for one in found)


def _is_order(rest: str) -> bool:
    """Return whether what follows a colon belongs to the order: what is to be done, or addresses to open."""
    if TOOL_WORK.match(rest):
        return True
    beside = _ADDRESS.sub(" ", rest)
    return beside != rest and len(_WORD.findall(beside)) <= _WORDS_BESIDE_ADDRESSES


def _begins_without_claim(text: str) -> bool:
    first = next(iter(split_sentences(text)), "").strip(_MARKUP)
    # The end of a Chinese sentence is no part of it.
    is_question = first.endswith("?") or text[text.find(first) + len(first) :].startswith("？")
    return is_question or any(one.lastgroup == "unable" for one in MODALITY.finditer(first))


def _reports_failure(text: str, step: StepTexts) -> bool:
    """Return whether a member whose calls failed begins with that, and gives no number from elsewhere."""
    if parse_answer(text).outcome.status == "partial":
        return True
    first = next(iter(split_sentences(text)), "")
    is_failure = FAILED.search(first) or any(one.lastgroup == "negated" for one in MODALITY.finditer(first))
    return bool(is_failure) and not _find_new_number(text, step)[0]


def _find_tool_work(step: StepTexts, order: str, *, has_material: bool) -> str:
    """Return what the member or its order needs tools for; "" for nothing."""
    if step.member in _HANDS_ONLY:
        return WORK
    if _is_explained(order):
        return ""
    if _ADDRESS.search(order):
        return "what the page shows"
    at_hand = (one for one in find_file_names(order) if is_among(one, step.files))
    if name := next(at_hand, ""):
        return f"what was done with `{name}`"
    kinds = _kinds_of(order)
    return WORK if _ACTS in kinds or (kinds and not has_material) else ""


def _orders_acts(order: str) -> bool:
    """Return whether an order asks to do what only a tool can do, whatever is known."""
    roles = {one.lastgroup for one in FILE_ROLES.finditer(order)}
    return not roles.isdisjoint({"write", "carry"}) or _ACTS in _kinds_of(order)


def _kinds_of(order: str) -> set[str | None]:
    return {one.lastgroup for one in TOOL_WORK.finditer(order)}


def _repeats_results(text: str, step: StepTexts) -> bool:
    """Return whether an answer says again what other steps, or answers before, have said."""
    known, asked = f"{step.results}\n{step.earlier}".casefold(), step.asked.casefold()
    words = {one.casefold()[:_STEM] for one in _WORD_OR_NUMBER.findall(prose_of(text))}
    words = {one for one in words if one not in asked}
    return len(words) >= _MIN_REPEATED and sum(one in known for one in words) >= _REPEATED_SHARE * len(words)


def _is_explained(order: str) -> bool:
    return any(one.lastgroup == "explained" for one in MODALITY.finditer(order))


def _find_new_number(text: str, step: StepTexts) -> tuple[str, bool]:
    """Return a number that does not follow from the given ones, and whether the answer is a simple result.

    A simple result follows from the numbers of the step itself. What follows from them, as an interim result,
    may be computed with, and so may the small numbers of the answer.
    """
    known, asked = _values_of(f"{step.given}\n{step.earlier}"), _values_of(step.asked)
    prose = _INLINE_CODE.sub(" ", _CITATION.sub(" ", _LIST_MARK.sub("", prose_of(text))))
    numbers = [(one, _value(one)) for one in _NUMBER.findall(prose)]
    small = {value for one, value in numbers if one.isdecimal() and value <= _SMALL}
    basis, new = asked | small, list[str]()
    for one, value in numbers:
        if _is_derived(value, basis):
            basis.add(value)
        elif value not in known and value not in small and not _is_derived(value, known):
            new.append(one)
    is_simple = not new and any(value not in asked and _is_derived(value, asked) for _, value in numbers)
    return next(iter(new), ""), is_simple


def _values_of(text: str) -> set[float]:
    return {_value(one) for one in _NUMBER.findall(text)}


def _value(number: str) -> float:
    """Return the value of a number with any sign for thousands and decimals."""
    compact = re.sub(r"['\u202f\u00a0 ]", "", number)
    sign = "," if compact.rfind(",") > compact.rfind(".") else "."
    whole, mark, part = compact.rpartition(sign)
    if mark and len(part) != 3:
        return float(f"{re.sub('[.,]', '', whole)}.{part}")
    return float(re.sub("[.,]", "", compact))


def _is_derived(value: float, known: set[float]) -> bool:
    """Return whether a value follows from the known ones without a program: 3 pm is 15:00."""
    if 12 < value <= 24 and value - 12 in known:
        return True
    few = sorted(known)[:_MAX_NUMBERS]
    if any(value + one in known or value - one in known for one in few if one):
        return True
    pairs = product(few, repeat=2) if len(few) <= _FEW_NUMBERS else ()
    return any(
        isclose(value, found, abs_tol=_ROUNDED)
        for one, other in pairs
        for found in (one * other, one * other / 100, one / other if other else one)
    )
