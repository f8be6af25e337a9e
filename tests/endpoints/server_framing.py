"""The rows of the table of raw outputs, and how model servers frame their answers."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.openai_server import Json, call, reply

Kind = Literal["refusals", "thoughts", "calls", "plans", "frames", "usage"]

QUESTION = "Compute 20 + 22 with Python."
CODE = "print(20 + 22)"
REPORT = "# Sum\n\nThe sum is **42**."
STEPS = (
    {"agent_name": "coder", "title": "Add", "description": "Compute 20 + 22 with Python."},
    {"agent_name": "reporter", "title": "Report", "description": "Report the sum."},
)
PLAN: Json = {"thought": "A sum is asked for.", "title": "20 + 22", "steps": list(STEPS)}
SCRIPT: Json = {
    "coordinator": [call("handoff_to_planner")],
    "planner": [reply(json.dumps(PLAN))],
    "coder": [call("python_repl_tool", code=CODE), reply("20 + 22 = 42")],
    "reporter": [reply(REPORT)],
    "other": [reply("OK")],
}
CALLS = (("python_repl_tool", {"code": CODE}),)
"""The calls of a run without trouble."""
MARKS = (
    *("SECRET", "think>", "<tool_call", "<|", "|>", "｜", "[THINK]", "[TOOL_CALLS]", "◁", "<function"),
    *("parameter>", "assistantfinal", "arg_key"),
)
"""What is never shown: thoughts, and the marks around them and around calls."""


def accept(body: Json) -> str:
    """Refuse no request."""
    return ""


@dataclass(frozen=True)
class RawOutput:
    """The answers that a model server gives to one role: their form, and what comes out."""

    form: str
    kind: Kind
    server: str
    role: str
    """Whose answers `replies` are; all other roles answer from `SCRIPT`."""
    outcome: str
    """What comes out, in words, for the page."""
    replies: tuple[Json, ...] = ()
    refuse: Callable[[Json], str | Json] = accept
    expects: Mapping[str, Any] = field(default_factory=dict)
    """Values of the outcome, by its attributes; what is not named is that of a run without trouble."""
    hides: tuple[str, ...] = MARKS
    question: Any = QUESTION
    script: Mapping[str, Any] = field(default_factory=dict)
    """Other answers than those of `SCRIPT` in the same run."""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of the row's test."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.kind}-{self.server}-{self.form}".lower()).strip("-")


def sse(*events: Json | str, done: bool = True) -> Json:
    """Return a reply of server-sent events; those that are text stand as they are."""
    lines = [one if isinstance(one, str) else f"data: {dump(one)}\n\n" for one in events]
    return {"raw": "".join(lines) + ("data: [DONE]\n\n" if done else "")}


def dump(value: Any) -> str:
    """Return JSON as servers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_reply(body: Any, status: int = 200, **headers: str) -> Json:
    """Return a reply of one JSON body; one that is text stands as it is."""
    raw = body if isinstance(body, str) else dump(body)
    return {"status": status, "raw": raw, "headers": {"content-type": "application/json", **headers}}


def pieces(text: str) -> list[str]:
    """Cut a text as tokens cut it."""
    return re.findall(r"\s?\w{1,5}|\s+|.", text, re.S)


@dataclass(frozen=True)
class Framing:
    """What the chunks of a server have around a delta."""

    head: Json
    first: Json | None = None
    choice: Json = field(default_factory=dict)
    repeats_role: bool = False
    last: Json = field(default_factory=dict)

    def chunk(self, delta: Json | None, finish: str | None = None, **more: Any) -> Json:
        """Return a chunk."""
        role = {"role": "assistant"} if self.repeats_role and delta is not None else {}
        whole = {**role, **delta} if delta is not None else None
        choice = {"index": 0, "delta": whole, **self.choice, "finish_reason": finish}
        return {**self.head, "choices": [choice], **more}

    def stream(self, *deltas: Json, finish: str = "stop", tail: tuple[Json | str, ...] = ()) -> Json:
        """Return a reply of whole events; `tail` comes after the finish."""
        first = [self.chunk(self.first)] if self.first else []
        return sse(*first, *map(self.chunk, deltas), self.chunk(self.last, finish), *tail)

    def text(self, text: str, *, field: str = "content", finish: str = "stop") -> Json:
        """Return a reply of text in token-like pieces."""
        return self.stream(*({field: piece} for piece in pieces(text)), finish=finish)

    def whole(self, message: Json, finish: str = "stop", **more: Any) -> Json:
        """Return a reply in one JSON body."""
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return json_reply({**self.head, "object": "chat.completion", "choices": [choice], **more})


def _head(identity: str, **more: Any) -> Json:
    return {"id": identity, "object": "chat.completion.chunk", "created": 1757000000, "model": "m", **more}


_EMPTY = {"role": "assistant", "content": ""}
_PROBABILITIES = {"logprobs": None}
OPENAI = Framing(
    _head("chatcmpl-Bx1", service_tier="default", system_fingerprint="fp_1"),
    {**_EMPTY, "refusal": None},
    _PROBABILITIES,
)
VLLM = Framing(_head("chatcmpl-6f1e"), _EMPTY, _PROBABILITIES, last={"content": ""})
SGLANG = Framing(
    _head("a1b2"), {**_EMPTY, "reasoning_content": None}, {**_PROBABILITIES, "matched_stop": None}
)
OLLAMA = Framing(_head("chatcmpl-7", system_fingerprint="fp_ollama"), repeats_role=True, last={"content": ""})
LM_STUDIO = Framing(_head("chatcmpl-q9", system_fingerprint="m"), choice=_PROBABILITIES, repeats_role=True)
LLAMA_CPP = Framing(
    _head("chatcmpl-Zk", system_fingerprint="b6100-ab12"), {"role": "assistant", "content": None}
)
DEEPSEEK = Framing(_head("9d1c", system_fingerprint="fp_8802"), _EMPTY, _PROBABILITIES, last={"content": ""})
MISTRAL = Framing(_head("f0e1"), _EMPTY, last={"content": ""})
QWEN = Framing(_head("chatcmpl-q1", usage=None, system_fingerprint=None), _EMPTY, _PROBABILITIES)
OPENROUTER = Framing(
    _head("gen-17", provider="Novita"), None, {"native_finish_reason": None, **_PROBABILITIES}, True, _EMPTY
)
KIMI = Framing(_head("chatcmpl-k2"), _EMPTY)
GEMINI = Framing(_head("-Xa8"), repeats_role=True)
GROQ = Framing(_head("chatcmpl-g"), _EMPTY, _PROBABILITIES)
LITELLM = Framing(_head("chatcmpl-ll"), choice=_PROBABILITIES)


def greets(form: str, server: str, *replies: Json, **more: Any) -> RawOutput:
    """Return a row whose coordinator answers a greeting by itself: "Hello!"."""
    fields: Json = {"kind": "thoughts", "outcome": "the thoughts are apart from the answer", **more}
    greeting = {"answer": "Hello!", "members": (), "calls": (), "results": ()}
    expects = {**greeting, **fields.pop("expects", {})}
    return RawOutput(
        form=form,
        server=server,
        role="coordinator",
        replies=replies,
        expects=expects,
        question=fields.pop("question", "Hi"),
        **fields,
    )
