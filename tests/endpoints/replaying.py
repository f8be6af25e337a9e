"""Replays a raw output: a real server process over a scripted endpoint, asked by HTTP as a client does."""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.endpoints.server_framing import CALLS, REPORT, SCRIPT, RawOutput, accept
from tests.grammar import Client
from tests.openai_server import Json, OpenAIServer, serving
from tests.serving import Frame, environment, frames_of, server_process
from tests.team import data

SETTINGS = """
models: {basic: {max_retries: 2, timeout_seconds: 60}}
runs: {drain_seconds: 0}
browser: {enabled: false}
"""
WITHOUT_TROUBLE: dict[str, Any] = {
    "status": "completed",
    "answer": REPORT,
    "members": ("coder", "reporter"),
    "gaps": (),
    "calls": CALLS,
    "results": ("42",),
    "error": ("", ""),
}
PIECE_BYTES = 61
"""Smaller than an event, and no divisor of anything: pieces end within characters and marks."""


@dataclass(frozen=True)
class Outcome:
    """What a client saw of a run."""

    status: str
    answer: str = ""
    """The last message of the conversation."""
    members: tuple[str, ...] = ()
    """The members of the last plan's steps."""
    gaps: tuple[str, ...] = ()
    """The reasons of the steps without a result."""
    calls: tuple[tuple[str, Json], ...] = ()
    results: tuple[str, ...] = ()
    error: tuple[str, str] = ("", "")
    """The code and the message of the run's error."""
    texts: dict[str, str] = field(default_factory=dict)
    """What each agent's messages say, without thoughts."""
    thoughts: dict[str, str] = field(default_factory=dict)
    usage: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Input, output and cached tokens by agent: those of its first call."""
    state: str = ""
    """The conversation as JSON."""

    @property
    def shown(self) -> str:
        """Everything that is shown or stored as an answer."""
        return "\n".join((*self.texts.values(), *self.results, self.error[1], self.state))


async def replay(row: RawOutput) -> tuple[Outcome, list[Json]]:
    """Run the row on a server and a folder of its own; return what came out, and the model's requests."""
    own = [{"piece_bytes": PIECE_BYTES, **one} for one in row.replies]
    script: Json = {**SCRIPT, **row.script, **({row.role: own} if own else {})}
    with serving(script) as model, tempfile.TemporaryDirectory() as folder:
        model.refuse = row.refuse
        return await _ask(row, model, Path(folder)), model.requests


async def _ask(row: RawOutput, model: OpenAIServer, home: Path) -> Outcome:
    (home / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    with server_process(environment(model.base_url, home, **row.settings), home) as process:
        async with httpx.AsyncClient(base_url=process.url, timeout=120) as client:
            frames = await frames_of(client, {"messages": [{"role": "user", "content": row.question}]})
    Client().read(frames)
    return read_outcome(frames)


def read_outcome(frames: Sequence[Frame]) -> Outcome:
    """Return what the frames of a run say."""
    [ended] = data(frames, "run_status")
    messages = frames[-1][1]["messages"]
    error = next(iter(data(frames, "error")), {})
    texts, thoughts = _messages(frames)
    return Outcome(
        status=ended["status"],
        answer=str(messages[-1]["content"]).strip(),
        members=tuple(step["agent_name"] for plan in data(frames, "plan")[-1:] for step in plan["steps"]),
        gaps=tuple(gap["reason"] for gap in ended.get("gaps", ())),
        calls=tuple((one["tool_name"], _arguments(one["tool_input"])) for one in data(frames, "tool_call")),
        results=tuple(str(one["tool_result"]).strip() for one in data(frames, "tool_call_result")),
        error=(error.get("code", ""), error.get("message", "")),
        texts=texts,
        thoughts=thoughts,
        usage=_usage(frames),
        state=json.dumps(messages, ensure_ascii=False),
    )


def _arguments(tool_input: Any) -> Json:
    return json.loads(tool_input) if isinstance(tool_input, str) else tool_input


def _messages(frames: Sequence[Frame]) -> tuple[dict[str, str], dict[str, str]]:
    texts, thoughts, agent = defaultdict[str, str](str), defaultdict[str, str](str), ""
    for name, content in frames:
        if name == "start_of_agent":
            agent = content["agent_name"]
        elif name == "message":
            texts[agent] += content["delta"].get("content", "")
            thoughts[agent] += content["delta"].get("reasoning_content", "")
    return dict(texts), dict(thoughts)


def _usage(frames: Sequence[Frame]) -> dict[str, tuple[int, int, int]]:
    counted: dict[str, tuple[int, int, int]] = {}
    for one in data(frames, "usage"):
        tokens = (one["input_tokens"], one["output_tokens"], one.get("cached_tokens", 0))
        counted.setdefault(one["agent_name"], tokens)
    return counted


def find_differences(row: RawOutput, outcome: Outcome, requests: Sequence[Json]) -> Json:
    """Return what is not as the row expects: the value found, and the one expected."""
    expected = {**WITHOUT_TROUBLE, **row.expects}
    found = {name: getattr(outcome, name) for name in expected}
    differing: Json = {
        name: (found[name], value) for name, value in expected.items() if not _is_like(found[name], value)
    }
    if shown := [text for text in row.hides if text in outcome.shown]:
        differing["hides"] = (shown, [])
    is_refused = row.kind == "refusals" and row.refuse is not accept
    if is_refused and not any(row.refuse(body) for body in requests):
        differing["refused"] = (0, "at least one request")
    return differing


def _is_like(found: Any, expected: Any) -> bool:
    """Return whether values are equal; of mappings, those that are expected; patterns match anywhere."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(_is_like(found.get(key), value) for key, value in expected.items())
    if isinstance(expected, tuple) and isinstance(found, tuple):
        return len(found) == len(expected) and all(map(_is_like, found, expected))
    if isinstance(expected, re.Pattern):
        return bool(expected.search(found or ""))
    return found == expected
