"""What model servers really send, and what must come out of it.

Each row is one answer of one server, after its documentation or public bug reports of its users. The bytes of
one role's answers are the row's; all other roles answer from `SCRIPT`.
"""

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
PLAN = {"thought": "A sum is asked for.", "title": "20 + 22", "steps": list(STEPS)}
SCRIPT: Json = {
    "coordinator": [call("handoff_to_planner")],
    "planner": [reply(json.dumps(PLAN))],
    "coder": [call("python_repl_tool", code=CODE), reply("20 + 22 = 42")],
    "reporter": [reply(REPORT)],
    "other": [reply("OK")],
}
CALLS = (("python_repl_tool", {"code": CODE}),)


def _accept(body: Json) -> str:
    return ""


@dataclass(frozen=True)
class RawOutput:
    """One answer of a model server: the form, and what comes out."""

    form: str
    kind: Kind
    server: str
    role: str
    """Whose answers `replies` are."""
    outcome: str
    """What comes out, in words, for the page."""
    replies: tuple[Json, ...] = ()
    refuse: Callable[[Json], str | Json] = _accept
    expects: Mapping[str, Any] = field(default_factory=dict)
    """Values of the outcome, by its attributes; what is not named is that of a run without trouble."""
    hides: tuple[str, ...] = ("SECRET", "</think>", "<tool_call", "<|", "｜", "[THINK]", "[TOOL_CALLS]")
    """What is never shown."""
    question: str = QUESTION
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of the row's test."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.kind}-{self.server}-{self.form}".lower()).strip("-")


# How servers frame an answer.


def _sse(*events: Json | str, done: bool = True) -> str:
    """Return the body of a stream; events that are text stand as they are."""
    lines = [one if isinstance(one, str) else f"data: {_dump(one)}\n\n" for one in events]
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pieces(text: str) -> list[str]:
    """Cut a text as tokens cut it."""
    return re.findall(r"\s?\w{1,5}|\s+|.", text, re.S)


@dataclass(frozen=True)
class Framing:
    """What a server's chunks have around a delta."""

    head: Json
    first: Json | None = None
    choice: Json = field(default_factory=dict)
    repeats_role: bool = False
    last: Json = field(default_factory=dict)

    def chunk(self, delta: Json | None, finish: str | None = None, **more: Any) -> Json:
        """Return a chunk."""
        role = {"role": "assistant"} if self.repeats_role and delta is not None else {}
        whole = {**role, **delta} if delta is not None else None
        return {
            **self.head,
            "choices": [{"index": 0, "delta": whole, **self.choice, "finish_reason": finish}],
            **more,
        }

    def stream(self, *deltas: Json, finish: str = "stop", tail: tuple[Json | str, ...] = ()) -> Json:
        """Return a reply of whole events; `tail` comes after the finish."""
        first = [self.chunk(self.first)] if self.first else []
        events = [*first, *map(self.chunk, deltas), self.chunk(self.last, finish), *tail]
        return {"raw": _sse(*events)}

    def text(self, text: str, *, field: str = "content", finish: str = "stop") -> Json:
        """Return a reply of text in token-like pieces."""
        return self.stream(*({field: piece} for piece in _pieces(text)), finish=finish)


def _head(identity: str, **more: Any) -> Json:
    return {"id": identity, "object": "chat.completion.chunk", "created": 1757000000, "model": "m", **more}


