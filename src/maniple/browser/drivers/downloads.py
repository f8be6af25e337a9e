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
# Of what a page gives between one look and the next; the bytes are so many times those of one file.
_MOST_UNTOLD = 20
_MOST_AT_ONCE = 4
_REFUSE_SECONDS = 5.0


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
    size: int = 0
    """In bytes."""


class Downloads:
    """Takes the downloads of a context into `folder`, each within `max_bytes` and `seconds`."""

    def __init__(self, context: "BrowserContext", folder: Path, max_bytes: int, seconds: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._untold: list[_Came] = []
        self._under_way = 0
        self._refused = 0
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

    async def finish(self) -> None:
        """Wait for what has begun by now; what a page begins meanwhile is left for later."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=self._seconds)

    async def kept(self, aids: Aids) -> list[Kept]:
        """Hand over what has come: to `aids.keep_file`, or it stays in the folder."""
        kept, refused = [], self._refused
        if refused:
            self._refused = 0
            kept.append(Kept(f"{refused} more files were not downloaded: too many came at once"))
        while self._untold:
            kept.append(await self._keep(self._untold.pop(0), aids))
        return kept

    async def aclose(self) -> None:
        """Give up what is under way, and what nobody was told of."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        untold, self._untold = self._untold, []
        for came in untold:
            if came.path is not None:
                await asyncio.to_thread(_remove, came.path)

    def _began(self, download: "Download") -> None:
        self.begun.set()
        if self._under_way + len(self._untold) >= _MOST_UNTOLD:
            self._refused += 1
            self._begin(_refuse(download))
            return
        self._under_way += 1
        self._begin(self._take(download))

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, download: "Download") -> None:
        path = self._folder / uuid4().hex / file_name(download.suggested_filename)
        size, why_not = 0, "it was given up"
        try:
            size, why_not = await self._saved(download, path)
        finally:
            self._under_way -= 1
            if why_not:
                await asyncio.to_thread(_remove, path)
        self._untold.append(_Came(path.name, None if why_not else path, why_not, size))

    async def _saved(self, download: "Download", path: Path) -> tuple[int, str]:
        """Save a file; its size in bytes, and why it cannot be had or ""."""
        from playwright.async_api import Error

        size, why_not = 0, ""
        try:
            async with asyncio.timeout(self._seconds):
                await download.save_as(path)
            size = (await asyncio.to_thread(path.stat)).st_size
            await download.delete()  # Playwright keeps one of its own
        except TimeoutError:
            why_not = f"it did not come within {self._seconds:g} seconds"
            await _refuse(download)
        except (Error, OSError) as error:
            why_not = one_line(str(error), 100)
        if size > self._max_bytes or download.url in self._too_large:
            self._too_large.discard(download.url)
            why_not = f"it has more than {self._max_bytes} bytes"
        elif size + sum(came.size for came in self._untold) > self._max_bytes * _MOST_AT_ONCE:
            why_not = "too much came at once"
        return size, why_not

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


async def _refuse(download: "Download") -> None:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):  # it has just ended
        async with asyncio.timeout(_REFUSE_SECONDS):
            await download.cancel()
            await download.delete()


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
