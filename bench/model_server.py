"""A scripted model endpoint that costs little CPU: `python -m bench.model_server SCRIPT.json` prints its URL.

It runs in its own process, so that its CPU is not part of what is measured. Scripts are those of
`tests.openai_server`, with replies of text and tool calls; `{run}` and `index of NAME` work in them.

A token is one write: the first one `first_seconds` after the request, then one each `token_seconds`. Tokens
that are late are written together with the next one, so that a busy machine does not slow the model down.
Without delays, each turn of the event loop writes one token. `POST /admin/pace` sets the delays, and
`GET /admin/stats` says how many answers are being written (`active`).
"""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from tests.openai_server import build_completion, build_stream, fill_indices, role_and_run

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_TRAIN_SECONDS = 0.0005
"""Tokens that are due within this time are written together; it is below the resolution of the timers."""


@dataclass(frozen=True)
class Pace:
    """How fast the model writes."""

    first_seconds: float = 0.0
    token_seconds: float = 0.0

    def seconds(self, tokens: int) -> float:
        """Return the time that an answer of so many tokens takes."""
        return self.first_seconds + self.token_seconds * (tokens - 1)


IMMEDIATE = Pace()
REALISTIC = Pace(0.2, 0.005)


class ScriptedModel:
    """The replies of a script in their order, for each conversation and role."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._script = {role: [json.dumps(reply) for reply in replies] for role, replies in script.items()}
        self._turns: Counter[tuple[str, str]] = Counter()
        self._tokens: dict[tuple[str, int], list[bytes]] = {}

    def answer(self, body: dict[str, Any]) -> list[bytes]:
        """Return the tokens of the reply that is due, each as a chunk of HTTP."""
        role, run = role_and_run(body["messages"])
        turn = self._turns[run, role]
        self._turns[run, role] += 1
        replies = self._script[role]
        reply = replies[min(turn, len(replies) - 1)].replace("{run}", run)
        reply = fill_indices(reply, body["messages"])
        if reply not in replies:  # it has the conversation's name, or numbers of a page
            return _tokens(json.loads(reply), f"{role}{turn}", body)
        key = role, turn
        if key not in self._tokens:
            self._tokens[key] = _tokens(json.loads(reply), f"{role}{turn}", body)
        return self._tokens[key]


def count_tokens(replies: Sequence[dict[str, Any]]) -> list[int]:
    """Return the number of tokens of each reply, as the model writes them."""
    return [len(_tokens(reply, "", {"messages": [], "stream": True})) for reply in replies]


def _tokens(reply: dict[str, Any], name: str, body: dict[str, Any]) -> list[bytes]:
    completion, _ = build_completion(reply, name, body)
    opening, *events = build_stream(completion, reply)
    # The role comes with the first token, and the end with the last one.
    events[0] = opening + events[0]
    *events, last, ending = events
    return [b"%x\r\n%b\r\n" % (len(event), event) for event in (*events, last + ending)]


class ModelConnection(asyncio.Protocol):
    """One connection of a client; requests follow one another."""

    def __init__(self, server: "ModelServer") -> None:
        self._server = server
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is no subclass of asyncio.Transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.active.discard(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        if not separator or len(rest) < size:
            return
        self._received = rest[size:]
        self._answer(head.split(b" ", 2)[1], rest[:size])

    def _answer(self, path: bytes, body: bytes) -> None:
        if path.endswith(b"/chat/completions"):
            self._transport.write(_STREAM_HEAD)
            self._server.active.add(self)
            self._write(self._server.model.answer(json.loads(body)), 0, self._server.now())
            return
        if path == b"/admin/pace":
            self._server.pace = Pace(**json.loads(body))
        listing = b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}'
        if path == b"/admin/stats":
            listing = json.dumps({"active": len(self._server.active)}).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(listing) + listing)

    def _write(self, tokens: list[bytes], written: int, asked: float) -> None:
        """Write the tokens that are due, and come back for the next one."""
        if self._transport.is_closing():
            return
        loop, pace, count = self._server.loop, self._server.pace, len(tokens)
        if pace.token_seconds:
            late = self._server.now() - asked - pace.first_seconds + _TRAIN_SECONDS
            due = min(int(late // pace.token_seconds) + 1, count)
        else:
            due = written + 1
        if due > written:
            ending = _END if due == count else b""
            self._transport.write(b"".join(tokens[written:due]) + ending)
            written = due
        if written == count:
            self._server.active.discard(self)
            return
        if pace.token_seconds:
            loop.call_at(asked + pace.seconds(written + 1), self._write, tokens, written, asked)
        else:
            loop.call_soon(self._write, tokens, written, asked)


class ModelServer:
    """The endpoint: one script, one pace for all."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.model = ScriptedModel(script)
        self.pace = IMMEDIATE
        self.active: set[ModelConnection] = set()
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time


async def main(script: dict[str, Any]) -> None:
    server = ModelServer(script)
    listening = await server.loop.create_server(lambda: ModelConnection(server), "127.0.0.1", backlog=1024)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
