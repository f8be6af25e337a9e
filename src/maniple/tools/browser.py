"""`browser`: opens a page in a real browser."""

import json
import re

from langchain_core.tools import BaseTool, StructuredTool

from maniple.browser import Browser
from maniple.errors import BrowserError
from maniple.tools.scope import thread_key

_URL = re.compile(r"https?://[^\s<>\"'，。）)]+")
MAX_CHARACTERS = 12_000


def browser_tool(browser: Browser) -> BaseTool:
    """The tool; its result is JSON with `result_content` and, until runs are recorded, no GIF."""

    async def browse(instruction: str) -> str:
        found = _URL.search(instruction)
        if found is None:
            raise BrowserError(
                "The instruction names no page: give the full URL, such as https://example.com/"
            )
        page = await browser.read(found.group().rstrip(".,;"), thread=thread_key())
        links = "\n".join(f"- {link.text}: {link.url}" for link in page.links[:50])
        content = f"# {page.title}\n{page.url}\n\n{page.text[:MAX_CHARACTERS]}\n\nLinks:\n{links}"
        return json.dumps({"result_content": content, "generated_gif_path": None}, ensure_ascii=False)

    return StructuredTool.from_function(
        coroutine=browse,
        name="browser",
        description="Open the URL named in the instruction in a real browser and read the page. It cannot click yet.",
    )
