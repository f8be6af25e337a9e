"""`browser`: work in a real browser, under the name and the result that LangManus's clients know."""

import json
from collections.abc import Awaitable, Callable
from typing import Protocol

from langchain_core.tools import BaseTool, StructuredTool

from maniple.browser import Browser, PageText
from maniple.errors import BrowserError
from maniple.tools.evidence import source_line
from maniple.tools.run_context import thread_key
from maniple.tools.web import find_address

_MAX_CHARACTERS = 12_000
_MAX_LINKS = 30


class Outcome(Protocol):
    """What came of an instruction, and the path of a recording or None."""

    @property
    def text(self) -> str: ...

    @property
    def recording(self) -> str | None: ...


Browse = Callable[[str], Awaitable[Outcome]]


def browsing_tool(browse: Browse) -> BaseTool:
    """A call is a whole piece of work in the browser, done by an agent of its own.

    It gives a JSON object `{result_content, generated_gif_path}`. Of what could not be done the content
    begins with `STEP FAILED:`. The work keeps its own limits and records; done again, it knows its place.
    """

    async def work(instruction: str) -> str:
        done = await browse(instruction)
        return _told(done.text, done.recording)

    return StructuredTool.from_function(
        coroutine=work,
        name="browser",
        description="Have a task done in a real browser: open pages, click, type, choose, download, read. "
        "Say in one instruction what is to be reached, with the full URL where you know it, and what to "
        "report.",
        metadata={"idempotent": True, "mode": "ordered", "timeout_seconds": None},
    )


def _told(content: str, recording: str | None) -> str:
    return json.dumps({"result_content": content, "generated_gif_path": recording}, ensure_ascii=False)


def browser_tool(browser: Browser) -> BaseTool:
    """For small models: a call opens the first address in the instruction, and clicks and types nothing.

    It gives a JSON object `{result_content, generated_gif_path}`, the second null: nothing is recorded.
    Raises `BrowserError` or `FetchError` when there is no address or the page cannot be opened.
    """

    async def browse(instruction: str) -> str:
        asked = _address(instruction)
        page = await browser.read(asked, thread=thread_key())
        source = await source_line(page.url, page.title, page.text, asked=asked)
        return _told(_shown(page, source), None)

    return StructuredTool.from_function(
        coroutine=browse,
        name="browser",
        description="Open the first URL in the instruction in a browser that runs JavaScript; "
        "gives its text and links. It cannot click or type.",
        metadata={"idempotent": True},
    )


def _address(instruction: str) -> str:
    address = find_address(instruction)
    if address is None:
        raise BrowserError(
            "The instruction names no page; include a full address such as https://example.com."
        )
    return address


def _shown(page: PageText, source: str) -> str:
    text = page.text.strip() or "(The page shows no text.)"
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n[Cut: the first {_MAX_CHARACTERS:,} of {len(text):,} characters.]"
    status = f" (the server answered {page.status})" if page.status and page.status >= 400 else ""
    parts = [f"# {page.title or page.url}", f"{source}{status}", text]
    if page.links:
        links = [f"- [{link.text or link.url}]({link.url})" for link in page.links[:_MAX_LINKS]]
        more = len(page.links) - len(links)
        parts.append("\n".join(["Links:", *links, *([f"({more} more)"] if more > 0 else [])]))
    return "\n\n".join(parts)
