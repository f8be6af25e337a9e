"""The frames of answers: streams as servers and gateways write them, cut streams, errors inside, and usage."""

import re
from typing import Any

from tests.endpoints.server_framing import (
    DEEPSEEK,
    GROQ,
    KIMI,
    LLAMA_CPP,
    MISTRAL,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    PLAN,
    QWEN,
    REPORT,
    SGLANG,
    VLLM,
    Framing,
    RawOutput,
    dump,
    greets,
    json_reply,
    pieces,
    sse,
)
from tests.openai_server import Json, reply

_EVENTS = [OPENAI.chunk({"content": "Hel"}), OPENAI.chunk({"content": "lo!"}), OPENAI.chunk({}, "stop")]
_BODY = sse(*_EVENTS)["raw"]
_LAST = sse(_EVENTS[-1])["raw"]
_TEXTS = ({"index": 0, "text": "Hel"}, {"index": 0, "text": "lo!", "finish_reason": "stop"})


def _row(form: str, server: str, *replies: Json, **more: Any) -> RawOutput:
    return greets(form, server, *replies, **{"outcome": "the answer comes out", **more, "kind": "frames"})


def _raw(text: str, **more: Any) -> Json:
    return {"raw": text, **more}


def _between(event: str) -> Json:
    """Return a stream with something between its events."""
    first, *others = _EVENTS
    return sse(first, event, *others)


def _cut(framing: Framing, *deltas: Json) -> Json:
    return {**sse(*map(framing.chunk, deltas), done=False), "is_cut": True}


_HTML = "<!DOCTYPE html><html><head><title>Sign in to the guest network</title></head><body>…</body></html>"
_FAILS = {"status": "failed", "calls": (), "results": (), "members": (), "answer": re.compile(".")}

