"""All the runs that nobody drives: taken up when a server starts, and looked for now and then."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from langchain_core.messages import HumanMessage

from maniple.errors import ManipleError, StoreError, failure_words
from maniple.events import load_run_view
from maniple.runs.recovery import Recovering, recover_run
from maniple.runs.request import RunRequest
from maniple.store import RunRecord, Store

_LOG = logging.getLogger(__name__)


class CannotGoOn(ManipleError):
    """A run that was left behind cannot be read any more."""


async def recover(engine: Recovering, store: Store, kind: str) -> None:
    """Go on with every run of this `kind` that nobody drives, as far as the store allows it now."""
    for left in await store.runs.list_orphaned(kind, engine.driven):
        async with engine.deciding(left.thread_id):
            if left.run_id not in engine.driven:
                try:
                    await take_up(engine, store, left)
                except StoreError as error:
                    _LOG.warning("A run that was left behind has to wait: %s", error)


async def take_up(engine: Recovering, store: Store, left: RunRecord) -> None:
    """Go on with a run that nobody drives; one that cannot be read has failed.

    Raises `StoreError` for what may pass, such as a full disk: the run is left as it is.
    """
    try:
        await recover_run(engine, store, left)
    except Exception as error:
        # Whatever it is, it is not to keep all the others, the service, and its thread from going on.
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.exception("A run that was left behind cannot go on.")
        record = await store.runs.get(left.run_id)
        if record is not None and record.process in (left.process, store.process):
            words = f"It could not go on after the program had stopped: {failure_words(error)}"
            await _fail(engine, store, record, CannotGoOn(words))


async def _fail(engine: Recovering, store: Store, record: RunRecord, why: CannotGoOn) -> None:
    """End a run as failed, and its stream as the wire wants it if that can be read."""
    try:
        view = await load_run_view(store.events, record.run_id)
        thread = await store.threads.get(record.thread_id, None)
        # In the place of what cannot be read; the conversation itself is in the checkpoints.
        asked = RunRequest([HumanMessage(thread.title if thread is not None else "")])
        await engine.give_up(replace(record, request=asked.to_json()), view.stream, why)
    except Exception as error:
        if isinstance(error, StoreError) and error.retryable:
            raise
        _LOG.warning("Its stream cannot be closed: %s", failure_words(error))
        await store.runs.change(
            record.run_id, status="failed", ended_at=time.time(), error_code=why.code, error=str(why)
        )


@asynccontextmanager
async def watching(engine: Recovering, store: Store, kind: str, seconds: float) -> AsyncIterator[None]:
    """Look for them every so many seconds: what a full disk left behind goes on when there is room again."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await recover(engine, store, kind)
            except Exception as error:  # noqa: BLE001 - it looks again, whatever was wrong this time
                _LOG.warning("Whether runs were left behind is not known: %s", failure_words(error))

    task = asyncio.create_task(watch(), name="watch for runs left behind")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
