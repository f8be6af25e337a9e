"""Loads the reports of stored runs for the terminal and the HTTP service."""

import asyncio
import re

from maniple.events import (
    AgentEnded,
    AgentStarted,
    ClaimsChecked,
    MessageChunk,
    PlanChanged,
    RunStarted,
    RunStatusChanged,
    RunView,
    load_run_view,
)
from maniple.report_files.document import Report
from maniple.report_files.unsupported import append_unsupported
from maniple.run_files.listing import RunFiles, find_run_files
from maniple.run_files.markup import image_targets, link_targets
from maniple.run_files.pictures import FigureFinder
from maniple.runs.answers import read_answer
from maniple.store import RunRecord, Store, read_event_pages

_HEADING = re.compile(r"\s*#[ \t]+\w")


_CLAIM_EVENTS = frozenset(
    one.type for one in (RunStarted, AgentStarted, MessageChunk, ClaimsChecked, AgentEnded, RunStatusChanged)
)
"""The events that tell which check of claims belongs to the answer."""


async def read_claims(store: Store, run: RunRecord) -> ClaimsChecked | None:
    """Return the check of the claims in the answer that `read_answer` returns; None if nothing was checked.

    Raises:
        StoreError: the events cannot be read.
    """
    view, claims = RunView(), None
    async for page in read_event_pages(store.events, run.run_id, types=_CLAIM_EVENTS):
        for record in page:
            view.apply_records([record])
            if record.type == RunStatusChanged.type and view.has_answer:
                claims = view.claims
    return claims


async def find_newest_report(store: Store, thread_id: str) -> tuple[RunRecord, str] | None:
    """Return the newest run of a thread that has a report, and the report as Markdown.

    Raises:
        StoreError: the runs cannot be read.
    """
    before: float | None = None
    while runs := await store.runs.list_by_thread(thread_id, before=before):
        for run in runs:
            if markdown := (await read_answer(store, run) or "").strip():
                return run, markdown
        before = runs[-1].created_at
    return None


async def load_report(
    finder: FigureFinder, markdown: str, *, with_files: bool = False, with_claims: bool = True
) -> Report:
    """Return the report of the finder's run with its title, date, sources and figures.

    `with_files` adds the files that it links to, and those that the run made; `with_claims` the list of its
    claims that are not supported.

    Raises:
        StoreError: the run's sources, plan or artifacts cannot be read.
    """
    store, run = finder.store, finder.run
    linked = await asyncio.to_thread(link_targets, markdown) if with_files else []
    made = await find_run_files(finder) if with_files else RunFiles()
    checked = await read_claims(store, run) if with_claims else None
    return Report(
        await _title_of(store, run, markdown),
        append_unsupported(markdown, checked),
        await store.evidence(run.run_id).sources(),
        run.ended_at,
        run.status == "budget_exhausted",
        await finder.find_all(await asyncio.to_thread(image_targets, markdown)),
        await finder.find_files(linked),
        made.files,
        made.left_out,
    )


async def _title_of(store: Store, run: RunRecord, markdown: str) -> str:
    """Return the title of a report without a heading: the title of its plan, else of its conversation."""
    if not _HEADING.match(markdown):  # with a heading, the events need not be read for the plan
        view = await load_run_view(store.events, run.run_id, (PlanChanged,))
        if view.plan is not None and view.plan.title.strip():
            return view.plan.title
    thread = await store.threads.get(run.thread_id, run.owner)
    return thread.title if thread is not None else ""
