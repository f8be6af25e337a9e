"""Where reports become files."""

import asyncio
import io
import re
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from urllib.parse import quote

from maniple.browser import Browser
from maniple.errors import BrowserError, ManipleError
from maniple.evidence.source_list import language_of
from maniple.report_files.document import Report, clean, document_of
from maniple.report_files.forms import Form
from maniple.report_files.markdown import FigureNames
from maniple.report_files.web import as_page
from maniple.report_files.wording import wording_of
from maniple.run_page.markup import harmless

_AT_ONCE = 2
_OTHERWISE = "Or take the report as HTML, Word document or Markdown."


class NoBrowser(ManipleError):
    """There is no browser to print with; the message says how to get one."""

    code = "no_browser"


class NotPrinted(ManipleError):
    """The browser did not print; the message says why."""

    code = "not_printed"
    retryable = True


class ReportRenderer:
    """Makes files out of reports, two at once, which nothing in them can make run or load anything.

    `browser` prints; None where there is none, and `missing` says why.
    """

    def __init__(self, browser: Browser | None, missing: str = "") -> None:
        self._browser = browser
        self._missing = missing
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def render(self, report: Report, form: Form) -> bytes:
        """Return the report as a file: UTF-8, PDF, Office Open XML or ZIP.

        Raises:
            NoBrowser: it is to be a PDF, and there is no browser.
            NotPrinted: the browser failed, cannot print, or took too long.
        """
        if form == "pdf":
            return await self._printed(report)
        async with self._slots:
            return await asyncio.to_thread(_MAKERS[form], report)

    async def _printed(self, report: Report) -> bytes:
        if self._browser is None:
            raise NoBrowser(f"A PDF is printed by a browser. {self._missing} {_OTHERWISE}")
        page = await self.render(report, "html")
        try:
            return await self._browser.print(page.decode())
        except BrowserError as error:
            raise NotPrinted(f"{error} {_OTHERWISE}") from error


def _markdown(report: Report) -> bytes:
    return _write_markdown(report, {path: path for path in report.figures}).encode()


def _write_markdown(report: Report, targets: Mapping[str, str]) -> str:
    """Return a report as Markdown that shows its figures; `targets` are where they are, by path."""
    markdown = clean(report.markdown)
    names = FigureNames(targets, wording_of(language_of(markdown)).missing)
    quoted = {path: quote(target) for path, target in targets.items()}

    def figure(caption: str, path: str) -> str:
        if path in quoted:
            return f"![{caption}]({quoted[path]})"
        return names.describe_missing(caption, _MARKUP.sub(r"\\\g<0>", path))

    return harmless(markdown, figure, frozenset(quoted.values()))


_MARKUP = re.compile(r"[\\`*_\[\]<>&!$~|]")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_FIGURES = "figures"
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""Nothing in a ZIP file is older."""


def _zip(report: Report) -> bytes:
    """Return a ZIP file with `report.md` and its figures, which it shows by relative paths."""
    names = dict[str, str]()
    for number, (path, figure) in enumerate(report.figures.items(), start=1):
        stem = _NOT_IN_NAMES.sub("-", PurePosixPath(path).stem).strip(".-")[:80] or "figure"
        ending = figure.info.media_type.removeprefix("image/")
        name = f"{_FIGURES}/{stem}.{ending}"
        names[path] = name if name not in names.values() else f"{_FIGURES}/{number}-{stem}.{ending}"
    ended_at = max(datetime.fromtimestamp(report.ended_at or 0, UTC), _EARLIEST)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:

        def add(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, ended_at.timetuple()[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)

        add("report.md", _write_markdown(report, names).encode())
        for path, figure in report.figures.items():
            add(names[path], figure.content)
    return content.getvalue()


def _html(report: Report) -> bytes:
    return as_page(document_of(report)).encode()


def _docx(report: Report) -> bytes:
    from maniple.report_files.word import as_docx

    return as_docx(document_of(report))


_MAKERS = {"markdown": _markdown, "html": _html, "docx": _docx, "zip": _zip}
