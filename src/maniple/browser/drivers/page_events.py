"""What pages do by themselves: dialogs, downloads and requests; and the notices about them."""

import asyncio
import os
import re
import shutil
import stat
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from maniple.browser.listing import to_one_line
from maniple.browser.page import PageServices
from maniple.errors import ToolFailure

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Frame, Page, Request

_MAX_NOTICES = 12
_NOTICE_CHARACTERS = 500


class PageNotices:
    """Sentences for the next observation, in their order; their number and length are limited."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._left_out = 0

    def add(self, sentence: str) -> None:
        """Add a sentence; a repeated one is counted."""
        line = to_one_line(sentence, _NOTICE_CHARACTERS)
        if line not in self._counts and len(self._counts) >= _MAX_NOTICES:
            self._left_out += 1
            return
        self._counts[line] = self._counts.get(line, 0) + 1

    def take(self) -> tuple[str, ...]:
        """Return the sentences and delete them."""
        lines = [line if times == 1 else f"{line} ({times} times)" for line, times in self._counts.items()]
        if self._left_out:
            lines.append(f"({self._left_out} more notices)")
        self._counts, self._left_out = {}, 0
        return tuple(lines)


_MAX_CONSECUTIVE_DIALOGS = 20
_SILENCE_SECONDS = 2.0
_CALM_SECONDS = 0.5
_SHOWN_CHARACTERS = 300
_SILENT = "() => { window.alert = () => {}; window.confirm = () => false; window.prompt = () => null; }"


class PageDialogs:
    """Handles the dialogs of a context: alert, confirm, prompt and "Leave this page?".

    An alert is accepted, a question answered by `policy`, and a prompt waits for the model's answer. An open
    dialog blocks the scripts of its page. A page that opens one dialog after another is prevented from
    opening more.
    """

    def __init__(
        self, context: "BrowserContext", policy: Literal["dismiss", "accept"], notices: PageNotices
    ) -> None:
        self.devtools: Callable[[Page], CDPSession | None] = lambda _: None
        """Returns the DevTools session of a page."""
        self._policy = policy
        self._notices = notices
        self._answers: set[asyncio.Task[None]] = set()
        self._silencing: set[Page] = set()
        self._came = 0
        self._before = 0
        self._last = float("-inf")
        self._prompt: Dialog | None = None
        self.refused_to_leave = asyncio.Event()
        """Set when the page asked not to be left during this action, and was not left."""
        self.asked = asyncio.Event()
        """Set while a prompt waits for its answer."""
        context.on("dialog", self._opened)

    def begin_action(self) -> None:
        """Count dialogs from now on as those of a new action."""
        if self._is_calm():
            self._came = 0
        self._before = self._came
        self.refused_to_leave.clear()

    async def silence(self, page: "Page") -> None:
        """Prevent a page that is opening dialogs from opening more.

        A dialog that opens while the page is left would never close.
        """
        from playwright.async_api import Error

        if self._is_calm():
            return
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_SILENCE_SECONDS):
                await _disable_dialogs(page)

    @property
    def have_come(self) -> bool:
        """Whether a dialog opened during this action."""
        return self._came > self._before

    @property
    def prompt(self) -> str | None:
        """The text of the open prompt; None when there is none."""
        if self._prompt is None:
            return None
        given = self._prompt.default_value
        default = f" (as it stands: {to_one_line(given, 100)!r})" if given else ""
        return f"{_quoted(self._prompt)}{default}"

    async def answer(self, text: str | None) -> None:
        """Answer the prompt; None cancels it, "" accepts its default.

        Raises:
            playwright.async_api.Error: the page is gone.
        """
        dialog, self._prompt = self._prompt, None
        self.asked.clear()
        if dialog is None:
            return
        if text is None:
            await dialog.dismiss()
        else:
            await dialog.accept(text or dialog.default_value)

    async def aclose(self) -> None:
        """Cancel the answers under way."""
        for answer in self._answers:
            answer.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)

    def _is_calm(self) -> bool:
        return asyncio.get_running_loop().time() - self._last > _CALM_SECONDS

    def _opened(self, dialog: "Dialog") -> None:
        self._came += 1
        self._last = asyncio.get_running_loop().time()
        if self._came > _MAX_CONSECUTIVE_DIALOGS:
            self._begin(self._end_storm(dialog))
        elif dialog.type == "prompt" and self._prompt is None:
            self._prompt = dialog
            self.asked.set()
        else:
            self._begin(self._close(dialog, dialog.type == "alert" or self._policy == "accept"))
            self._report(dialog)

    def _begin(self, answer: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _close(self, dialog: "Dialog", accept: bool) -> None:
        from playwright.async_api import Error

        # The page may be gone together with its dialog.
        with suppress(Error):
            await (dialog.accept() if accept and dialog.type != "prompt" else dialog.dismiss())

    async def _end_storm(self, dialog: "Dialog") -> None:
        from playwright.async_api import Error

        page = dialog.page
        devtools = self.devtools(page) if page else None
        if page is None or devtools is None or page in self._silencing:
            await self._close(dialog, accept=False)
            return
        self._notices.add("The page opened one dialog after another; it was kept from opening more.")
        self._silencing.add(page)
        try:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await _silence(page, devtools, dialog)
        finally:
            self._silencing.discard(page)

    def _report(self, dialog: "Dialog") -> None:
        match dialog.type:
            case "alert":
                self._notices.add(f"The page said: {_quoted(dialog)}")
            case "beforeunload":
                left = self._policy == "accept"
                if not left:
                    self.refused_to_leave.set()
                self._notices.add(
                    "The page asked whether it may be left; "
                    + ("it was." if left else "it was not left, so that nothing in it is lost.")
                )
            case _:
                answer = "OK" if self._policy == "accept" and dialog.type == "confirm" else "Cancel"
                self._notices.add(f"The page asked: {_quoted(dialog)} The answer given was {answer}.")


async def _silence(page: "Page", devtools: "CDPSession", dialog: "Dialog") -> None:
    """End the script that opens dialogs, and prevent the page from opening more."""
    # Sent before the answer, because a loop opens its next dialog immediately.
    ending = asyncio.ensure_future(devtools.send("Runtime.terminateExecution"))
    try:
        await dialog.dismiss()
        await ending
    finally:
        ending.cancel()
    await _disable_dialogs(page)


async def _disable_dialogs(page: "Page") -> None:
    for frame in page.frames:
        await frame.evaluate(_SILENT)


def _quoted(dialog: "Dialog") -> str:
    return f'"{to_one_line(dialog.message, _SHOWN_CHARACTERS)}"'


_NO_FILE_NAME = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
_NAME_CHARACTERS = 120
# ConnectionLimits for the downloads between two observations; the bytes are a multiple of `max_bytes`.
_MAX_PENDING_DOWNLOADS = 20
_MAX_PENDING_SIZE_FACTOR = 4
_REFUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DownloadOutcome:
    """A saved file, or why it was not saved."""

    text: str
    """Such as `Downloaded file to report.pdf`."""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class _PendingDownload:
    name: str
    path: Path | None
    why_not: str = ""
    size: int = 0
    """In bytes."""


class PageDownloads:
    """Saves the downloads of a context to `folder`, each within `max_bytes` and `seconds`."""

    def __init__(self, context: "BrowserContext", folder: Path, max_bytes: int, seconds: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending: list[_PendingDownload] = []
        self._under_way = 0
        self._refused = 0
        self._too_large: set[str] = set()
        self.are_untrusted = False
        """Whether the browser's own copy may be a link to a file that the browser itself cannot read."""
        self.begun = asyncio.Event()
        """Set when a download begins; the caller who waits for it clears it first."""
        context.on("download", self._began)

    async def watch(self, session: "CDPSession") -> None:
        """Watch the progress of a page's downloads, and cancel those that are too large."""
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
        """Wait for the downloads that have begun by now."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=self._seconds)

    async def save(self, services: PageServices) -> list[DownloadOutcome]:
        """Pass finished downloads to `services.save_file`; without it they stay in the folder."""
        outcomes, refused = [], self._refused
        if refused:
            self._refused = 0
            outcomes.append(
                DownloadOutcome(f"{refused} more files were not downloaded: too many came at once")
            )
        while self._pending:
            outcomes.append(await self._hand_over(self._pending.pop(0), services))
        return outcomes

    async def aclose(self) -> None:
        """Cancel downloads under way, and delete those that were not reported."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        pending, self._pending = self._pending, []
        for one in pending:
            if one.path is not None:
                await asyncio.to_thread(_remove, one.path)

    def _began(self, download: "Download") -> None:
        self.begun.set()
        if self._under_way + len(self._pending) >= _MAX_PENDING_DOWNLOADS:
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
        path = self._folder / uuid4().hex / sanitize_file_name(download.suggested_filename)
        size, why_not = 0, "it was given up"
        try:
            size, why_not = await self._save_as(download, path)
        finally:
            self._under_way -= 1
            if why_not:
                await asyncio.to_thread(_remove, path)
        self._pending.append(_PendingDownload(path.name, None if why_not else path, why_not, size))

    async def _save_as(self, download: "Download", path: Path) -> tuple[int, str]:
        """Save a file; return its size in bytes, and the reason for a failure or ""."""
        from playwright.async_api import Error

        size, why_not = 0, ""
        try:
            async with asyncio.timeout(self._seconds):
                if self.are_untrusted:
                    await asyncio.to_thread(_copy_regular, await download.path(), path)
                else:
                    await download.save_as(path)
            size = (await asyncio.to_thread(path.stat)).st_size
            await download.delete()  # Playwright's own copy
        except TimeoutError:
            why_not = f"it did not come within {self._seconds:g} seconds"
            await _refuse(download)
        except (Error, OSError) as error:
            why_not = to_one_line(str(error), 100)
        if size > self._max_bytes or download.url in self._too_large:
            self._too_large.discard(download.url)
            why_not = f"it has more than {self._max_bytes} bytes"
        elif size + sum(one.size for one in self._pending) > self._max_bytes * _MAX_PENDING_SIZE_FACTOR:
            why_not = "too much came at once"
        return size, why_not

    async def _hand_over(self, pending: _PendingDownload, services: PageServices) -> DownloadOutcome:
        if pending.path is None:
            return DownloadOutcome(f"The file {pending.name} was not downloaded: {pending.why_not}")
        if services.save_file is None:
            return DownloadOutcome(f"Downloaded file to {pending.path}", pending.path)
        try:
            saved = await services.save_file(pending.name, pending.path)
        except ToolFailure as error:
            return DownloadOutcome(f"The file {pending.name} was downloaded but not kept: {error}")
        finally:
            await asyncio.to_thread(_remove, pending.path)
        return DownloadOutcome(f"Downloaded file to {saved}", Path(saved))


