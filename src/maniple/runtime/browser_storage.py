"""What is kept of threads' browsers belongs to their database, and goes with its thread."""

import asyncio
from pathlib import Path

from maniple.browser import Browser
from maniple.browser.storage import Storage
from maniple.config import Settings
from maniple.store.configured import place_of

_FOLDER = "browser"


def browser_folder_of(settings: Settings) -> Path:
    """Return where cookies and local storage of threads are kept, when they are. Blocks on disk."""
    return place_of(settings, _FOLDER).folder


async def forget_in_browser(browser: Browser | None, settings: Settings, thread_id: str) -> None:
    """Close a thread's tabs and remove what is kept of it, by this process or by one before."""
    if browser is not None:
        await browser.forget(thread_id)
    folder = await asyncio.to_thread(browser_folder_of, settings)
    await asyncio.to_thread(Storage(folder).remove, thread_id)
