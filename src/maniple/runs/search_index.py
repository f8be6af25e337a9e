"""Keeps the full-text search up to date: runs are indexed at their end, older ones in the background."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from maniple.background import background_task
from maniple.errors import StoreError
from maniple.runs.answers import read_answer
from maniple.runs.request import RunRequest
from maniple.store import RunRecord, Store

_BATCH = 20
_PAUSE_SECONDS = 0.05
"""Between two batches, so that runs at work are not slowed down."""
_RETRY_SECONDS = 30.0
_LOG = logging.getLogger(__name__)


async def index_run(store: Store, record: RunRecord) -> None:
    """Store the question and the answer of a run that has ended for the search; raises `StoreError`."""
    await store.texts.put(record.run_id, await _read_question(record), await read_answer(store, record) or "")


async def _read_question(record: RunRecord) -> str:
    try:
        # In a thread: its history may have megabytes.
        return (await asyncio.to_thread(RunRequest.of, record)).messages[-1].text
    except (ValueError, IndexError):
        return ""


@asynccontextmanager
async def index_older_runs(store: Store) -> AsyncGenerator[None]:
    """Index the ended runs without a text in the background, the newest first."""
    async with background_task(_index_all(store), "index older runs"):
        yield


async def _index_all(store: Store) -> None:
    failed: set[str] = set()
    while True:
        try:
            found = await store.texts.list_unindexed(_BATCH + len(failed))
            new = [run for run in found if run.run_id not in failed]
            for run in new:
                await _index_one(store, run, failed)
        except StoreError as error:
            _LOG.warning("Older runs could not be indexed for the search: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        if not new:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


async def _index_one(store: Store, run: RunRecord, failed: set[str]) -> None:
    try:
        await index_run(store, run)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - no defect of an old run may end the indexing of the others
        _LOG.warning("Run %s could not be indexed for the search: %s", run.run_id, error)
        failed.add(run.run_id)
