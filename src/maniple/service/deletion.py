"""Deleting conversations: those that a client deletes, and those that end with a process that has gone."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from maniple.app import App
from maniple.background import background_task
from maniple.capabilities.browsing import forget_in_browser
from maniple.errors import FileError, ManipleError
from maniple.runs import NotFound

_LOG = logging.getLogger(__name__)


async def delete_conversation(app: App, thread_id: str, owner: str) -> Sequence[str]:
    """Cancel the runs of a thread and remove all of its data, files and tabs, also of its branches.

    Return the ids of the deleted threads; raises as `Engine.delete_thread`.
    """
    all_deleted = await app.engine.delete_thread(thread_id, owner)
    for deleted in all_deleted:
        await forget_in_browser(app.runtime.browser, app.settings, deleted)
        try:
            await asyncio.to_thread(app.workspaces.remove, deleted)
        except FileError as error:
            _LOG.warning("The workspace of a deleted thread could not be removed: %s", error)
    return all_deleted


@asynccontextmanager
async def open_sweeper(app: App) -> AsyncGenerator[None]:
    """Delete the temporary conversations of processes that have gone: now, and again now and then."""

    async def sweep() -> None:
        while True:
            try:
                await _delete_abandoned(app)
            except Exception as error:  # noqa: BLE001 - it is tried again until the program ends
                _warn(error, "Temporary conversations could not be listed")
            await asyncio.sleep(app.engine_config.watch_seconds)

    async with background_task(sweep(), "delete temporary conversations"):
        yield


async def _delete_abandoned(app: App) -> None:
    for thread in await app.store.threads.list_abandoned():
        try:
            await delete_conversation(app, thread.thread_id, thread.owner)
        except NotFound:
            pass  # another process has deleted it
        except Exception as error:  # noqa: BLE001 - one conversation must not stop the others
            _warn(error, f"The temporary conversation {thread.thread_id} is not deleted yet")


def _warn(error: Exception, what: str) -> None:
    """Log what could not be done; with the traceback of an error that nobody expects."""
    _LOG.warning("%s: %s", what, error, exc_info=not isinstance(error, ManipleError))
