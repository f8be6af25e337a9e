"""Edits of a report by section: the blocks in which a model writes them, and their application.

A block is `<section heading="## Costs" action="replace">`, the Markdown, `</section>`. The heading is matched
by its words; `number="2"` names the second section with the same heading. A section ends before the next
heading of its level or a higher one; that of a report's only title ends before the next heading of any level.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import Literal

from maniple.document.nodes import HeadingNode
from maniple.document.plain_text import join_plain
from maniple.document.tree import parse_document
from maniple.evidence.source_list import is_source_heading
from maniple.reading.markdown import MarkdownScanner
from maniple.text import shorten

Action = Literal["replace", "insert_before", "insert_after", "delete"]

LEAST_SECTIONS = 3
"""The sections from which a report is edited by section."""
LEAST_CHARACTERS = 2_500
"""The length from which a report is edited by section: a shorter one is written again as fast."""
MAX_PREFACE = 400
"""Characters before the first block; a longer beginning is that of a whole report."""
MAX_LISTED_SECTIONS = 60
_HEADING_CHARACTERS = 120
_ACTIONS: dict[str, Action] = {
    "": "replace",
    "replace": "replace",
    "edit": "replace",
    "rewrite": "replace",
    "update": "replace",
    "insert_before": "insert_before",
    "insert_after": "insert_after",
    "insert": "insert_after",
    "append": "insert_after",
    "add": "insert_after",
    "delete": "delete",
    "remove": "delete",
}
_VALUE = r"\"(?:[^\"\n]|\"(?![ \t]*(?:\w+=|/?>)))*\"|'(?:[^'\n]|'(?![ \t]*(?:\w+=|/?>)))*'"
"""A value in quotation marks; one inside of it does not stand before another attribute or the end."""
_OPENING = re.compile(rf"[ \t]*<section\b((?:[ \t]+\w+=(?:{_VALUE}))+)[ \t]*(/?)>")
_ATTRIBUTE = re.compile(rf"(\w+)=({_VALUE})")
_CLOSING = re.compile(r"</section[ \t]*>[ \t]*(?=<section\b|$)")
_BEGINS = re.compile(r"(?:\A|\n)[ \t]*<section[ \t]+(?:heading|action|number)=")
_TAG = "<section"
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_WITHOUT_PREFACE = ("#", "|", "<data")
_NUMBERING = re.compile(r"^(?:\d{1,3}(?:\.\d{1,3})*|[ivx]{1,5})[.):]?\s+")
_NOT_WORDS = re.compile(r"\[\d{1,4}\]|\[unverified\]|[*_`\\]")


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of a report: the characters from `start` to before `end`, with its subsections."""

    title: str
    level: int
    """1 to 6; 0 for the text before the first heading."""
    number: int
    """Which of the sections with this title and level it is, from 1."""
    start: int
    heading_end: int
    end: int

    @property
    def heading(self) -> str:
        """The heading as it is listed for a model."""
        return f"{'#' * self.level} {self.title}".strip()


