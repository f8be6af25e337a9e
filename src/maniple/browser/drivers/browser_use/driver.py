"""The backend `browser-use`: browser-use observes, clicks and types; Playwright does the rest.

Both drive the same Chromium. browser-use runs in a process of its own: see `worker.py`.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import (
    ACTIONS,
    MASK,
    ActionFunction,
    ActionName,
    ActionResult,
    success_text,
)
from maniple.browser.drivers.actions.interaction import ClickAction, InputAction
from maniple.browser.drivers.chromium import Chromium
from maniple.browser.drivers.failures import ActionFailedError
from maniple.browser.drivers.observation import PageObservation, take_screenshot
from maniple.browser.drivers.window import BrowserWindow
from maniple.browser.isolation import ChromiumIsolation
from maniple.browser.listing import ListingRow, render_rows, sanitize_text, select_rows
from maniple.browser.page import Element, PageServices, ScrollInfo
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver, send_data
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Page

_WORKER = Path(__file__).with_name("worker.py")
_START_SECONDS = 60.0
_MAX_LINE_BYTES = 16_000_000
_NO_ANSWER = "browser-use gave no answer; look at the page before you go on."
# Not the server's environment: browser-use reads keys from it, and `.env` files in its working directory.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "ANONYMIZED_TELEMETRY": "false",
    "BROWSER_USE_CLOUD_SYNC": "false",
    "BROWSER_USE_VERSION_CHECK": "false",
    "BROWSER_USE_SETUP_LOGGING": "false",
    "PYTHON_DOTENV_DISABLED": "1",
}
_OBSERVE_SECONDS = 30.0
_MARK_SECONDS = 10.0
_TEXT_CHARACTERS = 500
_NAME_CHARACTERS = 120
_CHANGED = "it has gone or become something else since it was shown; look at the current state."
_CLICK_SECONDS = 20.0
_TYPE_SECONDS = 10.0
_SECONDS_PER_CHARACTER = 0.05
_NO_TEXT = ("input file", "input checkbox", "input radio", "input submit", "input button", "select", "button")


class BrowserUseProcess:
    """A process with browser-use for the Chromium whose DevTools are on `port`; started at need.

    `python` is the interpreter of browser-use's environment.
    """

    def __init__(self, python: Path, port: int, width: int, height: int) -> None:
        self._python = python
        self._port = port
        self._size = (str(width), str(height))
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._folder = ""
        self._requests = 0

    async def ask(self, what: str, seconds: float, **fields: Any) -> dict[str, Any]:
        """Return the answer to a request; raises `BrowserError` if none comes."""
        async with self._lock:
            try:
                return await self._request(what, seconds, fields)
            except (OSError, EOFError) as error:
                # The process ended before or during the request; observing again is harmless.
                if what != "look":
                    raise BrowserError(_NO_ANSWER) from error
            try:
                return await self._request(what, seconds, fields)
            except (OSError, EOFError) as error:
                raise BrowserError(_NO_ANSWER) from error

    async def _request(self, what: str, seconds: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        process = await self._start()
        self._requests += 1
        line = json.dumps({"id": self._requests, "what": what, **fields})
        try:
            async with asyncio.timeout(seconds):
                return await _read_answer(process, self._requests, line)
        except (TimeoutError, ValueError) as error:
            await self._end()
            raise BrowserError(_NO_ANSWER) from error
        except (OSError, EOFError):
            await self._end()
            raise

    async def aclose(self) -> None:
        """End the process."""
        async with self._lock:
            await self._end()

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-browser-use-")
        environment = {**_ENVIRONMENT, "HOME": self._folder, "BROWSER_USE_CONFIG_DIR": self._folder}
        self._process = await asyncio.create_subprocess_exec(
            str(self._python),
            "-P",
            str(_WORKER),
            f"http://127.0.0.1:{self._port}",
            *self._size,
            cwd=self._folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MAX_LINE_BYTES,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _read_answer(self._process, 0)
        except (TimeoutError, OSError, ValueError, EOFError) as error:
            await self._end()
            raise BrowserError("browser-use did not start beside Chromium; try again.") from error
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
        if self._folder:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self._folder = ""


async def _read_answer(process: asyncio.subprocess.Process, number: int, line: str = "") -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        await send_data(process.stdin, line.encode() + b"\n")
    while text := await process.stdout.readline():
        answer = json.loads(text)
        # The answer to an abandoned request may come first.
        if answer["id"] == number:
            return answer
    raise EOFError


@dataclass(frozen=True, slots=True)
class ShownElement:
    """How to find the element of an index again."""

    process: BrowserUseProcess
    snapshot_id: str
    position: int
    page: "Page"


class BrowserUseObserver:
    """A `PageObserver`; each context has a browser-use process of its own."""

    def __init__(self) -> None:
        self._processes: dict[BrowserContext, BrowserUseProcess] = {}
        self._shown: dict[BrowserContext, tuple[str, Mapping[int, ShownElement], Mapping[str, int]]] = {}

    def attach(self, context: "BrowserContext", process: BrowserUseProcess) -> None:
        """Observe the pages of `context` with `process` until it is closed."""
        self._processes[context] = process
        context.on("close", self._forget)

    def recorder(self) -> str:
        """See `PageObserver.recorder`: there is none."""
        return ""

    async def observe(self, tab: "Page", earlier: PageObservation | None, *, tokens: int) -> PageObservation:
        """See `PageObserver.observe`."""
        context, process = tab.context, self._processes[tab.context]
        nonce = token_hex(6)
        seen = await process.ask("look", _OBSERVE_SECONDS, target=await _target(tab), look=nonce)
        if "failed" in seen:
            raise BrowserError(f"The page cannot be seen: {sanitize_text(str(seen['failed']), 200)}")
        rows, positions, keys = _number_rows(seen, earlier, self._shown.get(context))
        selected = select_rows(rows, tokens)
        controls = [row for row in selected if row.role]
        shown = {row.index: ShownElement(process, nonce, positions[row.index], tab) for row in controls}
        self._shown[context] = (nonce, shown, keys)
        return PageObservation(
            snapshot_id=nonce,
            text=render_rows(selected),
            elements=tuple(Element(row.index, row.role, row.text, row.is_new) for row in controls),
            scroll_info=ScrollInfo(int(seen["above"]), int(seen["below"])),
            viewport_width=int(seen["width"]),
            viewport_height=int(seen["height"]),
            document=str(seen["document"]),
            next_index=max([earlier.next_index if earlier else 0, *(index + 1 for index in positions)]),
        )

    async def has_changed(self, tab: "Page", observation: PageObservation) -> bool:
        """See `PageObserver.has_changed`: another look would end the validity of this one."""
        return True

    def shown(self, context: "BrowserContext", observation: PageObservation, index: int) -> ShownElement:
        """Return the element that `observation` showed at `index`; raises `BrowserError` if there is none."""
        nonce, shown, _ = self._shown.get(context, ("", {}, {}))
        if nonce != observation.snapshot_id or index not in shown:
            raise BrowserError(f"Element with index {index} not found: no such index was shown.")
        return shown[index]

    async def do(self, shown: ShownElement, index: int, what: str, seconds: float, **fields: Any) -> None:
        """Send a request about an element to browser-use.

        Raises:
            BrowserError: the element has changed since it was shown.
            ActionFailedError: browser-use could not do it.
        """
        request = {"look": shown.snapshot_id, "place": shown.position, **fields}
        answer = await shown.process.ask(what, seconds, **request)
        if answer.get("changed"):
            raise BrowserError(f"Element with index {index} not found: {_CHANGED}")
        if why := answer.get("failed") or answer.get("refused"):
            raise ActionFailedError(sanitize_text(str(why), 200))

    async def find(self, observation: PageObservation, index: int) -> "ElementHandle":
        """See `PageObserver.find`."""
        context = next(
            (one for one, (nonce, _, _) in self._shown.items() if nonce == observation.snapshot_id), None
        )
        if context is None:
            raise BrowserError(f"Element with index {index} not found: no such index was shown.")
        shown = self.shown(context, observation, index)
        mark = f"data-{token_hex(8)}"
        await self.do(shown, index, "mark", _MARK_SECONDS, mark=mark)
        for frame in shown.page.frames:
            if (handle := await frame.query_selector(f"[{mark}]")) is not None:
                await handle.evaluate("(element, mark) => element.removeAttribute(mark)", mark)
                return handle
        raise BrowserError(f"Element with index {index} not found: {_CHANGED}")

    async def screenshot(self, tab: "Page", observation: PageObservation, *, marks: bool) -> bytes:
        """See `PageObserver.screenshot`; it has no marks."""
        return await take_screenshot(tab, observation, marks=False)

    def _forget(self, context: "BrowserContext") -> None:
        self._processes.pop(context, None)
        self._shown.pop(context, None)


def _number_rows(
    seen: dict[str, Any],
    earlier: PageObservation | None,
    before: tuple[str, Mapping[int, ShownElement], Mapping[str, int]] | None,
) -> tuple[list[ListingRow], dict[int, int], dict[str, int]]:
    """Return rows with indexes that stay with their element, positions by index, and indexes by key."""
    document = str(seen["document"])
    known = before[2] if before else {}
    is_same_page = earlier is not None and earlier.document == document
    fresh = earlier.next_index if earlier else 0
    rows: list[ListingRow] = []
    positions: dict[int, int] = {}
    keys: dict[str, int] = {}
    for line, raw in enumerate(seen["rows"]):
        if "text" in raw:
            rows.append(ListingRow(line, sanitize_text(raw["text"], _TEXT_CHARACTERS), raw["seen"]))
            continue
        key = f"{document}-{raw['key']}"
        index = known.get(key, fresh)
        fresh += index == fresh
        keys[key] = index
        positions[index] = len(positions)
        rows.append(_control(raw, line, index, is_new=is_same_page and key not in known))
    return rows, positions, keys


def _control(raw: dict[str, Any], line: int, index: int, *, is_new: bool) -> ListingRow:
    role = raw["role"] or (f"{raw['tag']} {raw['type']}" if raw["tag"] == "input" else raw["tag"])
    value = sanitize_text(raw["value"], _NAME_CHARACTERS)
    details = (f'value="{value}"',) if value and value != raw["name"] else ()
    kind = "".join(one for one in role if one.isalnum() or one in " -_").strip() or "element"
    return ListingRow(
        line,
        sanitize_text(raw["name"], _NAME_CHARACTERS),
        raw["seen"],
        role=kind,
        details=details,
        index=index,
        is_new=is_new,
    )


async def _target(tab: "Page") -> str:
    session = await tab.context.new_cdp_session(tab)
    try:
        return (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
    finally:
        await session.detach()


class BrowserUseChromium:
    """A Chromium for one thread, which `observer` observes; browser-use sees all contexts of a browser."""

    def __init__(
        self,
        settings: BrowserSettings,
        executable: Path,
        resolve: EgressResolver,
        observer: BrowserUseObserver,
        python: Path,
        isolation: ChromiumIsolation | None = None,
    ) -> None:
        port = _free_port()
        self._chromium = Chromium(settings, executable, resolve, isolation, port)
        self._process = BrowserUseProcess(python, port, settings.viewport_width, settings.viewport_height)
        self._observer = observer

    async def new_context(self, **options: Any) -> "BrowserContext":
        """See `ContextSource.new_context`."""
        context = await self._chromium.new_context(**options)
        self._observer.attach(context, self._process)
        return context

    async def aclose(self) -> None:
        """End both processes."""
        await asyncio.gather(self._process.aclose(), self._chromium.aclose())


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def browser_use_actions(observer: BrowserUseObserver) -> Mapping[ActionName, ActionFunction]:
    """Return the functions that replace those of Playwright."""

    async def click_element(
        window: BrowserWindow, action: ClickAction, services: PageServices
    ) -> ActionResult:
        start = window.start_action(await window.tabs.current())
        shown, _ = await _shown_element(observer, window, action.index)
        await observer.do(shown, action.index, "click", _CLICK_SECONDS)
        return await window.finish_action(start, services, success_text(action))

    async def input_text(window: BrowserWindow, action: InputAction, services: PageServices) -> ActionResult:
        start = window.start_action(await window.tabs.current())
        shown, role = await _shown_element(observer, window, action.index)
        if role in _NO_TEXT:  # Playwright gives files, and explains why others take no text
            return await ACTIONS["input_text"].run(window, action, services)
        seconds = _TYPE_SECONDS + _SECONDS_PER_CHARACTER * len(action.text)
        await observer.do(shown, action.index, "type", seconds, text=action.text)
        shown_action = action.model_copy(update={"text": MASK}) if role == "input password" else action
        return await window.finish_action(start, services, success_text(shown_action))

    return {"click_element": click_element, "input_text": input_text}


async def _shown_element(
    observer: BrowserUseObserver, window: BrowserWindow, index: int
) -> tuple[ShownElement, str]:
    """Return the element at `index` of the current tab, and its role."""
    observation = window.observation
    if observation is None or window.observed_tab is not await window.tabs.current():
        raise BrowserError(f"Element with index {index} not found: look at the current state.")
    role = next((one.role for one in observation.elements if one.index == index), "")
    return observer.shown(window.context, observation, index), role
