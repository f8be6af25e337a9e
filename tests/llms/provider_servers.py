"""A server on loopback that speaks the APIs of other providers, with the answers of a test."""

import json
import ssl
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
INPUT, CACHED, OUTPUT = 10, 4, 7
HELD_SECONDS = 20
"""After them, the rest of an answer comes in any case."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answers: thoughts, pieces of text, then calls as (name, arguments)."""

    text: tuple[str, ...] = ()
    thoughts: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    is_cut: bool = False
    """The connection ends before the answer does."""
    reaches_limit: bool = False
    body: bytes | None = None
    """Is sent in place of all this."""


@dataclass(slots=True)
class ProviderServer:
    answers: list[Answer]
    """The last one is repeated."""
    refusals: list[tuple[int, str]] = field(default_factory=list)
    """Statuses with messages, which come before the answers."""
    requests: list[Json] = field(default_factory=list)
    base_url: str = ""
    held: bytes | None = None
    """The first event with these bytes, and what follows it, is sent after `release` is set."""
    release: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def _sse(events: list[Json], *, names: bool = False) -> list[bytes]:
    lines = [(f"event: {one['type']}\n" if names else "") + f"data: {json.dumps(one)}\n\n" for one in events]
    return [line.encode() for line in lines]


def anthropic(answer: Answer) -> list[bytes]:
    usage = {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    events: list[Json] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[Json, list[Json]]] = []
    if answer.thoughts:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": answer.thoughts}]
        deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if answer.text:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in answer.text])
        )
    for number, (name, arguments) in enumerate(answer.calls):
        text = json.dumps(arguments)
        parts = [{"type": "input_json_delta", "partial_json": one} for one in (text[:3], text[3:])]
        blocks.append(({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}, parts))
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": one} for one in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if not answer.is_cut:
        reason = "max_tokens" if answer.reaches_limit else "tool_use" if answer.calls else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {**usage, "output_tokens": OUTPUT}})
        events.append({"type": "message_stop"})
    return _sse(events, names=True)


def ollama(answer: Answer) -> list[bytes]:
    def line(message: Json, **more: Any) -> Json:
        whole = {"role": "assistant", "content": "", **message}
        return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": whole, "done": False, **more}

    lines = [line({"thinking": answer.thoughts})] if answer.thoughts else []
    lines += [line({"content": one}) for one in answer.text]
    calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in answer.calls]
    lines += [line({"tool_calls": calls})] if calls else []
    if not answer.is_cut:
        reason = "length" if answer.reaches_limit else "stop"
        lines.append(line({}, done=True, done_reason=reason, prompt_eval_count=INPUT, eval_count=OUTPUT))
    return [json.dumps(one).encode() + b"\n" for one in lines]


def gemini(answer: Answer) -> list[bytes]:
    parts: list[Json] = [{"text": answer.thoughts, "thought": True}] if answer.thoughts else []
    parts += [{"text": one} for one in answer.text]
    parts += [{"functionCall": {"name": name, "args": args}} for name, args in answer.calls]
    usage = {"promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT, "totalTokenCount": INPUT + OUTPUT}
    usage["cachedContentTokenCount"] = CACHED
    events: list[Json] = [
        {"candidates": [{"content": {"role": "model", "parts": [one]}, "index": 0}], "modelVersion": "m"}
        for one in parts
    ]
    if not answer.is_cut:
        events[-1]["candidates"][0]["finishReason"] = "MAX_TOKENS" if answer.reaches_limit else "STOP"
        events[-1]["usageMetadata"] = usage
    return _sse(events)


def bedrock(answer: Answer) -> list[bytes]:
    events: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
    blocks: list[tuple[Json, list[Json]]] = []
    if answer.thoughts:
        thoughts = [{"text": answer.thoughts}, {"signature": "c2lnbmVk"}]
        blocks.append(({}, [{"reasoningContent": one} for one in thoughts]))
    if answer.text:
        blocks.append(({}, [{"text": one} for one in answer.text]))
    for number, (name, arguments) in enumerate(answer.calls):
        text = json.dumps(arguments)
        start = {"toolUse": {"toolUseId": f"call_{number}", "name": name}}
        blocks.append((start, [{"toolUse": {"input": one}} for one in (text[:3], text[3:])]))
    for index, (start, deltas) in enumerate(blocks):
        if start:
            events.append(("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        events += [("contentBlockDelta", {"contentBlockIndex": index, "delta": one}) for one in deltas]
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
    if not answer.is_cut:
        reason = "max_tokens" if answer.reaches_limit else "tool_use" if answer.calls else "end_turn"
        usage = {"inputTokens": INPUT - CACHED, "outputTokens": OUTPUT, "totalTokens": INPUT + OUTPUT}
        usage["cacheReadInputTokens"] = CACHED
        events.append(("messageStop", {"stopReason": reason}))
        events.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return [_frame(name, body) for name, body in events]


def _frame(name: str, body: Json) -> bytes:
    """Encode an event of AWS: lengths, headers and payload, each part with its CRC."""
    values = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for key, value in values.items()
    )
    payload = json.dumps(body).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _refusal(path: str, status: int, message: str) -> Json:
    if "/v1/messages" in path:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if path.startswith("/api/"):
        return {"error": message}
    if "/model/" in path:
        return {"message": message}
    return {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}


_FORMATS = {
    "/v1/messages": (anthropic, "text/event-stream"),
    "/api/chat": (ollama, "application/x-ndjson"),
    "streamGenerateContent": (gemini, "text/event-stream"),
    "/converse-stream": (bedrock, "application/vnd.amazon.eventstream"),
}


@contextmanager
def provider_serving(
    *answers: Answer, refusals: tuple[tuple[int, str], ...] = (), tls: ssl.SSLContext | None = None
) -> Iterator[ProviderServer]:
    """Serve the APIs on loopback; `base_url` is the address of all of them."""
    state = ProviderServer(list(answers), list(refusals))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            state.requests.append(json.loads(self.rfile.read(size)))
            if state.refusals:
                status, message = state.refusals.pop(0)
                parts, kind = [json.dumps(_refusal(self.path, status, message)).encode()], "application/json"
            else:
                status = 200
                encode, kind = next(found for part, found in _FORMATS.items() if part in self.path)
                answer = state.next_answer()
                parts = encode(answer) if answer.body is None else [answer.body] if answer.body else []
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("transfer-encoding", "chunked")
            self.send_header("connection", "close")
            if status >= 400:
                self.send_header("x-amzn-errortype", "ValidationException")
            self.end_headers()
            for part in parts:
                if state.held is not None and state.held in part:
                    state.release.wait(HELD_SECONDS)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    state.base_url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
