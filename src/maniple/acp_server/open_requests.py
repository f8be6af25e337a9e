"""The requests to the editor that wait for its user, and taking them back."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from acp.connection import StreamDirection, StreamEvent

_METHOD = "session/request_permission"
_CANCEL = "$/cancel_request"
"""A notification that either side may send and ignore (https://agentclientprotocol.com/rfds/request-cancellation)."""


@dataclass(slots=True)
class OpenRequests:
    """Knows the JSON-RPC ids of permission requests, which the protocol's package does not return."""

    writer: asyncio.StreamWriter
    _open: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """The session and the tool call of each request, by its id."""

    def observe(self, event: StreamEvent) -> None:
        """Take note of a request to the editor, or of its answer."""
        message = event.message
        if event.direction is StreamDirection.OUTGOING and message.get("method") == _METHOD:
            asked = message["params"]
            self._open[message["id"]] = (asked["sessionId"], asked["toolCall"]["toolCallId"])
        elif event.direction is StreamDirection.INCOMING and "method" not in message:
            self._open.pop(message.get("id", -1), None)

    def take_back(self, session_id: str, tool_call_id: str) -> None:
        """Tell the editor that what it asks its user about a tool call was decided, or is over."""
        for request_id, asked in [*self._open.items()]:
            if asked == (session_id, tool_call_id):
                del self._open[request_id]
                self._send({"method": _CANCEL, "params": {"requestId": request_id}})

    def _send(self, notification: dict[str, Any]) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps({"jsonrpc": "2.0", **notification}).encode() + b"\n")
