"""Files that a page gives."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from maniple.browser.page import Aids
from maniple.browser.wording import one_line
from maniple.errors import ToolFailure

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Download

_NO_FILE_NAME = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
_NAME_CHARACTERS = 120
_MOST_UNTOLD = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that came, or why it did not."""

    words: str
    """Such as `Downloaded file to report.pdf`."""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class _Came:
    name: str
    path: Path | None
    why_not: str = ""


class Downloads:
    """Takes the downloads of a context into `folder`, each within `max_bytes` and `seconds`."""

    def __init__(self, context: "BrowserContext", folder: Path, max_bytes: int, seconds: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._untold: list[_Came] = []
        self._too_large: set[str] = set()
        self.begun = asyncio.Event()
        """Set when one begins; to be cleared by who waits for it."""
        context.on("download", self._began)

    async def watch(self, session: "CDPSession") -> None:
        """Hear of what a page loads as a file while it comes, so that one that is too large is ended."""
        urls: dict[str, str] = {}

        def named(event: dict[str, Any]) -> None:
            urls[event["guid"]] = event["url"]

        def came(event: dict[str, Any]) -> None:
            if event["state"] != "inProgress":
                urls.pop(event["guid"], None)
            elif max(event["receivedBytes"], event["totalBytes"]) > self._max_bytes:
                self._too_large.add(urls.get(event["guid"], ""))
                self._begin(_cancel(session, event["guid"]))

        session.on("Page.downloadWillBegin", named)
        session.on("Page.downloadProgress", came)
        await session.send("Page.enable")

    async def kept(self, aids: Aids) -> list[Kept]:
        """Wait for what has begun and hand it over: to `aids.keep_file`, or it stays in the folder."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        came, self._untold = self._untold, []
        return [await self._keep(one, aids) for one in came]

    async def aclose(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _began(self, download: "Download") -> None:
        self._begin(self._take(download))
        self.begun.set()

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, download: "Download") -> None:
        from playwright.async_api import Error

        name = file_name(download.suggested_filename)
        path = self._folder / uuid4().hex / name
        why_not = ""
        try:
            async with asyncio.timeout(self._seconds):
                await download.save_as(path)
            if (await asyncio.to_thread(path.stat)).st_size > self._max_bytes:
                self._too_large.add(download.url)
        except TimeoutError:
            why_not = f"it did not come within {self._seconds:g} seconds"
            with suppress(Error):
                await download.cancel()
        except (Error, OSError) as error:
            why_not = one_line(str(error), 100)
        if download.url in self._too_large:
            self._too_large.discard(download.url)
            why_not = f"it has more than {self._max_bytes} bytes"
        if why_not:
            await asyncio.to_thread(_remove, path)
        if len(self._untold) < _MOST_UNTOLD:
            self._untold.append(_Came(name, None if why_not else path, why_not))

    async def _keep(self, came: _Came, aids: Aids) -> Kept:
        if came.path is None:
            return Kept(f"The file {came.name} was not downloaded: {came.why_not}")
        if aids.keep_file is None:
            return Kept(f"Downloaded file to {came.path}", came.path)
        try:
            told = await aids.keep_file(came.name, came.path)
        except ToolFailure as error:
            return Kept(f"The file {came.name} was downloaded but not kept: {error}")
        finally:
            await asyncio.to_thread(_remove, came.path)
        return Kept(f"Downloaded file to {told}", Path(told))


async def _cancel(session: "CDPSession", guid: str) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it has just ended
        await session.send("Browser.cancelDownload", {"guid": guid})


def file_name(suggested: str) -> str:
    """Return the name that a page suggests for a file as one that is harmless on any disk."""
    name = _NO_FILE_NAME.sub("_", suggested).strip(" .") or "download"
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 12:
        return name[:_NAME_CHARACTERS]
    return f"{stem[: _NAME_CHARACTERS - len(ending) - 1]}.{ending}"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
