"""`browser_use`: one tool for all that can be done in the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool

from maniple.browser import ACTIONS, ActionName
from maniple.browser.masking import masked
from maniple.errors import BrowserError
from maniple.tools.browser_window import Window, fingerprint
from maniple.tools.registry import RedactedArgsTool

NAME = "browser_use"
_DESCRIPTION = """Work in a real browser, one action at a time; then look at what came of it.
Elements are named by the number in brackets of the page as you were shown it last: [33] is index 33. A \
number that is not there now cannot be used."""
_LINES: tuple[Mapping[ActionName, str], ...] = (
    {
        "go_to_url": "go_to_url (url)",
        "open_tab": "open_tab (url)",
        "go_back": "go_back",
        "refresh": "refresh",
        "switch_tab": "switch_tab (tab_id)",
        "close_tab": "close_tab",
    },
    {"web_search": "web_search (query): search, and open the first result"},
    {
        "click_element": "click_element (index)",
        "input_text": 'input_text (index, text): replaces what is there, "" empties it',
    },
    {
        "get_dropdown_options": "get_dropdown_options (index; of a long list those with a text)",
        "select_dropdown_option": "select_dropdown_option (index, text)",
    },
    {"send_keys": "send_keys (keys), such as Enter, Escape, Control+A, or plain text"},
    {
        "scroll_down": "scroll_down (scroll_amount in pixels; without it one window)",
        "scroll_up": "scroll_up (likewise)",
        "scroll_to_text": "scroll_to_text (text)",
    },
    {"extract_content": "extract_content (goal): what the whole page says about a goal"},
    {"wait": "wait (seconds)"},
)


@dataclass(frozen=True, slots=True)
class _Parameter:
    kind: str
    words: str
    """What it is, and whose; followed by the actions that are offered of these:"""
    actions: tuple[ActionName, ...]

    def schema(self, offered: Sequence[ActionName]) -> dict[str, Any]:
        names = [one for one in self.actions if one in offered]
        return {"type": self.kind, "description": f"{self.words} {', '.join(names)}."}


_PARAMETERS: Mapping[str, _Parameter] = {
    "url": _Parameter("string", "A full address, for", ("go_to_url", "open_tab")),
    "index": _Parameter(
        "integer",
        "Of the element, for",
        ("click_element", "input_text", "get_dropdown_options", "select_dropdown_option"),
    ),
    "text": _Parameter(
        "string",
        "For",
        ("input_text", "scroll_to_text", "select_dropdown_option", "get_dropdown_options"),
    ),
    "scroll_amount": _Parameter("integer", "Pixels, for", ("scroll_down", "scroll_up")),
    "tab_id": _Parameter("integer", "For", ("switch_tab",)),
    "query": _Parameter("string", "For", ("web_search",)),
    "goal": _Parameter("string", "What is wanted of the page, for", ("extract_content",)),
    "keys": _Parameter("string", "For", ("send_keys",)),
    "seconds": _Parameter("number", "3 where it is left out, for", ("wait",)),
}


def browser_use_tool(window: Window, actions: Sequence[ActionName] = ACTIONS) -> BaseTool:
    """The tool, which knows of those of the 17 actions that are offered (seed 001 §6 names the parameters).

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

    return RedactedArgsTool.from_function(
        coroutine=browser_use,
        told=lambda given: masked(given, window.seen()),
        name=NAME,
        description=_described(actions),
        args_schema={
            "type": "object",
            "properties": {"action": {"type": "string", "enum": list(actions)}, **_parameters(actions)},
            "required": ["action"],
        },
        infer_schema=False,
        # The page says what is wrong with arguments; nobody adds the schema to its words.
        handle_validation_error=True,
        response_format="content_and_artifact",
        metadata={"idempotent": True, "mode": "ordered"},
    )


def _described(actions: Sequence[ActionName]) -> str:
    lines = [", ".join(words for name, words in line.items() if name in actions) for line in _LINES]
    return "\n".join([_DESCRIPTION, *(f"- {line}" for line in lines if line)])


def _parameters(actions: Sequence[ActionName]) -> dict[str, Any]:
    return {
        name: one.schema(actions)
        for name, one in _PARAMETERS.items()
        if any(action in actions for action in one.actions)
    }