async def _refuse(download: "Download") -> None:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):  # it has ended already
        async with asyncio.timeout(_REFUSE_SECONDS):
            await download.cancel()
            await download.delete()


async def _cancel(session: "CDPSession", guid: str) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it has ended already
        await session.send("Browser.cancelDownload", {"guid": guid})


def sanitize_file_name(suggested: str) -> str:
    """Return a suggested file name without characters that a file system may not allow."""
    name = _NO_FILE_NAME.sub("_", suggested).strip(" .") or "download"
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 12:
        return name[:_NAME_CHARACTERS]
    return f"{stem[: _NAME_CHARACTERS - len(ending) - 1]}.{ending}"


def _copy_regular(source: Path, target: Path) -> None:
    """Copy a file that is no link; raises `OSError` for anything else."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("the browser did not save a file")
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()


# Requests that change what is shown, and end: pictures may come late, sockets and event streams never end.
_AWAITED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})
_QUIET_SECONDS = 0.06
_BUSY_SECONDS = 2.0
_MAX_REQUESTS = 2_000


@dataclass(frozen=True, slots=True)
class _RequestInfo:
    number: int
    page: "Page | None"
    """None for the first request of a page that does not exist yet."""
    is_navigation: bool
    """Whether it loads the next page of a tab, or the page of a new tab."""


class PageTraffic:
    """The running requests of a context, to determine when an action has ended."""

    def __init__(self, context: "BrowserContext") -> None:
        self._requests: dict[Request, _RequestInfo] = {}
        self._navigations: dict[Request, _RequestInfo] = {}
        self._changed = asyncio.Event()
        self.begun = 0
        """The number of requests so far."""
        self.broken_off = 0
        """The number of navigations that something else replaced, such as a download."""
        self.failure: tuple[str, str] | None = None
        """The address of the last navigation that failed, and Chromium's error."""
        context.on("request", self._on_request)
        context.on("requestfinished", self._on_finished)
        context.on("requestfailed", self._on_failed)
        context.on("framenavigated", self._on_navigated)

    async def settle(self, page: "Page", since: int, navigation_seconds: float) -> None:
        """Wait for the requests after number `since`, and for the next page if one is under way.

        The limit is `navigation_seconds` for the page, and two seconds for the requests.
        """
        await self.wait_for_navigation(page, navigation_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(_BUSY_SECONDS):
                await self._quiet(page, since)

    async def wait_for_navigation(self, page: "Page", seconds: float) -> None:
        """Wait until the page's navigation has committed, if one is under way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(asked.page in (page, None) for asked in self._navigations.values()):
                    await self._wait_for_change(None)

    async def _quiet(self, page: "Page", since: int) -> None:
        while True:
            begun = self.begun
            while any(asked.page is page and asked.number > since for asked in self._requests.values()):
                await self._wait_for_change(None)
            # A response often causes further requests.
            await self._wait_for_change(_QUIET_SECONDS)
            if begun == self.begun:
                return

    async def _wait_for_change(self, seconds: float | None) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _on_request(self, request: "Request") -> None:
        if request.resource_type not in _AWAITED or len(self._requests) >= _MAX_REQUESTS:
            return
        self.begun += 1
        page = _page_of(request)
        is_navigation = request.is_navigation_request() and (page is None or request.frame is page.main_frame)
        asked = self._requests[request] = _RequestInfo(self.begun, page, is_navigation)
        if is_navigation:
            self._navigations[request] = asked
        self._changed.set()

    def _on_navigated(self, frame: "Frame") -> None:
        if frame.parent_frame is None:
            self._navigations = {
                request: asked
                for request, asked in self._navigations.items()
                if asked.page is not frame.page and not (asked.page is None and request.url == frame.url)
            }
            self._changed.set()

    def _on_finished(self, request: "Request") -> None:
        # A response without a page (204) leaves the current one.
        self._navigations.pop(request, None)
        self._requests.pop(request, None)
        self._changed.set()

    def _on_failed(self, request: "Request") -> None:
        asked = self._requests.get(request)
        if asked is not None and asked.is_navigation:
            failure = request.failure or ""
            if "ERR_ABORTED" in failure:
                self.broken_off += 1
            else:
                self.failure = (request.url, failure)
        self._on_finished(request)


def _page_of(request: "Request") -> "Page | None":
    from playwright.async_api import Error

    try:
        return request.frame.page
    except Error:  # it does not exist yet
        return None
