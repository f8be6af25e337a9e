"""A report with its figures and the files of its run, under names that are valid on every system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

from maniple.evidence.opaque import find_opaque_spans
from maniple.evidence.source_list import language_of
from maniple.reading.pictures import figure_path
from maniple.report_document.document_texts import texts_for
from maniple.report_document.layout import add_source_list, clean
from maniple.report_document.safe_nodes import FigureNames
from maniple.report_files.document import Report
from maniple.run_files.markup import sanitize_markdown

REPORT, FIGURES, LEFT_OUT = "report.md", "figures", "not-included.txt"
NAME_BYTES = 120
"""The longest name of a file or folder."""
EntryKind = Literal["file", "folder"]
FindEntry = Callable[[str], EntryKind | None]
"""Returns what there is already under a path, regardless of upper and lower case."""

_MARKUP = re.compile(r"[\\`*_\[\]<>&!$~|]")
_NOT_IN_FIGURE_NAMES = re.compile(r"[^\w.-]+")
# What file names must not have on some system, and what changes the direction of a text.
_NOT_IN_NAMES = re.compile(
    '[\\\\<>:"|?*\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+'
)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\ *(?:\.|\Z)", re.IGNORECASE)
_TARGET = re.compile(
    r"(?P<before>(?<=\])\([ \t]{0,9}+|^ {0,3}\[[^\]\n]{1,200}+\]:[ \t]{0,9}+)"
    r"(?P<target><[^<>\n]{1,500}+>|[^\s()<>]{1,500}+)",
    re.MULTILINE,
)
"""The target of a link, an image or a definition."""
_WORKSPACE = "/workspace/"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by their relative paths, the report first; `report` is its path, "" if there is none."""

    files: Mapping[str, bytes]
    report: str


def write_bundle(report: Report, find_entry: FindEntry = lambda _: None) -> Bundle:
    """Return the report as Markdown with its figures, the files that it links to, and those of its run.

    Names for which `find_entry` returns something are not used. Links in the report lead to the new names.
    """
    names = Names(find_entry)
    name = names.add(REPORT) if report.markdown.strip() else ""
    figures = _name_figures(report, FIGURES)
    shown = {path: names.add(figure) for path, figure in figures.items()}
    others = {path: content for path, content in {**report.made, **report.files}.items() if path not in shown}
    pictures = {figure.content for figure in report.figures.values()}
    is_made_only = report.made.keys() - report.files.keys()
    kept = {path: data for path, data in others.items() if not (path in is_made_only and data in pictures)}
    named = {path: names.add(path, kept) for path in kept}
    files = {shown[path]: figure.content for path, figure in report.figures.items()}
    files |= {named[path]: data for path, data in kept.items()}
    if report.left_out:
        files[names.add(LEFT_OUT)] = "".join(f"{one}\n" for one in report.left_out).encode()
    if not name:
        return Bundle(files, "")
    markdown = retarget(write_markdown(report, shown), {**shown, **named})
    return Bundle({name: markdown.encode(), **files}, name)


def write_markdown(report: Report, targets: Mapping[str, str]) -> str:
    """Return a report as Markdown that shows its figures; `targets` are their addresses, by path."""
    markdown = add_source_list(clean(report.markdown), report.sources)
    names = FigureNames(targets, texts_for(language_of(markdown)).missing)
    quoted = {path: quote(target) for path, target in targets.items()}

    def figure(caption: str, path: str) -> str:
        if path in quoted:
            return f"![{caption}]({quoted[path]})"
        return names.describe_missing(caption, _MARKUP.sub(r"\\\g<0>", path))

    return sanitize_markdown(markdown, figure, frozenset(quoted.values()))


def write_with_figures(report: Report, folder: str) -> tuple[str, dict[str, bytes]]:
    """Return a report as Markdown with relative paths of its figures, and the figures' files in `folder`."""
    names = _name_figures(report, folder)
    files = {names[path]: figure.content for path, figure in report.figures.items()}
    return write_markdown(report, names), files


