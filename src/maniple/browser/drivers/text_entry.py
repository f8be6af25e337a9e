"""Putting a text into whatever can be edited: fields, and editors that draw their own lines.

Editors keep a document of their own and may refuse, change or lose what is typed. So each way of writing is
followed by reading back what the page holds, and the next way is tried when that is another text.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.failures import ActionFailedError
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.window import BrowserWindow, page_script
from maniple.browser.listing import to_one_line

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

_HAS_FOCUS = "element => element.getRootNode().activeElement === element"
_SETTLE = """() => new Promise(done => {
    setTimeout(done, 200);
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
})"""
_MAX_TYPED_CHARACTERS = 1_000
"""A longer text is not typed key by key."""
_MAX_TYPED_LINES = 500
_SHOWN_CHARACTERS = 200
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufeff]")
_NO_LETTER = re.compile(r"[\W_]+")


class TextEntry:
    """Replaces the text of one editable element, and checks that the page holds it.

    Args:
        is_secret: never put into words what the element holds.
    """

    def __init__(
        self, window: BrowserWindow, tab: OpenTab, field: "ElementHandle", *, is_secret: bool = False
    ) -> None:
        self._window = window
        self._tab = tab
        self._field = field
        self._is_secret = is_secret

    async def write(self, text: str, *, has_value: bool) -> str:
        """Replace the text; return what to add to the result when the page formatted it, else "".

        Args:
            has_value: whether it is an `<input>` or `<textarea>`.

        Raises:
            ActionFailedError: the page does not hold the text afterwards; says what it holds.
            playwright.async_api.Error: the element takes no text.
        """
        held: str | None = None
        ways = self._field_ways(text) if has_value else self._editor_ways(text)
        async for way in ways:
            await way()
            if not await self._is_there():
                return ""
            held = await self._read(text)
            if _is_same(held, text):
                return ""
            if has_value and _is_formatted(held, text):
                return (
                    ""
                    if self._is_secret
                    else f" - the field holds '{to_one_line(held, _SHOWN_CHARACTERS)}' now"
                )
        raise ActionFailedError(self._describe(held or ""))

    def _describe(self, held: str) -> str:
        if self._is_secret:
            return "the field does not hold this text afterwards; look at what it asks for"
        shown = to_one_line(held.replace("\n", "\\n"), _SHOWN_CHARACTERS)
        return f"the page does not hold this text afterwards, but '{shown}'"

    async def _field_ways(self, text: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        yield lambda: self._fill(text)
        if len(text) <= _MAX_TYPED_CHARACTERS and "\n" not in text:
            yield lambda: self._type_by_keys(text)

    async def _editor_ways(self, text: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        if "\n" not in text:
            yield lambda: self._insert(text)
        # Enter sends a message in many a chat: it comes last.
        yield lambda: self._paste(text, html=True)
        yield lambda: self._paste(text, html=False)
        if text.count("\n") <= _MAX_TYPED_LINES:
            yield lambda: self._insert_lines(text, "Shift+Enter")
        yield lambda: self._insert(text)
        if text.count("\n") <= _MAX_TYPED_LINES:
            yield lambda: self._insert_lines(text, "Enter")

    async def _fill(self, text: str) -> None:
        # The last character is typed by its key: some pages listen for nothing else.
        last_key = text[-1:] if text[-1:].isprintable() else ""
        milliseconds = self._window.action_milliseconds
        await self._field.fill(text.removesuffix(last_key), timeout=milliseconds)
        if not last_key:
            return
        if await self._field.evaluate(_HAS_FOCUS):
            await self._keyboard.type(last_key)
        else:  # the page moved the focus to another field, or replaced this one
            await self._field.fill(text, timeout=milliseconds)

    async def _type_by_keys(self, text: str) -> None:
        await self._clear()
        await self._keyboard.type(text)

    async def _insert(self, text: str) -> None:
        await self._clear()
        # The last character is typed by its key: some pages listen for nothing else.
        last_key = text[-1:] if len(text) > 1 and text[-1:].isalnum() and "\n" not in text else ""
        if body := text.removesuffix(last_key):
            await self._keyboard.insert_text(body)
        if last_key:
            await self._keyboard.type(last_key)

    async def _insert_lines(self, text: str, line_break: str) -> None:
        await self._clear()
        for number, line in enumerate(text.split("\n")):
            if number:
                await self._keyboard.press(line_break)
            if line:
                await self._keyboard.insert_text(line)

    async def _paste(self, text: str, *, html: bool) -> None:
        await self._clear()
        await self._ask("paste", text=text, html=html)

    async def _clear(self) -> None:
        """Empty the element as a person does: an editor must notice it."""
        await self._field.scroll_into_view_if_needed(timeout=self._window.action_milliseconds)
        await self._field.focus()
        await self._keyboard.press("ControlOrMeta+A")
        await self._keyboard.press("Delete")
        await self._settle()
        if await self._ask("read") and not await self._is_empty():
            await self._ask("select")
            await self._keyboard.press("Backspace")

    async def _is_empty(self) -> bool:
        return not _tidy(await self._ask("read"))

    async def _read(self, text: str) -> str:
        await self._settle()
        held = str(await self._ask("read"))
        if _is_same(held, text):
            return held
        # Editors that draw only the lines in view still copy all of them.
        await self._keyboard.press("ControlOrMeta+A")
        await self._settle()
        copied = await self._ask("copy")
        await self._keyboard.press("ControlOrMeta+End")
        return copied if isinstance(copied, str) and copied and _is_same(copied, text) else held

    async def _is_there(self) -> bool:
        """Return whether the element is still in the page: many a page replaces it when it is done."""
        from playwright.async_api import Error

        with suppress(Error):
            return bool(await self._ask("connected"))
        return False

    async def _settle(self) -> None:
        """Wait until the page has drawn what it was given; frameworks do so a moment later."""
        await self._field.evaluate(_SETTLE)

    async def _ask(self, ask: str, *, text: str = "", html: bool = False) -> Any:
        return await self._field.evaluate(
            await page_script("editor"), {"ask": ask, "text": text, "html": html}
        )

    @property
    def _keyboard(self) -> Any:
        return self._tab.page.keyboard


def _tidy(text: str) -> str:
    """Return a text without what editors add: marks without width, spaces and empty lines at the end."""
    text = _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " "))
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


def _is_same(held: str, text: str) -> bool:
    return _tidy(held) == _tidy(text)


def _is_formatted(held: str, text: str) -> bool:
    """Return whether a field holds the same letters and digits, such as `(030) 12 34` for `0301234`."""
    letters = _NO_LETTER.sub("", text).casefold()
    return bool(letters) and "\n" not in text and _NO_LETTER.sub("", held).casefold() == letters
