"""What actions say, whatever drives the browser."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from maniple.browser.actions import Action, ActionName
from maniple.browser.page import Found

MASK = "********"
"""Stands for what was typed into a password field; its length says nothing of the secret's."""
NO_SEARCH = "there is no search here; open the page of a search engine, or a page that you know"
_DONE: Mapping[ActionName, str] = {
    "go_to_url": "Navigated to {url}",
    "open_tab": "Opened new tab with {url}",
    "go_back": "Navigated back",
    "refresh": "Refreshed current page",
    "click_element": "Clicked element at index {index}",
    "input_text": "Input '{text}' into element at index {index}",
    "scroll_to_text": "Scrolled to text: '{text}'",
    "send_keys": "Sent keys: {keys}",
    "select_dropdown_option": "Selected option '{text}' from dropdown at index {index}",
    "switch_tab": "Switched to tab {tab_id}",
    "close_tab": "Closed current tab",
    "wait": "Waited for {seconds} seconds",
}
_RESULTS = 5
_RESULT_CHARACTERS = 300


def failed(action: str, why: str) -> str:
    """Return what is said of an action that failed; `why` is a sentence or part of one."""
    return f"Browser action '{action}' failed: {why}"


def done(action: Action) -> str:
    """Return what is said of an action that succeeded, as far as it is known before."""
    return _DONE.get(action.action, "Did {action}").format(
        action=action.action,
        url=action.url,
        index=action.index,
        text=action.text,
        keys=action.keys,
        tab_id=action.tab_id,
        seconds=f"{action.seconds:g}",
    )


def options_listed(options: Sequence[Any], count: int, total: int, text: str | None) -> str:
    """Return what a dropdown offers: the first of `count` options with the text, of `total` in all."""
    words = f"Dropdown options: {json.dumps(options, ensure_ascii=False)}"
    if text:
        return f"{words} (of {total}, the first {len(options)} of {count} with '{one_line(text, 100)}')"
    is_cut = total > len(options)
    return f"{words} (the first {len(options)} of {total}; `text` finds others)" if is_cut else words


def search_results(query: str, results: Sequence[Found]) -> str:
    """Return the first results of a search as a numbered list; what they say is cut to a line or two each."""
    lines = [f"Search results for '{query}':"]
    for number, found in enumerate(results[:_RESULTS], 1):
        lines.append(f"{number}. {one_line(found.title, 200)}\n   {one_line(found.url, 2_000)}")
        if content := one_line(found.content, _RESULT_CHARACTERS):
            lines.append(f"   {content}")
    return "\n".join(lines)


def one_line(text: str, characters: int) -> str:
    """Return untrusted text as one line of at most so many characters."""
    # Cut first: splitting megabytes to keep a line of them takes its time.
    line = " ".join(text[: 4 * characters].split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"