def retarget(markdown: str, names: Mapping[str, str]) -> str:
    """Return a report whose links to workspace files lead to `names`, by path; code is unchanged."""
    opaque = find_opaque_spans(markdown)
    code = [*opaque.fences, *opaque.indented, *opaque.code]

    def replace(found: re.Match[str]) -> str:
        if any(start <= found.start() < end for start, end in code):
            return found[0]
        target = found["target"].removeprefix("<").removesuffix(">")
        file, mark, rest = _split_fragment(target)
        name = names.get(figure_path(file))
        if name is not None and name != figure_path(file):
            return f"{found['before']}{quote(name)}{mark}{rest}"
        return (
            found["before"] + found["target"].replace(_WORKSPACE, "", 1)
            if file.startswith(_WORKSPACE)
            else found[0]
        )

    return _TARGET.sub(replace, markdown)


def _split_fragment(target: str) -> tuple[str, str, str]:
    found = re.search("[#?]", target)
    return (target, "", "") if found is None else (target[: found.start()], found[0], target[found.end() :])


def _name_figures(report: Report, folder: str) -> dict[str, str]:
    names = dict[str, str]()
    linked = {_key(path) for path in report.files.keys() - report.figures.keys()}
    for number, (path, figure) in enumerate(report.figures.items(), start=1):
        stem = _NOT_IN_FIGURE_NAMES.sub("-", PurePosixPath(path).stem).strip(".-")[:80] or "figure"
        ending = figure.info.media_type.removeprefix("image/")
        name = f"{folder}/{stem}.{ending}"
        is_taken = _key(name) in linked or _key(name) in map(_key, names.values())
        names[path] = f"{folder}/{number}-{stem}.{ending}" if is_taken else name
    return names


@dataclass(slots=True)
class Names:
    """The names that are in use. Two names that differ by case only are the same on some systems."""

    find_entry: FindEntry
    _used: dict[str, tuple[EntryKind, str]] = field(default_factory=dict[str, tuple[EntryKind, str]])
    """By `_key`: what it is, and its spelling."""

    def add(self, path: str, others: Iterable[str] = ()) -> str:
        """Return a path for a new file like `path`; paths in `others` are left to those that have them."""
        wanted = {_key(one) for one in others} - {_key(path)}
        *folders, name = [_portable(part) for part in path.split("/") if part not in ("", ".")] or ["file"]
        above = ""
        for folder in folders:
            above = self._choose(above, folder, "folder", set())
        return self._choose(above, name, "file", wanted)

    def _choose(self, above: str, name: str, kind: EntryKind, wanted: set[str]) -> str:
        for candidate in _numbered(name):
            path = f"{above}/{candidate}" if above else candidate
            used, spelling = self._used.get(_key(path)) or (self.find_entry(path), path)
            if (used is None and _key(path) not in wanted) or (used == kind == "folder"):
                self._used[_key(path)] = kind, spelling
                return spelling
        raise AssertionError  # there are endless numbers


def _numbered(name: str) -> Iterable[str]:
    yield name
    stem, dot, ending = name.rpartition(".")
    for number in count(1):
        yield f"{stem}-{number}.{ending}" if dot and stem else f"{name}-{number}"


def _portable(part: str) -> str:
    """Return the name of a file or folder without what some system does not allow in it."""
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFC", part)).strip(" ").rstrip(". ")
    if name.startswith(".."):
        name = name.lstrip(".")
    if not name.strip("."):
        return "file"
    if _DEVICE.match(name):
        name = f"_{name}"
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, ending = name.rpartition(".")
    tail = dot + ending if stem and len(ending.encode()) <= 20 else ""
    return name.encode()[: NAME_BYTES - len(tail.encode())].decode(errors="ignore").rstrip(". ") + tail


def _key(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
