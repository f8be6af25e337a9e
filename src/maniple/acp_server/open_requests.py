"""The requests to the editor that wait for its user, and taking them back."""

import asyncio
import json
from dataclasses import dataclass, field

from acp.connection import StreamDirection, StreamEvent

_METHOD = "session/request_permission"
_CANCEL = "$/cancel_request"
"""A notification that either side may send and ignore (https://agentclientprotocol.com/rfds/request-cancellation)."""


@dataclass(slots=True)
class OpenRequests:
    """Knows the JSON-RPC ids of permission requests, which the protocol's package does not return."""

    writer: asyncio.StreamWriter
    _ids: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By session and tool call."""

    def observe(self, event: StreamEvent) -> None:
        """Take note of a message to the editor."""
        message = event.message
        if event.direction is StreamDirection.OUTGOING and message.get("method") == _METHOD:
            asked = message["params"]
            self._ids[asked["sessionId"], asked["toolCall"]["toolCallId"]] = message["id"]

    def close(self, session_id: str, tool_call_id: str, *, is_answered: bool) -> None:
        """Forget a request; one that is not answered is taken back."""
        request_id = self._ids.pop((session_id, tool_call_id), None)
        if request_id is None or is_answered or self.writer.is_closing():
            return
        notification = {"jsonrpc": "2.0", "method": _CANCEL, "params": {"requestId": request_id}}
        self.writer.write(json.dumps(notification).encode() + b"\n")