FRAMES: tuple[RawOutput, ...] = (
    _row("comments while it waits", "OpenRouter", sse(*[": OPENROUTER PROCESSING\n\n"] * 3, *_EVENTS)),
    _row("comments within the answer", "DeepSeek", _between(": keep-alive\n\n")),
    _row("`data: : keepalive`", "gateways", _between("data: : keepalive\n\n")),
    _row("`data: ping`", "gateways", _between("data: ping\n\n")),
    _row('`data: ""`', "gateways", _between('data: ""\n\n')),
    _row("`data:` with nothing", "gateways", _between("data:\n\n")),
    _row("`data: null`", "gateways", _between("data: null\n\n")),
    _row("`event: ping`", "LiteLLM", _between('event: ping\ndata: {"type": "ping"}\n\n')),
    _row(
        "an object without `choices`",
        "vLLM",
        _between('data: {"status": "processing", "queue_position": 3}\n\n'),
    ),
    _row("no space after `data:`", "Qwen", _raw(_BODY.replace("data: ", "data:"))),
    _row(
        "`id:` and `event:` lines",
        "Qwen",
        _raw(_BODY.replace("data: {", "id:1\nevent:result\n:HTTP_STATUS/200\ndata: {")),
    ),
    _row("CRLF", "gateways", _raw(_BODY.replace("\n", "\r\n"))),
    _row("no `[DONE]`", "Ollama", sse(*_EVENTS, done=False)),
    _row("no empty lines between events", "gateways", _raw(_BODY.replace("\n\n", "\n") + "\n")),
    _row(
        "two objects in one line", "gateways", _raw(f"data: {dump(_EVENTS[0])}{dump(_EVENTS[1])}\n\n" + _LAST)
    ),
    _row("a comma after each object", "gateways", _raw(_BODY.replace("}\n", "},\n"))),
    _row("the last event without line ends", "gateways", _raw(sse(*_EVENTS, done=False)["raw"].rstrip())),
    _row(
        "null among calls and choices",
        "gateways",
        sse(
            OPENAI.chunk({"content": "Hel", "tool_calls": [None]}),
            {**OPENAI.head, "choices": [None]},
            *_EVENTS[1:],
        ),
    ),
    _row(
        "`text` in place of `delta`", "gateways", sse(*({**OPENAI.head, "choices": [one]} for one in _TEXTS))
    ),
    _row("no line end after `[DONE]`", "llama.cpp", _raw(_BODY.rstrip("\n"))),
    _row("a byte order mark", "gateways", _raw("\ufeff" + _BODY)),
    _row("something after `[DONE]`", "gateways", _raw(_BODY + "data: {oops\n\n")),
    _row("no finish reason", "Ollama", sse(*_EVENTS[:2])),
    _row(
        "a first chunk without choices",
        "Azure",
        sse(
            {
                "choices": [],
                "created": 0,
                "id": "",
                "model": "",
                "object": "",
                "prompt_filter_results": [
                    {
                        "prompt_index": 0,
                        "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
                    }
                ],
            },
            *_EVENTS,
        ),
    ),
    _row("`choices` null in the last chunk", "gateways", sse(*_EVENTS, {**OPENAI.head, "choices": None})),
    _row("`delta` null in the last chunk", "gateways", sse(*_EVENTS[:2], OPENAI.chunk(None, "stop"))),
    _row(
        "a chunk without `delta`",
        "gateways",
        sse(*_EVENTS[:2], {**OPENAI.head, "choices": [{"index": 0, "finish_reason": "stop"}]}),
    ),
    _row("an answer in one body", "llama.cpp", LLAMA_CPP.whole({"content": "Hello!"})),
    _row(
        "events as `application/json`",
        "gateways",
        {**sse(*_EVENTS), "headers": {"content-type": "application/json"}},
    ),
    _row(
        "`message` in place of `delta`",
        "gateways",
        sse(
            {
                **OPENAI.head,
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": "Hello!"},
                        "finish_reason": "stop",
                    }
                ],
            }
        ),
    ),
    _row(
        "content filtered away",
        "Azure",
        sse(
            OPENAI.chunk({"content": "Hel"}),
            OPENAI.chunk({"content": "lo!"}, content_filter_results={"hate": {"filtered": False}}),
            OPENAI.chunk({}, "stop"),
        ),
    ),
    _row(
        "an error, then the answer",
        "OpenRouter",
        sse(
            {
                "error": {
                    "code": 502,
                    "message": "Provider returned error",
                    "metadata": {"headers": {"Retry-After": "0"}},
                },
                "user_id": "u",
            },
            done=False,
        ),
        sse(*_EVENTS),
        outcome="asked again",
    ),
    _row(
        "an empty body, then the answer",
        "gateways",
        _raw(""),
        sse(*_EVENTS),
        OPENAI.whole({"content": "Hello!"}),
        outcome="asked again",
    ),
    _row(
        "cut before the first word",
        "gateways",
        _cut(OPENAI, {"role": "assistant", "content": ""}),
        OPENAI.whole({"content": "Hello!"}),
        outcome="asked again",
    ),
    _row(
        "cut within the answer",
        "vLLM",
        _cut(VLLM, {"content": "Hel"}),
        VLLM.whole({"content": "Hello!"}),
        outcome="asked again",
    ),
    _row(
        "cut within the thoughts",
        "SGLang",
        _cut(SGLANG, {"reasoning_content": "SECRET"}),
        SGLANG.whole({"content": "Hello!"}),
        outcome="asked again",
    ),
    _row(
        "cut within `<think>`",
        "Ollama",
        _cut(OLLAMA, {"content": "<think>"}, {"content": "SECRET"}),
        OLLAMA.whole({"content": "<think>SECRET</think>Hello!"}),
        outcome="asked again",
    ),
    RawOutput(
        "cut within a call",
        "frames",
        "vLLM",
        "coder",
        "asked again; the call runs once",
        (
            _cut(
                VLLM,
                {
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "a",
                            "type": "function",
                            "function": {"name": "python_repl_tool", "arguments": '{"code": "print(20'},
                        }
                    ]
                },
            ),
            VLLM.whole(
                {
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "b",
                            "type": "function",
                            "function": {
                                "name": "python_repl_tool",
                                "arguments": '{"code": "print(20 + 22)"}',
                            },
                        }
                    ],
                },
                "tool_calls",
            ),
            reply("20 + 22 = 42"),
        ),
    ),
    RawOutput(
        "cut within a plan",
        "frames",
        "vLLM",
        "planner",
        "asked again; one plan",
        (
            _cut(VLLM, *({"content": piece} for piece in pieces(dump(PLAN)[:120]))),
            VLLM.whole({"content": dump(PLAN)}),
        ),
    ),
    RawOutput(
        "cut within the report",
        "frames",
        "Ollama",
        "reporter",
        "asked again; one report",
        (_cut(OLLAMA, {"content": "# Sum\n\nThe"}), OLLAMA.whole({"content": REPORT})),
    ),
    _row(
        "a sign-in page with 200",
        "gateways",
        {"raw": _HTML, "headers": {"content-type": "text/html"}},
        expects={**_FAILS, "error": ("model_bad_response", re.compile("Sign in to the guest network"))},
        outcome="the run fails and quotes it",
        settings={"MANIPLE_MODELS__BASIC__MAX_RETRIES": "0"},
    ),
    _row(
        "an error object with 200",
        "gateways",
        json_reply({"error": {"message": "The moon is wrong.", "code": 400}}),
        expects={**_FAILS, "error": ("model_bad_request", re.compile("The moon is wrong"))},
        outcome="the run fails in its words",
    ),
    _row(
        "an error of another form with 200",
        "Qwen",
        json_reply(
            {
                "code": "DataInspectionFailed",
                "message": "Input data may contain inappropriate content.",
                "request_id": "r",
            }
        ),
        expects={**_FAILS, "error": ("model_bad_response", re.compile("inappropriate content"))},
        outcome="the run fails in its words",
        settings={"MANIPLE_MODELS__BASIC__MAX_RETRIES": "0"},
    ),
)

