"""A "sandbox": a server of the API that the sandbox backend speaks, with a real Chromium behind it.

It counts, clicks and answers as the server in Daytona's sandboxes does, only without that one's waits.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ElementHandle, Error, Page, async_playwright

_CONTROLS = """() => Array.from(document.querySelectorAll(
    'a, button, input, select, textarea, [role="button"], [tabindex]:not([tabindex="-1"])'
)).filter(element => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    return style.display !== 'none' && style.visibility !== 'hidden' && box.width > 0 && box.height > 0;
})"""
_TOLD = (
    "controls => controls.map((one, place) => ({index: place + 1, tag_name: one.localName, "
    "text: one.innerText || one.value || '', is_in_viewport: one.getBoundingClientRect().top < innerHeight, "
    "...Object.fromEntries(['id', 'href', 'name', 'placeholder', 'role', 'title', 'type'].flatMap("
    "key => one.getAttribute(key) ? [[key, one.getAttribute(key)]] : []))}))"
)
_SCROLLED = """() => ({above: scrollY, height: innerHeight, width: innerWidth,
    below: Math.max(0, document.documentElement.scrollHeight - scrollY - innerHeight)})"""
_OPTIONS = "select => Array.from(select.options, (o, index) => ({index, text: o.text, value: o.value}))"


@dataclass
class AutomationServer:
    """A running one; `asked` holds the endpoints in the order they were asked for."""

    browser: Browser
    pages: list[Page]
    url: str = ""
    current: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.pages[self.current]

    async def answer(self, endpoint: str, fields: Any) -> tuple[int, dict[str, Any]]:
        self.asked.append(endpoint)
        act = getattr(self, f"do_{endpoint}", None)
        if act is None:
            return 404, {"detail": "Not Found"}
        try:
            said = await act(fields)
        except (Error, LookupError) as error:
            return 200, {"success": False, "message": str(error), "error": str(error), "url": ""}
        content = said if isinstance(said, str) else None
        return 200, {"success": True, "message": "done", "content": content, **await self.state()}

    async def state(self) -> dict[str, Any]:
        controls = await (await self.page.evaluate_handle(_CONTROLS)).evaluate(_TOLD)
        scrolled = await self.page.evaluate(_SCROLLED)
        picture = await self.page.screenshot(type="jpeg", quality=60)
        return {
            "url": self.page.url,
            "title": await self.page.title(),
            "interactive_elements": controls,
            "screenshot_base64": base64.b64encode(picture).decode(),
            "pixels_above": scrolled["above"],
            "pixels_below": scrolled["below"],
            "viewport_height": scrolled["height"],
        }

    async def control(self, index: int) -> ElementHandle:
        controls = await self.page.evaluate_handle(_CONTROLS)
        handle = (await controls.get_property(str(index - 1))).as_element()
        if handle is None:
            raise LookupError(f"Element with index {index} not found")
        return handle

    async def do_list_elements(self, _: dict[str, Any]) -> None:
        pass

    async def do_navigate_to(self, fields: dict[str, Any]) -> None:
        await self.page.goto(fields["url"], wait_until="load")

    async def do_go_back(self, _: dict[str, Any]) -> None:
        await self.page.go_back()

    async def do_click_element(self, fields: dict[str, Any]) -> None:
        await (await self.control(fields["index"])).click()
        await self.page.wait_for_load_state("networkidle")

    async def do_input_text(self, fields: dict[str, Any]) -> None:
        await (await self.control(fields["index"])).fill(fields["text"])

    async def do_send_keys(self, fields: dict[str, Any]) -> None:
        await self.page.keyboard.press(fields["keys"])

    async def do_scroll_down(self, fields: dict[str, Any]) -> None:
        await self.page.evaluate("by => scrollBy(0, by ?? innerHeight)", fields.get("amount"))

    async def do_scroll_up(self, fields: dict[str, Any]) -> None:
        await self.page.evaluate("by => scrollBy(0, -(by ?? innerHeight))", fields.get("amount"))

    async def do_scroll_to_text(self, text: str) -> None:
        found = self.page.get_by_text(text)
        if not await found.count():
            raise LookupError(f"Text '{text}' not found or not visible on page")
        await found.first.scroll_into_view_if_needed()

    async def do_get_dropdown_options(self, index: int) -> str:
        return json.dumps(await (await self.control(index)).evaluate(_OPTIONS))

    async def do_select_dropdown_option(self, fields: dict[str, Any]) -> None:
        control = await self.control(fields["index"])
        if all(option["text"] != fields["option_text"] for option in await control.evaluate(_OPTIONS)):
            raise LookupError(f"Option '{fields['option_text']}' not found")
        await control.select_option(label=fields["option_text"])

    async def do_extract_content(self, _: str) -> str:
        return await self.page.inner_text("body")

    async def do_open_tab(self, fields: dict[str, Any]) -> None:
        page = await self.browser.new_page()
        await page.goto(fields["url"])
        self.pages.append(page)
        self.current = len(self.pages) - 1

    async def do_switch_tab(self, fields: dict[str, Any]) -> None:
        if not 0 <= fields["page_id"] < len(self.pages):
            raise LookupError(f"Tab {fields['page_id']} not found")
        self.current = fields["page_id"]

    async def do_close_tab(self, fields: dict[str, Any]) -> None:
        await self.pages.pop(fields["page_id"]).close()
        self.current = max(0, self.current - 1)


# FastAPI takes what stands alone in a signature as the bare body.
_BARE = {"scroll_to_text": str, "get_dropdown_options": int, "extract_content": str}


@asynccontextmanager
async def open_automation_server(executable: Path) -> AsyncIterator[AutomationServer]:
    """Serve the API on loopback; `executable` is the Chromium."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, chromium_sandbox=False)
        server = AutomationServer(browser, [await browser.new_page()])
        listener = await asyncio.start_server(_serving(server.answer), "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        try:
            yield server
        finally:
            listener.close()
            await browser.close()


def _serving(
    answer: Callable[[str, Any], Awaitable[tuple[int, dict[str, Any]]]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")
            )
            fields = json.loads(await reader.readexactly(length))
            endpoint = head.split(" ", 2)[1].removeprefix("/api/automation/")
            if endpoint in _BARE and not isinstance(fields, _BARE[endpoint]):
                status, told = 422, {"detail": "Input should be a valid value"}
            else:
                status, told = await answer(endpoint, fields)
            body = json.dumps(told).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
        except (OSError, EOFError):
            pass  # Who asked has gone.
        finally:
            writer.close()

    return serve