_EMPTY = {"role": "assistant", "content": ""}
OPENAI = Framing(
    _head("chatcmpl-Bx1", service_tier="default", system_fingerprint="fp_1"),
    {"role": "assistant", "content": "", "refusal": None},
    {"logprobs": None},
)
VLLM = Framing(_head("chatcmpl-6f1e"), _EMPTY, {"logprobs": None}, last={"content": ""})
SGLANG = Framing(
    _head("a1b2"), {**_EMPTY, "reasoning_content": None}, {"logprobs": None, "matched_stop": None}
)
OLLAMA = Framing(_head("chatcmpl-7", system_fingerprint="fp_ollama"), repeats_role=True, last={"content": ""})
LM_STUDIO = Framing(
    _head("chatcmpl-q9", system_fingerprint="m"), choice={"logprobs": None}, repeats_role=True
)
LLAMA_CPP = Framing(
    _head("chatcmpl-Zk", system_fingerprint="b6100-ab12"), {"role": "assistant", "content": None}
)
DEEPSEEK = Framing(
    _head("9d1c", system_fingerprint="fp_8802"), _EMPTY, {"logprobs": None}, last={"content": ""}
)
MISTRAL = Framing(_head("f0e1"), _EMPTY, last={"content": ""})
QWEN = Framing(_head("chatcmpl-q1", usage=None, system_fingerprint=None), _EMPTY, {"logprobs": None})
OPENROUTER = Framing(
    _head("gen-17", provider="Novita"), None, {"native_finish_reason": None, "logprobs": None}, True, _EMPTY
)
KIMI = Framing(_head("chatcmpl-k2"), _EMPTY)
LITELLM = Framing(_head("chatcmpl-ll"), choice={"logprobs": None})

# Thoughts: the coordinator answers by itself, unless another role is named.

_GREETING = {"answer": "Hello!", "members": (), "calls": (), "results": ()}


def _greets(form: str, server: str, *replies: Json, outcome: str = "", **more: Any) -> RawOutput:
    expects = {**_GREETING, **more.pop("expects", {})}
    outcome = outcome or "thoughts apart; the answer is shown"
    kind = more.pop("kind", "thoughts")
    return RawOutput(
        form, kind, server, "coordinator", outcome, replies, expects=expects, question="Hi", **more
    )


THOUGHTS = [
    _greets(
        "`reasoning_content`",
        "DeepSeek",
        DEEPSEEK.stream(
            {"content": None, "reasoning_content": "SECRET: a"},
            {"content": None, "reasoning_content": " greeting."},
            {"content": "Hel", "reasoning_content": None},
            {"content": "lo!", "reasoning_content": None},
        ),
    ),
    _greets(
        "`reasoning`",
        "Ollama",
        OLLAMA.stream(
            {"content": "", "reasoning": "SECRET: a"},
            {"content": "", "reasoning": " greeting."},
            {"content": "Hello!"},
        ),
    ),
    _greets(
        "`<think>` in the text", "Ollama", OLLAMA.text("<think>\nSECRET: a greeting.\n</think>\n\nHello!")
    ),
    _greets("only `</think>`", "vLLM", VLLM.text("A greeting. SECRET.\n</think>\n\nHello!")),
    _greets("`[THINK]`", "Mistral", VLLM.text("[THINK]A greeting. SECRET.[/THINK]Hello!")),
    _greets(
        "harmony channels",
        "LM Studio",
        LM_STUDIO.text(
            "<|channel|>analysis<|message|>SECRET: a greeting.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"
        ),
    ),
]

# Calls: the coder's first answer is a call, its second one the result.

_DONE = reply("20 + 22 = 42")


def _calls(form: str, server: str, first: Json, outcome: str = "the call runs", **more: Any) -> RawOutput:
    return RawOutput(form, "calls", server, "coder", outcome, (first, _DONE), **more)


