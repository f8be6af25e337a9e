"""The last report as a file, in the form that the end of its name asks for."""

from pathlib import PurePath
from typing import TYPE_CHECKING

from maniple.cli.untrusted import clean

if TYPE_CHECKING:
    from maniple.cli.session import Session
    from maniple.report_files import Report


async def saved_form(session: "Session", name: str) -> bytes:
    """Return the last report as a file of that name is to hold it: Markdown, unless its end says otherwise.

    Raises:
        NoBrowser: it is to be a PDF, and there is no browser.
        NotPrinted: the browser did not print it.
        StoreError: the run cannot be read.
    """
    from maniple.report_files import SUFFIXES, Press

    form = SUFFIXES.get(PurePath(name).suffix.casefold(), "markdown")
    if form == "markdown":
        return (clean(session.report).strip("\n") + "\n").encode()
    press = session.press or Press(None)
    return await press.made(await _report(session), form)


async def _report(session: "Session") -> "Report":
    from maniple.report_files import Report

    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    # A run that came to nothing is not the one that wrote the last report.
    if run is None or run.status not in ("completed", "budget_exhausted"):
        return Report("", session.report)
    thread = await store.threads.get(run.thread_id, run.owner)
    sources = await store.evidence(run.run_id).sources()
    is_partial = run.status == "budget_exhausted"
    return Report(
        thread.title if thread else "", session.report, sources, run.ended_at, is_partial=is_partial
    )