@dataclass(frozen=True, slots=True)
class SectionEdit:
    """A block of edits as a model wrote it. `number` is 0 where none is given."""

    heading: str
    action: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedEdits:
    """The edits of an answer, and what is wrong with the form of others, as sentences for the model."""

    edits: Sequence[SectionEdit] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A piece of an edited report; what `is_unchanged` is the same, byte for byte, in the report before."""

    text: str
    is_unchanged: bool


@dataclass(frozen=True, slots=True)
class EditedReport:
    """A report with the edits that fit; `problems` are sentences about the others."""

    parts: Sequence[ReportPart]
    problems: Sequence[str] = ()

    @property
    def is_changed(self) -> bool:
        """Whether any edit fits."""
        return len(self.parts) != 1 or not self.parts[0].is_unchanged


@dataclass(frozen=True, slots=True)
class _Change:
    """The new text for the characters from `start` to before `end`."""

    start: int
    end: int
    level: int
    text: str
    name: str


def find_sections(report: str) -> list[ReportSection]:
    """Return the sections of a report in Markdown, in order, without its list of sources."""
    headings = [one for one in parse_document(report).children if isinstance(one, HeadingNode)]
    is_titled = [one.level for one in headings].count(1) == 1 and headings[0].level == 1
    ends = _find_ends([one.level for one in headings])
    first = headings[0].start if headings else len(report)
    sections, seen = list[ReportSection](), dict[tuple[int, str], int]()
    if report[:first].strip():
        sections.append(ReportSection("", 0, 1, 0, 0, first))
    for at, one in enumerate(headings):
        title = " ".join(join_plain(one.children).split())
        following = at + 1 if at == 0 and is_titled else ends[at]
        end = headings[following].start if following < len(headings) else len(report)
        key = (one.level, _comparable(title))
        seen[key] = seen.get(key, 0) + 1
        if not is_source_heading(title):
            sections.append(ReportSection(title, one.level, seen[key], one.start, one.end, end))
    return sections


def _find_ends(levels: Sequence[int]) -> list[int]:
    """Return for each heading the index of the next one of its level or a higher one."""
    ends, open_ = [len(levels)] * len(levels), list[int]()
    for at, level in enumerate(levels):
        while open_ and levels[open_[-1]] >= level:
            ends[open_.pop()] = at
        open_.append(at)
    return ends


def is_editable(report: str, sections: Sequence[ReportSection]) -> bool:
    """Return whether it is worth while to edit a report by section instead of writing it again."""
    titled = sum(one.level > 0 for one in sections)
    return titled >= LEAST_SECTIONS and len(report) >= LEAST_CHARACTERS


def list_headings(sections: Sequence[ReportSection]) -> str:
    """Return the headings of sections as lines for a prompt, with the numbers of repeated ones."""
    lines = [
        f"- `{one.heading}`" + (f', number="{one.number}"' if one.number > 1 else "")
        for one in sections[:MAX_LISTED_SECTIONS]
        if one.level
    ]
    more = len(sections) - MAX_LISTED_SECTIONS
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def recognize_edits(begun: str, *, is_complete: bool = False) -> bool | None:
    """Return whether an answer consists of edits; None while its beginning does not tell.

    A few words before the first block are possible. The beginning of a whole report is recognised by its
    first heading, or by its second paragraph.
    """
    if _BEGINS.search(begun[: 2 * MAX_PREFACE]):
        return True
    text = begun.lstrip()
    if is_complete or len(text) > MAX_PREFACE or text.startswith(_WITHOUT_PREFACE):
        return False
    preface, _, rest = text.partition("\n\n")
    behind = rest.lstrip()
    if preface.startswith(_TAG) or not behind or behind.startswith(_TAG) or _TAG.startswith(behind):
        return None
    return False


def parse_edits(answer: str) -> ParsedEdits:
    """Return the edits of an answer in their order. Takes linear time.

    What stands outside of the blocks is left out; it is no part of a report.
    """
    edits, problems = list[SectionEdit](), list[str]()
    opened: tuple[dict[str, str], list[str], MarkdownScanner] | None = None
    for line in answer.splitlines(keepends=True):
        while line:
            if opened is None:
                found = _OPENING.match(line)
                if found is None:
                    break
                attributes = _read_attributes(found[1])
                line = line[found.end() :]
                if found[2]:
                    edits.append(_build_edit(attributes, ""))
                else:
                    opened = (attributes, [], MarkdownScanner())
                continue
            attributes, lines, scanner = opened
            is_code = scanner.take(line).is_code
            found = None if is_code else _CLOSING.search(line.rstrip("\r\n"))
            if found is None:
                lines.append(line)
                break
            edits.append(_build_edit(attributes, "".join([*lines, line[: found.start()]])))
            opened, line = None, line[found.end() :]
    if opened is not None:
        problems.append(f"{_name(opened[0].get('heading', ''))}: the block has no `</section>` at its end.")
    return ParsedEdits(edits, problems)


def _read_attributes(written: str) -> dict[str, str]:
    return {name.casefold(): unescape(value[1:-1]) for name, value in _ATTRIBUTE.findall(written)}


def _build_edit(attributes: dict[str, str], text: str) -> SectionEdit:
    number = attributes.get("number", "")
    return SectionEdit(
        attributes.get("heading", ""),
        attributes.get("action", "").strip().casefold().replace("-", "_").replace(" ", "_"),
        int(number) if number.isdecimal() and len(number) < 5 else 0,
        text,
    )


def apply_edits(report: str, parsed: ParsedEdits) -> EditedReport:
    """Return `report` with the edits that fit, and what is wrong with those that do not."""
    sections, changes, problems = find_sections(report), list[_Change](), [*parsed.problems]
    for edit in parsed.edits:
        if is_source_heading(edit.heading.lstrip("# ")):
            continue  # code writes that list
        change = _read_change(report, sections, edit)
        if isinstance(change, str):
            problems.append(f"{_name(edit.heading)}: {change}")
        else:
            changes.append(change)
    changes.sort(key=lambda one: (one.start, one.end, -one.level))
    fitting = list[_Change]()
    for one in changes:
        if fitting and one.start < fitting[-1].end:
            problems.append(f"{_name(one.name)}: another block changes the section that this one is in.")
        else:
            fitting.append(one)
    if not fitting and not problems:
        problems.append("The answer changes nothing.")
    return EditedReport([*_join_parts(report, fitting)], problems)


def _read_change(report: str, sections: Sequence[ReportSection], edit: SectionEdit) -> _Change | str:
    """Return the change that an edit makes, or what is wrong with it."""
    action = _ACTIONS.get(edit.action)
    if action is None:
        return f"there is no action {shorten(edit.action, 40)!r}; there are replace, insert_after and delete."
    section = _find_section(sections, edit)
    if isinstance(section, str):
        return section
    text = edit.text.strip("\r\n")
    if action == "delete":
        return _Change(section.start, section.end, section.level, "", edit.heading)
    if action == "replace" and text.strip() and section.level and not _ATX.match(text):
        text = f"{report[section.start : section.heading_end].rstrip()}\n\n{text.lstrip()}"
    if fault := _find_fault(text, report[section.start : section.end]):
        return fault
    if action == "replace":
        return _Change(section.start, section.end, section.level, text, edit.heading)
    at = section.start if action == "insert_before" else section.end
    return _Change(at, at, section.level, text, edit.heading)


def _find_fault(text: str, before: str) -> str:
    """Return what is wrong with the new text of a section, or of one beside it; "" for nothing."""
    if not text.strip():
        return "the block has no text; a section is removed with the action delete."
    if text.strip() == before.strip():
        return "the block changes nothing."
    return "a code block in it is not closed." if _leaves_code_open(text) else ""


def _find_section(sections: Sequence[ReportSection], edit: SectionEdit) -> ReportSection | str:
    """Return the section that an edit names, or why there is none."""
    marks = _ATX.match(edit.heading)
    wanted = _comparable(edit.heading)
    found = [one for one in sections if _comparable(one.title) == wanted]
    if not found and wanted:
        short = _NUMBERING.sub("", wanted)
        found = [one for one in sections if one.level and _NUMBERING.sub("", _comparable(one.title)) == short]
    if marks is not None:
        found = [one for one in found if one.level == len(marks[1])] or found
    if not found:
        return "there is no section with this heading."
    if edit.number:
        named = found[edit.number - 1 : edit.number]
        return named[0] if named else f'there is no number="{edit.number}" of this heading.'
    return (
        found[0] if len(found) == 1 else f'{len(found)} sections have this heading; add number="1" or more.'
    )


def _comparable(heading: str) -> str:
    """Return the words of a heading, without its marks and with one spelling of blanks and letters."""
    words = _NOT_WORDS.sub("", _ATX.sub("", unicodedata.normalize("NFKC", heading), count=1))
    return " ".join(words.split()).rstrip(" #:").casefold()


def _leaves_code_open(text: str) -> bool:
    scanner = MarkdownScanner()
    for line in text.splitlines():
        scanner.take(line)
    return bool(scanner.mark)


def _name(heading: str) -> str:
    return f"`{shorten(heading, _HEADING_CHARACTERS)}`"


def _join_parts(report: str, changes: Sequence[_Change]) -> Iterator[ReportPart]:
    """Yield the pieces of a report in which `changes`, in order and apart, are made."""
    edges = [0, *(edge for one in changes for edge in (one.start, one.end)), len(report)]
    unchanged = [report[start:end] for start, end in pairwise(edges)][::2]
    before = ""
    for at, text in enumerate(unchanged):
        if at:
            change = changes[at - 1]
            old = report[change.start : change.end]
            new = _with_breaks(before, change.text, old, is_last=not report[change.end :].strip())
            yield ReportPart(new, is_unchanged=False)
            before = new or before
        if text:
            yield ReportPart(text, is_unchanged=True)
            before = text


def _with_breaks(before: str, text: str, old: str, *, is_last: bool) -> str:
    """Return a new text with the blank lines around it; those behind the text that it replaces stay."""
    if not text:
        return ""
    missing = 2 - (len(before) - len(before.rstrip("\n"))) if before else 0
    ending = old[len(old.rstrip()) :]
    least = "\n" if is_last else "\n\n"
    return "\n" * max(missing, 0) + text.rstrip() + (ending if len(ending) >= len(least) else least)