_ARGUMENTS = _dump({"code": CODE})
CALLS_ROWS = [
    _calls(
        "native, in pieces",
        "vLLM",
        VLLM.stream(
            {
                "tool_calls": [
                    {
                        "id": "chatcmpl-tool-1",
                        "type": "function",
                        "index": 0,
                        "function": {"name": "python_repl_tool"},
                    }
                ]
            },
            *(
                {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
                for piece in _pieces(_ARGUMENTS)
            ),
            finish="tool_calls",
        ),
    ),
    _calls(
        "`<tool_call>` after a sentence",
        "Qwen",
        VLLM.text(
            f'I compute it.\n\n<tool_call>\n{{"name": "python_repl_tool", "arguments": {_ARGUMENTS}}}\n</tool_call>'
        ),
    ),
    _calls(
        "`[TOOL_CALLS]name[ARGS]`", "Mistral", VLLM.text(f"[TOOL_CALLS]python_repl_tool[ARGS]{_ARGUMENTS}")
    ),
    _calls(
        "`<function=…><parameter=…>`",
        "Qwen",
        LM_STUDIO.text(
            f"<tool_call>\n<function=python_repl_tool>\n<parameter=code>\n{CODE}\n</parameter>\n</function>\n</tool_call>"
        ),
    ),
]

# Refusals: the endpoint refuses requests of a form until they have another one.


def _refused(status: int, body: Any) -> Json:
    return {
        "status": status,
        "raw": body if isinstance(body, str) else _dump(body),
        "headers": {"content-type": "application/json"},
    }


def _openai_error(
    message: str, param: str | None = None, code: Any = None, kind: str = "invalid_request_error"
) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _refuses(
    form: str, server: str, is_bad: Callable[[Json], Any], status: int, body: Any, **more: Any
) -> RawOutput:
    answer = _refused(status, body)
    return RawOutput(
        form,
        "refusals",
        server,
        more.pop("role", "coder"),
        more.pop("outcome", "learned, sent without it; the run completes"),
        refuse=lambda sent: answer if is_bad(sent) else "",
        **more,
    )


REFUSALS = [
    _refuses(
        "`temperature` other than 1",
        "OpenAI",
        lambda sent: sent.get("temperature", 1) != 1,
        400,
        _openai_error(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is "
            "supported.",
            "temperature",
            "unsupported_value",
        ),
    ),
]

# Plans.


def _plans(form: str, server: str, *replies: Json, outcome: str = "the plan", **more: Any) -> RawOutput:
    return RawOutput(form, "plans", server, "planner", outcome, replies, **more)


_PLAN = json.dumps(PLAN)
PLANS = [
    _plans("in a fence", "Ollama", OLLAMA.text(f"Here is the plan:\n\n```json\n{_PLAN}\n```\n")),
    _plans("wrapped in `plan`", "Qwen", QWEN.text(_dump({"plan": PLAN}))),
]

# Frames.


def _frames(form: str, server: str, *replies: Json, outcome: str = "the answer", **more: Any) -> RawOutput:
    return _greets(form, server, *replies, outcome=outcome, kind="frames", **more)


_HELLO = [OPENAI.chunk({"content": "Hel"}), OPENAI.chunk({"content": "lo!"}), OPENAI.chunk({}, "stop")]
FRAMES = [
    _frames(
        "comments while it waits",
        "OpenRouter",
        {"raw": _sse(": OPENROUTER PROCESSING\n\n", ": OPENROUTER PROCESSING\n\n", *_HELLO)},
    ),
    _frames(
        "`data: : keepalive`", "gateways", {"raw": _sse(_HELLO[0], "data: : keepalive\n\n", *_HELLO[1:])}
    ),
]

# Usage.


def _counts(form: str, server: str, first: Json, tokens: tuple[int, int, int], **more: Any) -> RawOutput:
    return _greets(
        form,
        server,
        first,
        outcome="{} in, {} out, {} cached".format(*tokens),
        kind="usage",
        expects={"usage": {"coordinator": tokens}},
        **more,
    )


USAGE = [
    _counts(
        "after the finish, without choices",
        "OpenAI",
        {
            "raw": _sse(
                *_HELLO,
                {
                    **OPENAI.head,
                    "choices": [],
                    "usage": {
                        "prompt_tokens": 100,
                        "completion_tokens": 7,
                        "total_tokens": 107,
                        "prompt_tokens_details": {"cached_tokens": 64},
                    },
                },
            )
        },
        (100, 7, 64),
    ),
]

ROWS: tuple[RawOutput, ...] = (*REFUSALS, *THOUGHTS, *CALLS_ROWS, *PLANS, *FRAMES, *USAGE)
