"""The process that browser-use runs in: it observes, clicks and types; a request is one line of JSON.

A program of its own that uses the standard library and browser-use alone. In the server's process,
browser-use would read `.env` into the environment, patch asyncio and block the loop for seconds on a large
page. Only its view of a page, its clicks and its typing are used; dialogs, downloads, tabs and permissions
are left to Playwright, which drives the same Chromium.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from browser_use.browser.profile import BrowserProfile  # type: ignore[import-not-found]
from browser_use.browser.session import BrowserSession  # type: ignore[import-not-found]
from browser_use.browser.watchdogs.default_action_watchdog import (  # type: ignore[import-not-found]
    DefaultActionWatchdog,
)
from browser_use.dom.service import DomService  # type: ignore[import-not-found]
from browser_use.dom.views import NodeType  # type: ignore[import-not-found]

_MAX_ROWS = 4_000
_MAX_CHARACTERS = 500
_KNOWN_BY = ("type", "role", "name", "id", "href", "aria-label", "title", "alt", "placeholder")
_NAMED_BY = ("aria-label", "placeholder", "title", "alt", "name", "id")
# Describes an element, and marks it for Playwright to find, in one step of the page.
_SEEN = """function(keys, mark) {
    if (mark) this.setAttribute(mark, "");
    return JSON.stringify([this.isConnected, this.localName, keys.map(key => this.getAttribute(key)),
        this.textContent.replace(/\\s+/g, " ").trim()]);
}"""


class ChangedError(Exception):
    """An element has changed since it was shown."""


class Worker:
    """Serves requests about the Chromium at `url`, whose windows have so many CSS pixels."""

    def __init__(self, url: str, width: int, height: int) -> None:
        self._session = BrowserSession(
            browser_profile=BrowserProfile(
                cdp_url=url,
                headless=True,
                keep_alive=True,
                chromium_sandbox=False,
                enable_default_extensions=False,
                highlight_elements=False,
                # Without it browser-use sets a size of its own.
                viewport={"width": width, "height": height},
            )
        )
        self._shown: list[Any] = []
        self._look = ""

    async def connect(self) -> None:
        """Connect without the helpers that browser-use starts with its own browser."""
        await self._session.connect(self._session.cdp_url)
        DefaultActionWatchdog.model_rebuild()
        self._watchdog = DefaultActionWatchdog(
            event_bus=self._session.event_bus, browser_session=self._session
        )

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        match asked["what"]:
            case "look":
                return await self._looked(asked["target"], asked["look"])
            case "click":
                node = await self._element(asked)
                return {
                    "refused": (await self._watchdog._click_element_node_impl(node) or {}).get(
                        "validation_error"
                    )
                }
            case "type":
                node = await self._element(asked)
                await self._watchdog._input_text_element_node_impl(
                    node, asked["text"], clear=True, is_sensitive=True
                )
                return {}
            case _:
                await self._element(asked, asked["mark"])
                return {}

    async def _looked(self, target: str, look: str) -> dict[str, Any]:
        page = await self._session.get_or_create_cdp_session(target, focus=True)
        ask, session_id = page.cdp_client.send, page.session_id
        tree = (await ask.Page.getFrameTree(session_id=session_id))["frameTree"]
        sizes = await ask.Page.getLayoutMetrics(session_id=session_id)
        window, whole = sizes["cssVisualViewport"], sizes["cssContentSize"]
        # Paint order filtering is quadratic: 23 s for 3,000 controls.
        service = DomService(self._session, cross_origin_iframes=True, paint_order_filtering=False)
        state, _, _ = await service.get_serialized_dom_tree()
        self._shown, self._look = [], look
        above, height = window["pageY"], window["clientHeight"]
        rows = [] if state._root is None else list(self._rows(state._root, (above, above + height)))
        return {
            "document": tree["frame"]["loaderId"],
            "above": above,
            "below": max(0, whole["height"] - above - height),
            "width": window["clientWidth"],
            "height": height,
            "rows": rows,
        }

    def _rows(self, root: Any, window: tuple[float, float]) -> Iterator[dict[str, Any]]:
        rows = 0
        waiting = [(root, False)]
        while waiting and rows < _MAX_ROWS:
            node, is_named = waiting.pop()
            own = node.original_node
            is_control = node.is_interactive and own.node_type == NodeType.ELEMENT_NODE
            waiting += [(child, is_named or is_control) for child in reversed(node.children)]
            if is_control and not node.excluded_by_parent:
                rows += 1
                yield self._control(own, window)
            elif (
                own.node_type == NodeType.TEXT_NODE
                and own.is_visible
                and not is_named
                and own.node_value.strip()
            ):
                rows += 1
                yield {"text": own.node_value[:_MAX_CHARACTERS], "seen": _is_in(own.parent_node, window)}

    def _control(self, node: Any, window: tuple[float, float]) -> dict[str, Any]:
        attributes = node.attributes or {}
        self._shown.append(node)
        accessible = node.ax_node.name if node.ax_node and node.ax_node.name else ""
        return {
            "key": f"{node.target_id}-{node.backend_node_id}",
            "tag": node.tag_name,
            "type": attributes.get("type", ""),
            "role": attributes.get("role", ""),
            "name": (accessible or _text_of(node) or _first(attributes))[:_MAX_CHARACTERS],
            "value": ""
            if attributes.get("type") == "password"
            else attributes.get("value", "")[:_MAX_CHARACTERS],
            "seen": _is_in(node, window),
        }

    async def _element(self, asked: dict[str, Any], mark: str = "") -> Any:
        """Return the element of a request if it has not changed since."""
        if asked["look"] != self._look or not 0 <= asked["place"] < len(self._shown):
            raise ChangedError
        node = self._shown[asked["place"]]
        frame = await self._session.cdp_client_for_node(node)
        ask, session_id = frame.cdp_client.send, frame.session_id
        try:
            found = await ask.DOM.resolveNode(
                params={"backendNodeId": node.backend_node_id}, session_id=session_id
            )
            call = {
                "objectId": found["object"]["objectId"],
                "functionDeclaration": _SEEN,
                "arguments": [{"value": list(_KNOWN_BY)}, {"value": mark}],
            }
            seen = await ask.Runtime.callFunctionOn(params=call, session_id=session_id)
        except RuntimeError as error:  # it is gone
            raise ChangedError from error
        attributes = node.attributes or {}
        known = [True, node.tag_name, [attributes.get(key) for key in _KNOWN_BY], _text_of(node)]
        if json.loads(seen["result"]["value"]) != known:
            raise ChangedError
        return node


def _text_of(node: Any) -> str:
    parts, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        if one.node_type == NodeType.TEXT_NODE:
            parts.append(one.node_value)
        waiting += reversed(one.children_nodes or [])
    return re.sub(r"[ \t\n\r\f\v\u00a0\ufeff\u2028\u2029]+", " ", "".join(parts)).strip()


def _first(attributes: dict[str, str]) -> str:
    return next((attributes[key] for key in _NAMED_BY if attributes.get(key)), "")


def _is_in(node: Any, window: tuple[float, float]) -> bool:
    place = node.absolute_position if node is not None else None
    return place is None or (place.y < window[1] and place.y + place.height > window[0])


async def _serve(worker: Worker, out: Any) -> None:
    def send(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    await worker.connect()
    send({"id": 0})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        try:
            send({"id": asked["id"], **await worker.answer(asked)})
        except ChangedError:
            send({"id": asked["id"], "changed": True})
        except Exception as error:  # noqa: BLE001 - browser-use raises many types; all are reported
            send({"id": asked["id"], "failed": f"{error}"[:_MAX_CHARACTERS]})


if __name__ == "__main__":
    # Output of browser-use must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asyncio.run(_serve(Worker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), answers))
    os._exit(0)  # do not wait for its threads and sockets
