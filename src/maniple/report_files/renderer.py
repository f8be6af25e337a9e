"""Renders reports as files."""

import asyncio
import io
import zipfile
from dataclasses import replace

from maniple.browser import Browser
from maniple.errors import BrowserError, ManipleError
from maniple.media_types import ReportFormat
from maniple.report_files.bundle import write_bundle, write_markdown
from maniple.report_files.diagrams import draw_diagrams
from maniple.report_files.document import Report, lay_out_report
from maniple.report_files.html_page import render_html_page
from maniple.report_files.report_bodies import ReportBodies
from maniple.report_files.thread_archive import make_entry

_MAX_CONCURRENT = 2
_DRAWN = frozenset({"html", "pdf", "docx", "pptx"})
"""The formats in which diagrams are pictures; without a browser they are code with a remark."""
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

    `browser` prints PDFs and draws diagrams. It is None if no browser is available; `missing` then says why.
    """

    def __init__(self, browser: Browser | None, missing: str = "") -> None:
        self._browser = browser
        self._missing = missing
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)
        self.bodies = ReportBodies()
        """Renders the texts of reports for the page."""

    async def render(self, report: Report, format_: ReportFormat) -> bytes:
        """Return the report as a file: UTF-8, PDF, Office Open XML or ZIP.

        Raises:
            PrintBrowserMissing: a PDF was requested, and there is no browser.
            PrintFailed: the browser failed, cannot print, or took too long.
        """
        if self._browser is not None and format_ in _DRAWN:
            report = replace(report, diagrams=await draw_diagrams(self._browser, report.markdown))
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
    return write_markdown(report, {path: path for path in report.figures}).encode()


def _zip(report: Report) -> bytes:
    """Return a ZIP file of `report.md`, its figures, the files that it links to and those of its run."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in write_bundle(report).files.items():
            file.writestr(make_entry(name, report.ended_at), data)
    return content.getvalue()


def _printed_html(report: Report) -> str:
    return render_html_page(lay_out_report(report), printed=True)


def _html(report: Report) -> bytes:
    return render_html_page(lay_out_report(report)).encode()


def _docx(report: Report) -> bytes:
    from maniple.report_files.word import render_docx

    return render_docx(lay_out_report(report))


def _pptx(report: Report) -> bytes:
    from maniple.report_files.slides import render_pptx

    return render_pptx(lay_out_report(report))


_RENDERERS = {"markdown": _markdown, "html": _html, "docx": _docx, "pptx": _pptx, "zip": _zip}