# Usage.


def _counts(form: str, server: str, first: Json, tokens: tuple[int, int, int]) -> RawOutput:
    outcome = "counted" if any(tokens) else "no tokens are counted"
    outcome += ", with those of the cache" if tokens[2] else ""
    return greets(
        form, server, first, outcome=outcome, kind="usage", expects={"usage": {"coordinator": tokens}}
    )


def _usage(prompt: int = 100, completion: int = 7, **more: Any) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **more,
    }


_HELLO = ({"content": "Hel"}, {"content": "lo!"})
USAGE: tuple[RawOutput, ...] = (
    _counts(
        "after the finish, without choices",
        "OpenAI",
        OPENAI.stream(
            *_HELLO,
            tail=(
                {
                    **OPENAI.head,
                    "choices": [],
                    "usage": _usage(prompt_tokens_details={"cached_tokens": 64, "audio_tokens": 0}),
                },
            ),
        ),
        (100, 7, 64),
    ),
    _counts(
        "in the last chunk, with `prompt_cache_hit_tokens`",
        "DeepSeek",
        sse(
            *map(DEEPSEEK.chunk, _HELLO),
            DEEPSEEK.chunk(
                {"content": ""}, "stop", usage=_usage(prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36)
            ),
        ),
        (100, 7, 64),
    ),
    _counts(
        "so far, in every chunk",
        "vLLM",
        sse(
            *(VLLM.chunk(delta, usage=_usage(completion=at + 1)) for at, delta in enumerate(_HELLO)),
            VLLM.chunk({"content": ""}, "stop", usage=_usage(completion=7)),
            {**VLLM.head, "choices": [], "usage": _usage()},
        ),
        (100, 7, 0),
    ),
    _counts(
        "null in every chunk, then once",
        "Qwen",
        QWEN.stream(
            *_HELLO,
            tail=(
                {**QWEN.head, "choices": [], "usage": _usage(prompt_tokens_details={"cached_tokens": 32})},
            ),
        ),
        (100, 7, 32),
    ),
    _counts(
        "within the choice",
        "Kimi",
        sse(
            *map(KIMI.chunk, _HELLO),
            {
                **KIMI.head,
                "choices": [
                    {"index": 0, "delta": {}, "finish_reason": "stop", "usage": _usage(cached_tokens=48)}
                ],
            },
        ),
        (100, 7, 48),
    ),
    _counts(
        "in `x_groq`",
        "Groq",
        sse(
            *map(GROQ.chunk, _HELLO),
            GROQ.chunk({}, "stop", x_groq={"id": "req_1", "usage": _usage(queue_time=0.1)}),
        ),
        (100, 7, 0),
    ),
    _counts(
        "with costs and nulls",
        "OpenRouter",
        OPENROUTER.stream(
            *_HELLO,
            tail=(
                OPENROUTER.chunk(
                    {"content": ""},
                    usage=_usage(
                        cost=0.0001,
                        is_byok=False,
                        prompt_tokens_details={"cached_tokens": 16},
                        completion_tokens_details=None,
                    ),
                ),
            ),
        ),
        (100, 7, 16),
    ),
    _counts(
        "in the last chunk, beside the finish",
        "Mistral",
        sse(*map(MISTRAL.chunk, _HELLO), MISTRAL.chunk({"content": ""}, "stop", usage=_usage(), p="abcd")),
        (100, 7, 0),
    ),
    _counts(
        "with `timings`",
        "llama.cpp",
        LLAMA_CPP.stream(
            *_HELLO,
            tail=(
                {
                    **LLAMA_CPP.head,
                    "choices": [],
                    "usage": _usage(),
                    "timings": {"prompt_n": 36, "cache_n": 64},
                },
            ),
        ),
        (100, 7, 0),
    ),
    _counts(
        "`prompt_tokens_details` null",
        "SGLang",
        SGLANG.stream(
            *_HELLO,
            tail=(
                {
                    **SGLANG.head,
                    "choices": [],
                    "usage": _usage(prompt_tokens_details=None, reasoning_tokens=0),
                },
            ),
        ),
        (100, 7, 0),
    ),
    _counts("in one body", "Ollama", OLLAMA.whole({"content": "Hello!"}, usage=_usage()), (100, 7, 0)),
    _counts(
        "numbers as floats",
        "gateways",
        OPENAI.stream(
            *_HELLO,
            tail=(
                {
                    **OPENAI.head,
                    "choices": [],
                    "usage": {"prompt_tokens": 100.0, "completion_tokens": 7.0, "total_tokens": 107.0},
                },
            ),
        ),
        (100, 7, 0),
    ),
    _counts(
        "no total",
        "gateways",
        OPENAI.stream(
            *_HELLO,
            tail=({**OPENAI.head, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 7}},),
        ),
        (100, 7, 0),
    ),
    _counts("none", "gateways", OPENAI.stream(*_HELLO), (0, 0, 0)),
)
