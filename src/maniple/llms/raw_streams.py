"""Streamed answers as the endpoint's own JSON: server-sent events, and neighbouring pieces joined.

The SDK sends the request. Its stream makes pydantic objects of each event, and LangChain converts each of
them and calls its callbacks: most of the CPU time of a run. Here, what has arrived since the last read is
joined before LangChain converts it. The pieces of an answer depend on the network and on the load; their
concatenation does not.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, cast

import httpx2
import openai
from pydantic_core import from_json

from maniple.llms.paced_streams import limit_response
from maniple.llms.streams import MAX_CALLS, call_limit, reasoning_of
from maniple.text import fix_surrogates

MAX_EVENT_BYTES = 32 * 2**20
"""The longest event, or answer in one body, that is read; a longer one is an invalid answer."""

_DECODER = json.JSONDecoder()
_DRAIN_SECONDS = 0.1
_NOT_IN_BODY = ("extra_headers", "extra_query", "extra_body", "timeout")
_BOM = b"\xef\xbb\xbf"
_BEFORE_BODY = _BOM + b" \t\r\n"
_ERROR_TEXTS = ("message", "detail", "error_msg", "msg")
_SHOWN_BYTES = 200
"""So much of what was skipped is in the error of a stream without an answer."""


class RawCompletions:
    """The SDK's completions, whose streams yield joined chunks as dictionaries.

    Requests, authentication, retries and errors by status stay with the SDK. LangChain accepts dictionaries
    in place of the SDK's objects.
    """

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)

    async def create(self, **payload: Any) -> Any:
        """Return the SDK's result; for a stream, the context manager that LangChain expects."""
        return self._open(payload) if payload.get("stream") else await self._completions.create(**payload)

    @asynccontextmanager
    async def _open(self, payload: dict[str, Any]) -> AsyncIterator[AsyncGenerator[dict[str, Any]]]:
        request = self._completions.with_streaming_response.create(**_without_conversion(payload))
        # Each generator closes the one below it, so that the connection is returned immediately.
        async with request as response, aclosing(read_chunks(response.http_response)) as chunks:
            yield chunks


