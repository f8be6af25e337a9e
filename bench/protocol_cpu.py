"""CPU of the server for a run that a client follows by each protocol, and the code of each protocol.

Each protocol asks the same question of one server; they take turns, so that a busy machine slows all alike.
"""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

import maniple
from bench.load import TEAM, cpu_seconds, servers_under_load
from bench.streams import SCRIPT

ROUNDS = 24
WARM_UP = 3
_NORMAL_95 = 1.96
NATIVE = "native"
_RUN_SECONDS = 120
_SOURCE = Path(maniple.__file__).parent
_LANGGRAPH = "api/protocols/langgraph"
CODE: Mapping[str, Sequence[str]] = {
    "chat_completions": ("api/protocols/chat_*.py",),
    "responses": ("api/protocols/responses*.py",),
    "openai_shared": ("api/protocols/conversations.py", "api/protocols/openai_errors.py"),
    "ag_ui": ("api/protocols/ag_ui*.py",),
    "langgraph": (f"{_LANGGRAPH}/*.py",),
    "langgraph_v2_alone": (f"{_LANGGRAPH}/command_routes.py", f"{_LANGGRAPH}/thread_events.py"),
    "mcp": ("mcp_server/*.py",),
    "acp": ("acp_server/*.py",),
    "all_shared": ("api/protocols/following.py", "api/protocols/run_choices.py"),
}
"""The modules of each protocol."""


@dataclass(frozen=True)
class ProtocolRequest:
    """A request that asks a question and streams the run, and how the end of its stream is known."""

    path: str
    body: Callable[[str], dict[str, Any]]
    """Returns the body for a question."""
    end: bytes
    """Is in the last pieces of a stream whose run was completed."""
    start: Callable[[str], dict[str, Any]] | None = None
    """Returns the body that starts the run at /threads/ID/commands, where `path` only follows it."""


def _messages(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


def _ag_ui_input(question: str) -> dict[str, Any]:
    message = {"id": str(uuid4()), **_messages(question)[0]}
    ids = {"threadId": str(uuid4()), "runId": str(uuid4())}
    return {**ids, "messages": [message], "tools": [], "context": [], "state": {}, "forwardedProps": {}}


def _langgraph(modes: Sequence[str]) -> ProtocolRequest:
    def body(question: str) -> dict[str, Any]:
        given = {"messages": _messages(question)}
        return {"assistant_id": "maniple", "input": given, "stream_mode": modes}

    return ProtocolRequest("/runs/stream", body, b"event: end\n")


def _start_command(question: str) -> dict[str, Any]:
    given = {"assistant_id": "maniple", "input": {"messages": _messages(question)}}
    return {"id": 1, "method": "run.start", "params": given}


_COMPLETED = b'"data": {"event": "completed", "graph_name": "maniple"'
_CHANNELS = ["lifecycle", "messages", "values"]
PROTOCOLS = {
    NATIVE: ProtocolRequest(
        "/api/chat/stream?view=live",
        lambda question: {"messages": _messages(question)},
        b"event: final_session_state\n",
    ),
    "langmanus": ProtocolRequest(
        "/api/chat/stream",
        lambda question: {"messages": _messages(question)},
        b"event: final_session_state\n",
    ),
    "chat_completions": ProtocolRequest(
        "/v1/chat/completions",
        lambda question: {"model": "maniple", "messages": _messages(question), "stream": True},
        b"[DONE]",
    ),
    "responses": ProtocolRequest(
        "/v1/responses",
        lambda question: {"model": "maniple", "input": question, "stream": True},
        b"event: response.completed\n",
    ),
    "ag_ui": ProtocolRequest("/ag-ui", _ag_ui_input, b'"RUN_FINISHED"'),
    "langgraph": _langgraph(["values", "messages-tuple"]),
    "langgraph_all": _langgraph(["values", "updates", "messages-tuple", "custom", "events"]),
    "langgraph_v2": ProtocolRequest(
        "/threads/{thread}/stream/events", lambda _: {"channels": _CHANNELS}, _COMPLETED, _start_command
    ),
}


def count_lines() -> dict[str, float]:
    """Return the lines of the modules of each protocol."""
    files = {name: {file for one in CODE[name] for file in _SOURCE.glob(one)} for name in CODE}
    lines = {name: [file.read_text(encoding="utf-8").count("\n") for file in files[name]] for name in CODE}
    return {f"{name}_lines": sum(lines[name]) for name in CODE}


async def measure(rounds: int = ROUNDS, warm_up: int = WARM_UP) -> dict[str, float]:
    """Return the CPU of a native run in milliseconds, each protocol's median ratio to it, and their lines.

    `low` and `high` are the 95 % interval of a ratio.
    """
    spent: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
    with servers_under_load(SCRIPT, TEAM) as servers:
        async with httpx.AsyncClient(base_url=servers.urls[TEAM], timeout=_RUN_SECONDS) as client:
            for number in range(warm_up + rounds):
                for name, one in PROTOCOLS.items():
                    before = cpu_seconds(servers.pids[TEAM])
                    await follow(client, one, f"1+3=? #run={name}{number}")
                    if number >= warm_up:
                        spent[name].append(cpu_seconds(servers.pids[TEAM]) - before)
    native = spent.pop(NATIVE)
    figures = {"native_cpu_ms": round(1000 * statistics.median(native), 1)}
    for name, values in spent.items():
        ratios = [one / beside for one, beside in zip(values, native, strict=True)]
        figures[f"{name}_cpu_of_native"] = round(statistics.median(ratios), 3)
        low, high = find_interval(ratios)
        figures |= {f"{name}_low": round(low, 3), f"{name}_high": round(high, 3)}
    return {**figures, **count_lines()}


def find_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by the ranks that the binomial distribution gives."""
    ordered, half = sorted(values), len(values) / 2
    rank = max(0, math.floor(half - _NORMAL_95 * math.sqrt(len(values)) / 2))
    return ordered[rank], ordered[-1 - rank]


async def follow(client: httpx.AsyncClient, asked: ProtocolRequest, question: str) -> int:
    """Ask a question and read the stream; return its bytes. Raises `RuntimeError` if it did not complete."""
    size, tail, thread = 0, b"", str(uuid4())
    if asked.start is not None:
        started = await client.post(f"/threads/{thread}/commands", json=asked.start(question))
        started.raise_for_status()
    content = json.dumps(asked.body(question)).encode()
    path, headers = asked.path.format(thread=thread), {"content-type": "application/json"}
    async with client.stream("POST", path, content=content, headers=headers) as answer:
        async for piece in answer.aiter_raw():
            size += len(piece)
            tail = (tail + piece)[-100_000:]
            if asked.start is not None and asked.end in tail:
                break  # the stream goes on with the next run of the thread
    if answer.status_code != 200 or asked.end not in tail:
        raise RuntimeError(f"{asked.path} did not complete a run: {answer.status_code}, {tail[-300:]!r}")
    return size
