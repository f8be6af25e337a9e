"""Files that a conversation is saved as: its report in each form, and the page that plays its last run."""

import asyncio
import os
import re
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO

from maniple.cli.chat.session import ChatSession
from maniple.cli.text import clean
from maniple.errors import FileError
from maniple.media_types import REPORT_SUFFIXES, ReportFormat
from maniple.runs import RunUsageReader

if TYPE_CHECKING:
    from maniple.report_files import Report

_SUFFIX = re.compile(r"\.[a-z][a-z0-9]*")
"""What can name a format: the end of `report v1.2` or of `Dr. Who` cannot."""


def _suffix_of(name: str) -> str:
    """Return the suffix of a file's name in small letters; "" for an end that names no format."""
    suffix = PurePath(name).suffix.casefold()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def choose_format(name: str) -> ReportFormat:
    """Return the form in which a report is saved as `name`: by its suffix, or Markdown without one.

    Raises:
        FileError: there is no form with this suffix.
    """
    suffix = _suffix_of(name)
    if not suffix:
        return "markdown"
    if suffix not in REPORT_SUFFIXES:
        endings = ", ".join(REPORT_SUFFIXES)
        raise FileError(f"A report cannot be saved as {suffix}. Use a name that ends in one of {endings}.")
    return REPORT_SUFFIXES[suffix]


async def render_report(session: ChatSession, name: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the newest report as a file; the suffix of `name` selects the format, by default Markdown.

    The second value are the pictures of a report in Markdown, by their paths relative to it: `NAME_files/…`.

    Raises:
        FileError: there is no form with this suffix.
        PrintBrowserMissing: a PDF needs a browser, and there is none.
        PrintFailed: the browser did not print the PDF.
        StoreError: the run cannot be read.
    """
    from maniple.report_files import ReportRenderer, find_diagrams, write_with_figures

    form = choose_format(name)
    report = await _load_report(session, with_files=form == "zip")
    if form != "markdown":
        # Only a PDF and diagrams need the team, whose browser prints and draws them.
        has_diagrams = form != "zip" and bool(await asyncio.to_thread(find_diagrams, report.markdown))
        renderer = (await session.team()).renderer if form == "pdf" or has_diagrams else None
        renderer = renderer or ReportRenderer(None)
        return await renderer.render(report, form), {}
    markdown, figures = report.markdown, dict[str, bytes]()
    if report.figures:
        folder = f"{PurePath(name).name[: -len(_suffix_of(name)) or None]}_files"
        markdown, figures = await asyncio.to_thread(write_with_figures, report, folder)
    return (clean(markdown).strip("\n") + "\n").encode(), figures


async def _load_report(session: ChatSession, *, with_files: bool) -> "Report":
    from maniple.report_files import Report, load_report
    from maniple.run_files.pictures import FigureFinder

    store = session.conversations.store
    run = await store.runs.get(session.report_run_id)
    if run is None:  # deleted by another process
        return Report("", session.report)
    finder = FigureFinder(store, session.attachments.workspaces, run)
    return await load_report(finder, session.report, with_files=with_files)


async def write_page(session: ChatSession) -> Path | None:
    """Write the page that plays the run that was shown last; return its path, or None if no run was shown.

    Raises:
        FileError: the page cannot be written.
        NotFound: the page has not been built in this clone.
        StoreError: the run cannot be read.
    """
    from maniple.report_files.report_bodies import ReportBodies
    from maniple.run_files.pictures import FigureFinder
    from maniple.service.replays import build_run_replay

    if not session.run_id:
        return None
    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    if run is None:
        return None
    finder = FigureFinder(store, session.attachments.workspaces, run)
    usage = await RunUsageReader(store.events, session.inspector.prices).of_run(run.run_id)
    replay = await build_run_replay(finder, ReportBodies(), usage)
    path = session.pages_folder.absolute() / f"{run.run_id}.html"
    return await _write_privately(path, replay.pieces)


async def open_page(path: Path) -> bool:
    """Open a page in the desktop's web browser; return whether there is one."""
    return await asyncio.to_thread(webbrowser.open, path.as_uri())


async def _write_privately(path: Path, pieces: AsyncIterator[bytes]) -> Path:
    """Write a file that only its owner can read: a page shows what the browser displayed."""
    try:
        file = await asyncio.to_thread(_create, path)
        try:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
        finally:
            await asyncio.to_thread(file.close)
    except OSError as error:
        raise FileError(f"The page of the run cannot be written to {path}: {error.strerror}.") from error
    return path


def _create(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open(path, "wb", opener=_open_privately)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)
