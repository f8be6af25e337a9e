"""Windows that a page opens to tell or to ask something: alert, confirm, prompt, and "Leave this page?".

An alert is confirmed, a question answered as the settings say; a prompt waits for the model's answer.
All of them are told. While one is open, the scripts of its page stand still.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from maniple.browser.drivers.notices import Notices
from maniple.browser.wording import one_line

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Page

_MOST_AT_ONCE = 20
_SILENCE_SECONDS = 2.0
_CALM_SECONDS = 0.5
_SHOWN_CHARACTERS = 300
_SILENT = "() => { window.alert = () => {}; window.confirm = () => false; window.prompt = () => null; }"


class Dialogs:
    """Answers the dialogs of a context; those without end are put to an end."""

    def __init__(
        self, context: "BrowserContext", policy: Literal["dismiss", "accept"], notices: Notices
    ) -> None:
        self.devtools: Callable[[Page], CDPSession | None] = lambda _: None
        """Gives the DevTools of a page."""
        self._policy = policy
        self._notices = notices
        self._answers: set[asyncio.Task[None]] = set()
        self._silencing: set[Page] = set()
        self._came = 0
        self._before = 0
        self._last = float("-inf")
        self._prompt: Dialog | None = None
        self.refused_to_leave = asyncio.Event()
        """Set when the page asked not to be left in this action, and was given its way."""
        self.asked = asyncio.Event()
        """Set while a prompt waits for its answer."""
        context.on("dialog", self._opened)

    def begin(self) -> None:
        """An action begins: what comes from now on belongs to it."""
        if self._is_calm():
            self._came = 0
        self._before = self._came
        self.refused_to_leave.clear()

    async def quieten(self, page: "Page") -> None:
        """Keep a page that is opening dialogs from it: one that opens while it is left would never close."""
        from playwright.async_api import Error

        if self._is_calm():
            return
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_SILENCE_SECONDS):
                await _take_means(page)

    @property
    def have_come(self) -> bool:
        """Whether any came up in this action."""
        return self._came > self._before

    @property
    def prompt(self) -> str | None:
        """What the page asks and waits for, None when it does not."""
        if self._prompt is None:
            return None
        given = self._prompt.default_value
        default = f" (as it stands: {one_line(given, 100)!r})" if given else ""
        return f"{_quoted(self._prompt)}{default}"

    async def answer(self, text: str | None) -> None:
        """Answer the prompt; None is Cancel, "" what stands in it.

        Raises:
            playwright.async_api.Error: the page has gone.
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
        """Leave no answer half given."""
        for answer in self._answers:
            answer.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)

    def _is_calm(self) -> bool:
        return asyncio.get_running_loop().time() - self._last > _CALM_SECONDS

    def _opened(self, dialog: "Dialog") -> None:
        self._came += 1
        self._last = asyncio.get_running_loop().time()
        if self._came > _MOST_AT_ONCE:
            self._begin(self._end_storm(dialog))
        elif dialog.type == "prompt" and self._prompt is None:
            self._prompt = dialog
            self.asked.set()
        else:
            self._begin(self._close(dialog, dialog.type == "alert" or self._policy == "accept"))
            self._tell(dialog)

    def _begin(self, answer: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _close(self, dialog: "Dialog", accept: bool) -> None:
        from playwright.async_api import Error

        # The page may have gone with its dialog.
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

    def _tell(self, dialog: "Dialog") -> None:
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
                said = "OK" if self._policy == "accept" and dialog.type == "confirm" else "Cancel"
                self._notices.add(f"The page asked: {_quoted(dialog)} The answer given was {said}.")


async def _silence(page: "Page", devtools: "CDPSession", dialog: "Dialog") -> None:
    """End the script that opens dialogs, and take the page's means to open more."""
    # Sent before the answer: a loop would go on to its next dialog at once.
    ending = asyncio.ensure_future(devtools.send("Runtime.terminateExecution"))
    try:
        await dialog.dismiss()
        await ending
    finally:
        ending.cancel()
    await _take_means(page)


async def _take_means(page: "Page") -> None:
    for frame in page.frames:
        await frame.evaluate(_SILENT)


def _quoted(dialog: "Dialog") -> str:
    return f'"{one_line(dialog.message, _SHOWN_CHARACTERS)}"'
