"""Where reports become files."""

import asyncio

from maniple.browser import Browser
from maniple.errors import BrowserError, ManipleError
from maniple.report_files.document import Report, clean, document_of
from maniple.report_files.forms import Form
from maniple.report_files.web import as_page
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
        """Return the report as a file: UTF-8, PDF or Office Open XML.

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
    return harmless(clean(report.markdown)).encode()


def _html(report: Report) -> bytes:
    return as_page(document_of(report)).encode()


def _docx(report: Report) -> bytes:
    from maniple.report_files.word import as_docx

    return as_docx(document_of(report))


_MAKERS = {"markdown": _markdown, "html": _html, "docx": _docx}
