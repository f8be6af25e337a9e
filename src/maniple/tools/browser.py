"""The tools of the browser.

`browser_use` performs single actions, for agents that work in the browser. `browser` performs a whole task;
its name and its result are those that LangManus's clients know.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from langchain_core.tools import BaseTool, StructuredTool

from maniple.browser import ACTIONS, ActionName, Browser, BrowserState, PageText
from maniple.browser.actions import MASK
from maniple.browser.arguments import parse_keys
from maniple.errors import BrowserError, ToolFailure
from maniple.outgoing import OutgoingGuard
from maniple.scope.run_scope import thread_key
from maniple.tools.evidence import ReadPage, read_line, record_unread
from maniple.tools.registry import RedactedArgsTool, tool_factory
from maniple.tools.thread_browser import ThreadBrowser, page_fingerprint
from maniple.tools.web import find_address, name_site

BROWSER_USE = "browser_use"
_DESCRIPTION = """Work in a real browser. Several calls in one answer are done in order, such as filling in \
the fields of a form and then pressing its button, until one fails or the page shows something else.
Elements are named by the number in brackets of the page as you were shown it last: [33] is index 33. A \
number that is not there now cannot be used."""
_TYPED = ("text", "keys")
_MAX_CHARACTERS = 12_000
_MAX_LINKS = 30


@tool_factory("browser_use")
def browser_use_tool(browser: ThreadBrowser, actions: Sequence[ActionName] | None = None) -> BaseTool:
    """Return the tool `browser_use` with those of the actions that the browser performs; default: all.

    The page checks the arguments and raises `BrowserError` with a text for the model. The message's artifact
    is `{changed, page}`: whether the page may have changed, and the fingerprint of the page acted on.

    The tool is idempotent for the ledger: an index belongs to a state that ends with its process, so that a
    click that is repeated after a crash finds no element.
    """
    offered = [name for name in (browser.actions if actions is None else actions) if name in browser.actions]

    async def browser_use(**given: Any) -> tuple[str, dict[str, Any]]:
        name, state = given.get("action"), browser.last_state()
        if name in ACTIONS.names and name not in offered:
            raise BrowserError(f"The action '{name}' is not offered here. There are {', '.join(offered)}.")
        result = await browser.act(given)
        page = page_fingerprint(state) if state is not None else ""
        return result.text, {"changed": result.changed, "page": page}

    def redact(given: Mapping[str, Any]) -> dict[str, Any]:
        return mask_secrets(given, browser.last_state())

    return RedactedArgsTool.from_function(
        coroutine=browser_use,
        redact=redact,
        name=BROWSER_USE,
        description="\n".join([_DESCRIPTION, *(f"- {line}" for line in ACTIONS.prompt_lines(offered))]),
        args_schema=ACTIONS.schema(offered),
        infer_schema=False,
        # The page explains what is wrong with arguments; the schema is not added to its text.
        handle_validation_error=True,
        response_format="content_and_artifact",
        metadata={"idempotent": True, "mode": "ordered"},
    )


def mask_secrets(given: Mapping[str, Any], state: BrowserState | None) -> dict[str, Any]:
    """Return the arguments of an action for events: its index as a number, and text for passwords masked.

    If the field is unknown, a text is masked as soon as `state`, the last one, may have a password field:
    `send_keys` types into the focused element, and an index may be invalid.
    """
    index = _index_of(given)
    shown = {**given, "index": index} if index is not None and given.get("index") is not None else {**given}
    if _may_be_secret(given, index, state):
        shown |= {key: MASK for key in _TYPED if shown.get(key)}
    return shown


def _index_of(given: Mapping[str, Any]) -> int | None:
    try:
        return getattr(ACTIONS.parse(given), "index", None)
    except BrowserError:
        return None


def _may_be_secret(given: Mapping[str, Any], index: int | None, state: BrowserState | None) -> bool:
    secret = {one.index for one in state.elements if "password" in one.role} if state else None
    definition = ACTIONS.get(given.get("action"))
    types_into = definition.types_into if definition else "focus"
    if types_into is None:
        return False
    if types_into == "element" and secret is not None and index is not None:
        return index in secret
    keys = given.get("keys")
    if definition and types_into == "focus" and isinstance(keys, str) and parse_keys(keys) is not None:
        return False
    return secret is None or bool(secret)


class BrowsingOutcome(Protocol):
    """The result of an instruction, and the path of a recording or None."""

    @property
    def text(self) -> str: ...

    @property
    def recording(self) -> str | None: ...


BrowseFunction = Callable[[str], Awaitable[BrowsingOutcome]]


@tool_factory("browser")
def browsing_tool(browse: BrowseFunction) -> BaseTool:
    """Return the tool `browser` whose call is a whole task, performed by an agent of its own.

    The result is a JSON object `{result_content, generated_gif_path}`; after a failure the content begins
    with `STEP FAILED:`. The task stores its own state, so that a repeated call continues it.
    """

    async def work(instruction: str) -> str:
        outcome = await browse(instruction)
        return _result(outcome.text, outcome.recording)

    return StructuredTool.from_function(
        coroutine=work,
        name="browser",
        description="Have a task done in a real browser: open pages, click, type, choose, download, read. "
        "Say in one instruction what is to be reached, with the full URL where you know it, and what to "
        "report.",
        metadata={"idempotent": True, "mode": "ordered", "timeout_seconds": None},
    )


@tool_factory("browser")
def browser_tool(browser: Browser, guard: OutgoingGuard | None = None) -> BaseTool:
    """Return the tool `browser` for small models: it reads the first address in the instruction.

    The result is a JSON object `{result_content, generated_gif_path}`; the path is null. The tool raises
    `BrowserError` or `FetchError` when there is no address or the page cannot be opened.
    """

    async def browse(instruction: str) -> str:
        asked = _address_in(instruction)
        if guard is not None:
            await asyncio.to_thread(
                guard.check, asked, by="the browser", thread=thread_key(), to=name_site(asked)
            )
        try:
            page = await browser.read(asked, thread=thread_key())
        except ToolFailure as error:
            await record_unread(asked, str(error))
            raise
        read = ReadPage(page.url, page.title, page.text, page.status, asked)
        return _result(_format_page(page, *await read_line(read)), None)

    return StructuredTool.from_function(
        coroutine=browse,
        name="browser",
        description="Open the first URL in the instruction in a browser that runs JavaScript; "
        "gives its text and links. It cannot click or type.",
        metadata={"idempotent": True},
    )


def _result(content: str, recording: str | None) -> str:
    return json.dumps({"result_content": content, "generated_gif_path": recording}, ensure_ascii=False)


def _address_in(instruction: str) -> str:
    address = find_address(instruction)
    if address is None:
        raise BrowserError(
            "The instruction names no page; include a full address such as https://example.com."
        )
    return address


def _format_page(page: PageText, source: str, obstacle: str = "") -> str:
    text = page.text.strip() or "(The page shows no text.)"
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n[Cut: the first {_MAX_CHARACTERS:,} of {len(text):,} characters.]"
    status = f" (the server answered {page.status})" if page.status and page.status >= 400 else ""
    parts = [f"# {page.title or page.url}", f"{source}{status}", *([obstacle] if obstacle else []), text]
    if page.links:
        links = [f"- [{link.text or link.url}]({link.url})" for link in page.links[:_MAX_LINKS]]
        more = len(page.links) - len(links)
        parts.append("\n".join(["Links:", *links, *([f"({more} more)"] if more > 0 else [])]))
    return "\n\n".join(parts)