def _without_conversion(payload: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of `create` that send the same body.

    The SDK walks through every argument along its types, to rename and encode what a body never has: 6 % of
    the CPU time of a run. It leaves `extra_body` alone.
    """
    arguments = {name: value for name, value in payload.items() if name in _NOT_IN_BODY}
    body = {name: value for name, value in payload.items() if name not in _NOT_IN_BODY}
    body |= payload.get("extra_body") or {}
    return {**arguments, "model": payload["model"], "messages": (), "stream": True, "extra_body": body}


async def read_chunks(response: httpx2.Response) -> AsyncGenerator[dict[str, Any]]:
    """Yield the chunks of an answer, joined as far as they have arrived when the next one is asked for.

    The usage is in the last chunk. Raises the SDK's errors for what breaks off and for errors within the
    answer, and `ValueError` for what is not JSON.
    """
    reader, has_begun = ChunkReader(response.request, call_limit()), False
    limit_response(response, is_limited=False)
    try:
        async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces:
            async for piece in pieces:
                for chunk in reader.feed(piece):
                    yield chunk
                    if not has_begun and _is_shown(chunk):
                        has_begun = True
                        limit_response(response, is_limited=True)
                if reader.is_done:
                    limit_response(response, is_limited=False)
                    await _drain(pieces)
                    break
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except (httpx2.RequestError, ssl.SSLError) as error:
        raise openai.APIConnectionError(request=response.request) from error
    for chunk in reader.close():
        yield chunk


def _is_shown(chunk: dict[str, Any]) -> bool:
    """Return whether a chunk has more of an answer than its role."""
    return any(_kind(choice.get("delta")) for choice in chunk.get("choices") or ())


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    # A connection can be used again only once the end of its answer was read, which follows `[DONE]`.
    with suppress(TimeoutError, httpx2.RequestError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


class ChunkReader:
    """Reads an answer in pieces of any size; `request` is named in errors.

    The answer ends before the tool call after `most_calls`.
    """

    def __init__(self, request: httpx2.Request, most_calls: int = MAX_CALLS) -> None:
        self._request = request
        self._most_calls = most_calls
        self._known_calls: set[Any] = set()
        self._is_cut = False
        self._events = EventDecoder()
        self._body: list[bytes] | None = None
        """The pieces of an answer in one JSON body, from an endpoint that does not stream."""
        self._begun = False
        self._size = 0
        self._usage: dict[str, Any] = {}
        self._service_tier: Any = None
        self._calls = 0
        """The number of tool calls that the endpoint did not number."""
        self._open_calls: dict[Any, dict[str, Any]] = {}
        """The id and name of the newest call of each index."""
        self._answered = False
        self._skipped = b""
        """The newest event that is no part of an answer."""
        self._beginning = b""
        """The first bytes of the body."""
        self._has_ended = False
        """Whether a finish reason was read."""

    @property
    def is_done(self) -> bool:
        """Whether the endpoint announced the end of the answer, or it has more calls than are read."""
        return self._events.is_done or self._is_cut

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Add a piece; yield the chunks that it completes."""
        if not self._begun and (start := piece.lstrip(_BEFORE_BODY)):
            self._begun = True
            self._body = [] if start.startswith(b"{") else None
        self._beginning += piece[: _SHOWN_BYTES - len(self._beginning)]
        if self._body is None:
            return join_chunks(self._read(self._events.feed(piece)))
        self._body.append(piece)
        self._size += len(piece)
        _limit(self._size)
        return iter(())

    def close(self) -> Iterator[dict[str, Any]]:
        """End the answer; yield what remains, and the usage last."""
        if self._body is not None:
            yield from self._read([b"".join(self._body).lstrip(_BEFORE_BODY)])
        elif not self._events.is_done:
            yield from self._read(one for one in self._events.end() if _is_whole(one))
        if not self._answered and (sent_bytes := self._skipped or self._beginning):
            sent = sent_bytes[:_SHOWN_BYTES].decode(errors="replace")
            raise ValueError(f"the answer is empty; the endpoint sent {sent}")
        if self._is_cut:
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        elif self._events.is_done and self._answered and not self._has_ended:
            # Some servers give no reason; `[DONE]` says as well that the answer is whole.
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        if self._usage:
            yield {"choices": [], "usage": self._usage, "service_tier": self._service_tier}

    def _read(self, events: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for event in events:
            chunks = read_json_objects(event)
            self._raise_error(event, chunks)
            for chunk in chunks:
                if not isinstance(chunk.get("choices", []), list) or not self._is_part(chunk):
                    continue
                yield chunk
                if self._is_cut:
                    return
            if not chunks or "choices" not in chunks[0]:
                self._skipped = event or self._skipped

    def _raise_error(self, event: bytes, chunks: Iterable[dict[str, Any]]) -> None:
        """Raise the error that an event reports, if it does."""
        is_error = self._events.name == b"error"
        for chunk in chunks:
            if (error := _error_in(chunk, is_error=is_error)) is not None:
                raise openai.APIError(str(error.get("message") or error), self._request, body=error)
        if is_error and event:
            text = event.decode(errors="replace")
            raise openai.APIError(text, self._request, body={"message": text})

    def _is_part(self, chunk: dict[str, Any]) -> bool:
        """Store the usage of a chunk; return whether the rest is part of the answer."""
        if usage := _pop_usage(chunk):
            # Some endpoints send the usage so far with each chunk, and LangChain adds up what it gets.
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self._service_tier = chunk.get("service_tier")
        choices = chunk.get("choices")
        if choices:
            choices = chunk["choices"] = [one for one in choices if isinstance(one, dict)]
        for choice in choices or ():
            self._answered = True
            self._has_ended = self._has_ended or bool(choice.get("finish_reason"))
            self._add_fields(choice)
        return bool(choices) or (choices is not None and not usage)

    def _add_fields(self, choice: dict[str, Any]) -> None:
        """Add the fields that LangChain requires and that the SDK's objects always have."""
        # `message` is the field of an answer that is not streamed, `text` that of the API
        # without a chat. Without a delta, a chunk would be ignored.
        text = {"content": choice["text"]} if isinstance(choice.get("text"), str) else {}
        delta = choice["delta"] = choice.get("delta") or choice.get("message") or text
        if not isinstance(delta, dict):
            return
        if isinstance(delta.get("content"), list):
            _flatten_content(delta)
        if legacy := delta.pop("function_call", None):
            delta["tool_calls"] = [{"index": 0, "function": legacy}]
        if calls := delta.get("tool_calls"):
            delta["tool_calls"] = self._limit_calls(
                self._complete_call(call) for call in calls if isinstance(call, dict)
            )

    def _complete_call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return a piece of a call in the one form that LangChain joins."""
        function = call["function"] = call.get("function") or {}
        if call.get("index") is None:
            # Gemini does not number calls. It may split one into pieces; only the first has a name.
            is_new = call.get("id") or function.get("name")
            call["index"] = self._calls if is_new else max(0, self._calls - 1)
            self._calls += 1 if is_new else 0
        if not isinstance(function.get("arguments"), str | None):
            function["arguments"] = json.dumps(function["arguments"])
        named = {"id": call.get("id"), "name": function.get("name")}
        if named["name"] and self._open_calls.get(call["index"]) == named:
            # Some gateways repeat the name in each piece, and LangChain would write one behind the other.
            call["id"] = function["name"] = None
            call.pop("extra_content", None)
        elif named["name"]:
            self._open_calls[call["index"]] = named
        return call

    def _limit_calls(self, calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the pieces of the calls that are read."""
        kept: list[dict[str, Any]] = []
        for call in calls:
            index = call["index"] if isinstance(call["index"], int | str) else len(self._known_calls)
            if index not in self._known_calls and len(self._known_calls) >= self._most_calls:
                self._is_cut = True
                break
            self._known_calls.add(index)
            kept.append(call)
        return kept


def _pop_usage(chunk: dict[str, Any]) -> dict[str, Any]:
    """Take the usage out of a chunk; Groq has it in an object of its own, Kimi in the choice."""
    nested = [chunk.get("x_groq"), *(chunk.get("choices") or ())]
    found = [chunk.pop("usage", None), *(one.get("usage") for one in nested if isinstance(one, dict))]
    return next((usage for usage in found if isinstance(usage, dict) and usage), {})


def _flatten_content(message: dict[str, Any]) -> None:
    """Replace a list of parts, as Mistral sends them, by their text; thoughts get the field of their own."""
    texts, thoughts = list[str](), list[str]()
    for part in message["content"]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            thinking = part.get("thinking")
            inner = thinking if isinstance(thinking, list) else [thinking]
            thoughts += [one.get("text") or "" if isinstance(one, dict) else one or "" for one in inner]
            texts.append(part.get("text") or "")
    message["content"] = "".join(texts)
    if thought := "".join(thoughts):
        message["reasoning_content"] = thought


class EventDecoder:
    """Server-sent events in pieces of any size, by the rules of the HTML standard; only `data` is read.

    Lines end with LF, CR or CRLF. `data` lines of one event are joined with LF. An event that no empty line
    ends is dropped, except the last one if `end` is called.
    """

    def __init__(self) -> None:
        self.is_done = False
        """Whether the event `[DONE]` was read; nothing after it is."""
        self.name = b""
        """The name of the event that was yielded last, "" without any."""
        self._name = b""
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        """The bytes that were read after the last event, without the rest of its piece."""
        self._after_cr = False
        self._at_start = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece; yield the data of each event that it completes."""
        if not piece:
            return
        if self._after_cr:
            piece = piece.removeprefix(b"\n")
        self._after_cr = piece.endswith(b"\r")
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = piece.split(b"\n")
        self._line.append(first)
        self._size += len(piece)
        _limit(self._size)
        if not rest:
            return
        lines = [b"".join(self._line), *rest]
        self._line = [lines.pop()]
        if self._at_start:
            lines[0], self._at_start = lines[0].removeprefix(_BOM), False
        yield from self._read_lines(lines)

    def end(self) -> Iterator[bytes]:
        """End the stream; yield the data of an event that no empty line ends, as far as it arrived."""
        yield from self.feed(b"\n\n")

    def _read_lines(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
                elif name == b"event":
                    self._name = value.strip()
                continue
            self._size = 0
            self.name, self._name = self._name, b""
            if self._data:
                data, self._data = b"\n".join(self._data), []
                if data.startswith(b"[DONE]"):
                    self.is_done = True
                    return
                yield data


def _is_whole(event: bytes) -> bool:
    try:
        return bool(read_json_objects(event))
    except ValueError:
        return False


def _limit(size: int) -> None:
    if size > MAX_EVENT_BYTES:
        raise ValueError(f"the answer has an event of more than {MAX_EVENT_BYTES} bytes")


def read_json_objects(data: bytes) -> list[dict[str, Any]]:
    """Return the JSON object in an event, with lone surrogates repaired; what is no object is left out.

    Some endpoints forget the empty lines between events, or all line ends, and an event then has several.
    Raises `ValueError` for an object that cannot be read.
    """
    try:
        values = [_read_json(data)]
    except ValueError:
        lines = (line.strip().decode() for line in data.split(b"\n"))
        values = [value for line in lines for value in _objects_in(line)]
    return [value for value in values if isinstance(value, dict)]


def _objects_in(line: str) -> Iterator[Any]:
    """Yield the objects at the beginning of a line, one behind the other; what follows them is left out."""
    while line.startswith("{"):
        value, end = _DECODER.raw_decode(line)
        yield fix_surrogates(value)
        line = line[end:].lstrip(" \t,")


def _read_json(data: bytes) -> Any:
    try:
        return from_json(data)
    except ValueError:
        # Slower, but it also reads lone surrogates and deep nesting.
        return fix_surrogates(json.loads(data.decode()))


def _error_in(chunk: dict[str, Any], *, is_error: bool) -> dict[str, Any] | None:
    """Return the error that a chunk reports; `is_error` if its event has that name."""
    error = chunk.get("error")
    if isinstance(error, dict) and error:
        return error
    if not (error or is_error or "error" in (chunk.get("object"), chunk.get("type"))):
        return None
    texts = (error, *(chunk.get(name) for name in _ERROR_TEXTS))
    return {**chunk, "message": next((text for text in texts if text and isinstance(text, str)), str(chunk))}


_ROLES = ("assistant", "", None)
_READ_AT_THE_END = ("model", "system_fingerprint", "service_tier")
"""What LangChain reads of a chunk that has a finish reason."""


def join_chunks(chunks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join neighbours of one kind: text with text, reasoning with reasoning, pieces of tool calls.

    Only what LangChain reads is joined. Chunks that it would read differently when joined stay apart.
    """
    joined: dict[str, Any] | None = None
    try:
        for chunk in chunks:
            if joined is None:
                joined = chunk
            elif not _add(joined, chunk):
                yield joined
                joined = chunk
    except Exception:
        if joined is not None:
            yield joined
        raise
    if joined is not None:
        yield joined


def _add(joined: dict[str, Any], chunk: dict[str, Any]) -> bool:
    """Add `chunk` to `joined`, or return False and leave both as they are."""
    choices, earlier = chunk.get("choices"), joined.get("choices")
    if not choices:
        return True  # LangChain reads nothing else of it
    if not earlier or len(earlier) > 1 or len(choices) > 1 or earlier[0].get("finish_reason"):
        return False
    first, second = earlier[0], choices[0]
    if first.get("index") != second.get("index") or first.get("logprobs") or second.get("logprobs"):
        return False
    if not _add_delta(first["delta"], second["delta"]):
        return False
    if reason := second.get("finish_reason"):
        first["finish_reason"] = reason
        joined.update((name, chunk[name]) for name in _READ_AT_THE_END if name in chunk)
    return True


def _add_delta(joined: Any, delta: Any) -> bool:
    kind, known = _kind(delta), _kind(joined)
    if "other" in (kind, known) or (kind and known and kind != known):
        return False
    if kind == "content":
        joined["content"] = (joined.get("content") or "") + delta["content"]
    elif kind == "reasoning":
        joined["reasoning_content"] = reasoning_of(joined) + reasoning_of(delta)
    elif kind == "tool_calls" and not _add_calls(joined, delta["tool_calls"]):
        return False
    joined["role"] = joined.get("role") or delta.get("role")
    return True


def _kind(delta: Any) -> str:
    """Return what a delta holds, "" if that is nothing; "other" is never joined."""
    if not isinstance(delta, dict) or delta.get("role") not in _ROLES:
        return "other"
    if delta.get("id") or delta.get("function_call") or not isinstance(delta.get("content") or "", str):
        return "other"
    found = "content" if delta.get("content") else ""
    if delta.get("tool_calls"):
        found = "other" if found else "tool_calls"
    if reasoning_of(delta):
        found = "other" if found else "reasoning"
    return found


def _add_calls(joined: dict[str, Any], calls: Iterable[dict[str, Any]]) -> bool:
    """Add pieces of tool calls as LangChain does: by their index, and apart without one."""
    known: dict[int, dict[str, Any]] = {}
    for call in joined.get("tool_calls") or ():
        known.setdefault(call["index"], call)
    new: list[dict[str, Any]] = []
    pieces: list[tuple[dict[str, Any], str]] = []
    for call in calls:
        index, function = call["index"], call["function"]
        if index not in known or not isinstance(index, int):
            new.append(call)
            known[index] = call
        elif call.get("id") or function.get("name") or call.get("extra_content"):
            return False  # LangChain decides whether it is the same call
        else:
            pieces.append((known[index]["function"], function.get("arguments") or ""))
    for function, arguments in pieces:
        function["arguments"] = (function.get("arguments") or "") + arguments
    joined["tool_calls"] = [*(joined.get("tool_calls") or ()), *new]
    return True
