"""Renders reports as files."""

import asyncio
import io
import re
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import PurePosixPath
from urllib.parse import quote

from maniple.browser import Browser
from maniple.errors import BrowserError, ManipleError
from maniple.evidence.source_list import language_of
from maniple.media_types import ReportFormat
from maniple.report_files.document import Report, clean, lay_out_report
from maniple.report_files.document_texts import texts_for
from maniple.report_files.html_page import render_html_page
from maniple.report_files.markdown import FigureNames
from maniple.run_page.markup import sanitize_markdown

_MAX_CONCURRENT = 2
_OTHERWISE = "Or take the report as HTML, Word document or Markdown."


class PrintBrowserMissing(ManipleError):
    """There is no browser that could print a PDF; the message says how to get one."""

    code = "no_browser"


class PrintFailed(ManipleError):
    """The browser did not print the PDF; the message says why."""

    code = "not_printed"
    retryable = True


class ReportRenderer:
    """Renders reports as files that run and load nothing, at most two at a time.

    `browser` prints PDFs. It is None if no browser is available; `missing` then says why.
    """

    def __init__(self, browser: Browser | None, missing: str = "") -> None:
        self._browser = browser
        self._missing = missing
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    async def render(self, report: Report, format_: ReportFormat) -> bytes:
        """Return the report as a file: UTF-8, PDF, Office Open XML or ZIP.

        Raises:
            PrintBrowserMissing: a PDF was requested, and there is no browser.
            PrintFailed: the browser failed, cannot print, or took too long.
        """
        if format_ == "pdf":
            return await self._print(report)
        async with self._slots:
            return await asyncio.to_thread(_RENDERERS[format_], report)

    async def _print(self, report: Report) -> bytes:
        if self._browser is None:
            raise PrintBrowserMissing(f"A PDF is printed by a browser. {self._missing} {_OTHERWISE}")
        async with self._slots:
            page = await asyncio.to_thread(_printed_html, report)
        try:
            return await self._browser.print(page)
        except BrowserError as error:
            raise PrintFailed(f"{error} {_OTHERWISE}") from error


def _markdown(report: Report) -> bytes:
    return _write_markdown(report, {path: path for path in report.figures}).encode()


def _write_markdown(report: Report, targets: Mapping[str, str]) -> str:
    """Return a report as Markdown that shows its figures; `targets` are their addresses, by path."""
    markdown = clean(report.markdown)
    names = FigureNames(targets, texts_for(language_of(markdown)).missing)
    quoted = {path: quote(target) for path, target in targets.items()}

    def figure(caption: str, path: str) -> str:
        if path in quoted:
            return f"![{caption}]({quoted[path]})"
        return names.describe_missing(caption, _MARKUP.sub(r"\\\g<0>", path))

    return sanitize_markdown(markdown, figure, frozenset(quoted.values()))


_MARKUP = re.compile(r"[\\`*_\[\]<>&!$~|]")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_FIGURES, _REPORT = "figures", "report.md"
_REPORT_LINK = re.compile(r"(\]\(<?)(?:/workspace/|\./)?report\.md(?=[)>#?\s])")
"""A link to the file whose name the report itself has in a ZIP file."""
_WORKSPACE_LINK = re.compile(r"(?<=[^!\\])\]\(/workspace/")
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""The earliest date that a ZIP file can hold."""


def write_with_figures(report: Report, folder: str) -> tuple[str, dict[str, bytes]]:
    """Return a report as Markdown with relative paths of its figures, and the figures' files in `folder`."""
    names = _name_figures(report, folder)
    files = {names[path]: figure.content for path, figure in report.figures.items()}
    return _write_markdown(report, names), files


def _name_figures(report: Report, folder: str) -> dict[str, str]:
    names = dict[str, str]()
    linked = report.files.keys() - report.figures.keys()
    for number, (path, figure) in enumerate(report.figures.items(), start=1):
        stem = _NOT_IN_NAMES.sub("-", PurePosixPath(path).stem).strip(".-")[:80] or "figure"
        ending = figure.info.media_type.removeprefix("image/")
        name = f"{folder}/{stem}.{ending}"
        is_taken = name in linked or name in names.values()
        names[path] = f"{folder}/{number}-{stem}.{ending}" if is_taken else name
    return names


def _zip(report: Report) -> bytes:
    """Return a ZIP file of `report.md`, its figures and the files that it links to, all by relative paths."""
    markdown, figures = write_with_figures(report, _FIGURES)
    files = {path: content for path, content in report.files.items() if path not in figures}
    if _REPORT in files:
        names = (f"report-{number}.md" for number in count(1))
        name = next(name for name in names if name not in files)
        files[name] = files.pop(_REPORT)
        markdown = _REPORT_LINK.sub(rf"\g<1>{name}", markdown)
    markdown = _WORKSPACE_LINK.sub("](", markdown)
    ended_at = max(datetime.fromtimestamp(report.ended_at or 0, UTC), _EARLIEST)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:

        def add(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, ended_at.timetuple()[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)

        add(_REPORT, markdown.encode())
        for name, data in {**files, **figures}.items():
            add(name, data)
    return content.getvalue()


def _printed_html(report: Report) -> str:
    return render_html_page(lay_out_report(report), printed=True)


def _html(report: Report) -> bytes:
    return render_html_page(lay_out_report(report)).encode()


def _docx(report: Report) -> bytes:
    from maniple.report_files.word import render_docx

    return render_docx(lay_out_report(report))


_RENDERERS = {"markdown": _markdown, "html": _html, "docx": _docx, "zip": _zip}
