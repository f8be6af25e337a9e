"""`browser_use`: one tool for all that can be done in the browser."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool

from maniple.browser import ACTIONS, ActionName
from maniple.browser.masking import masked
from maniple.errors import BrowserError
from maniple.tools.browser_window import Window, fingerprint
from maniple.tools.discreet import DiscreetTool

NAME = "browser_use"
_DESCRIPTION = """Work in a real browser, one action at a time; then look at what came of it.
Elements are named by the number in brackets of the page as you were shown it last: [33] is index 33. A \
number that is not there now cannot be used.
- go_to_url (url), open_tab (url), go_back, refresh, switch_tab (tab_id), close_tab
- web_search (query): search, and open the first result
- click_element (index); input_text (index, text): replaces what is there, "" empties it
- get_dropdown_options (index; of a long list those with a text), select_dropdown_option (index, text)
- send_keys (keys), such as Enter, Escape, Control+A, or plain text
- scroll_down, scroll_up (scroll_amount in pixels; without it one window), scroll_to_text (text)
- extract_content (goal): what the whole page says about a goal
- wait (seconds)"""
_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "url": {**_STRING, "description": "For go_to_url and open_tab: a full address."},
    "index": {
        **_INTEGER,
        "description": "Of the element, for click_element, input_text, get_dropdown_options and "
        "select_dropdown_option.",
    },
    "text": {
        **_STRING,
        "description": "For input_text, scroll_to_text, select_dropdown_option; also get_dropdown_options.",
    },
    "scroll_amount": {**_INTEGER, "description": "Pixels, for scroll_down and scroll_up."},
    "tab_id": {**_INTEGER, "description": "For switch_tab."},
    "query": {**_STRING, "description": "For web_search."},
    "goal": {**_STRING, "description": "What is wanted of the page, for extract_content."},
    "keys": {**_STRING, "description": "For send_keys."},
    "seconds": {"type": "number", "description": "For wait; 3 without it."},
}


def browser_use_tool(window: Window, actions: Sequence[ActionName] = ACTIONS) -> BaseTool:
    """The tool, with those of the 17 actions that are offered (seed 001 §6 names the parameters).

    Arguments are checked by the page, in the words that models know; whatever cannot be done is a
    `BrowserError`. The message's artifact is `{changed, page}`: whether the page may be another one now, and
    the fingerprint of the one that was acted on.

    It is idempotent in the ledger's sense: an index is one of a look that dies with its process, so that a
    click which is repeated after a crash finds no element.
    """

    async def browser_use(**given: Any) -> tuple[str, dict[str, Any]]:
        name, seen = given.get("action"), window.seen()
        if name in ACTIONS and name not in actions:
            raise BrowserError(f"The action '{name}' is not offered here. There are {', '.join(actions)}.")
        result = await window.act(given)
        page = fingerprint(seen) if seen is not None else ""
        return result.text, {"changed": result.changed, "page": page}

    return DiscreetTool.from_function(
        coroutine=browser_use,
        told=lambda given: masked(given, window.seen()),
        name=NAME,
        description=_DESCRIPTION,
        args_schema={
            "type": "object",
            "properties": {"action": {"type": "string", "enum": list(actions)}, **_PARAMETERS},
            "required": ["action"],
        },
        infer_schema=False,
        response_format="content_and_artifact",
        metadata={"idempotent": True, "mode": "ordered"},
    )
