"""Bounds on what a peer sends: bytes after decompression, seconds, encodings, and redirects to other origins.

A hook of an HTTP client puts them around each body before anybody reads it, so that no caller can forget
them: model endpoints, search engines, MCP servers and their logins. It serves httpx and httpx2.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from maniple.egress.body_decoders import BodyDecoder, DamagedBodyError, PlainDecoder, find_decoder

ACCEPT_ENCODING = "gzip, deflate"
"""The codings to ask for. A peer that sends another one sends more than a client can foresee."""
_ALLOWED_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_FRAMING_HEADERS = frozenset({"content-encoding", "content-length"})
_PORTS = {"http": 80, "https": 443}
_EVENT_STREAM = "text/event-stream"
_STEP_BYTES = 32 * 2**20
"""What one received piece may become when it is decompressed."""


class ResponseRefused(ValueError):
    """A response breaks a bound. The message continues the name of the peer: "sent more than 8 MB"."""


@dataclass(frozen=True, slots=True)
class ResponseBounds:
    """What is read of a response, after decompression. None is no bound.

    The body of an error is cut at its bounds, as its beginning says what went wrong, and so is that of a
    redirect, which clients read to its end. A stream without bounds is one that the request asked for:
    clients read anything else at once.
    """

    max_bytes: int = 32 * 2**20
    seconds: float | None = 600
    max_stream_bytes: int | None = 512 * 2**20
    """For an event stream: tokens are small, and each has an envelope of hundreds of bytes."""
    stream_seconds: float | None = 3_600
    max_error_bytes: int = 256 * 1024
    error_seconds: float = 10


@dataclass(slots=True)
class _BodyLimit:
    """The bounds of one body."""

    max_bytes: int | None
    seconds: float | None
    refusal: type[ResponseRefused]
    is_cut: bool = False
    """Whether the body ends at a bound, instead of being refused."""


def response_hook(
    stream_type: type[Any], bounds: ResponseBounds, refusal: type[ResponseRefused] = ResponseRefused
) -> Callable[[Any], Awaitable[None]]:
    """Return the hook for `event_hooks["response"]`; `stream_type` is the library's `AsyncByteStream`.

    It raises `refusal` for a redirect to another origin; what reads the body raises it for a broken bound.
    Send `ACCEPT_ENCODING` with each request.
    """

    class BoundedBody(stream_type):
        """The decompressed body of a response, within its bounds."""

        def __init__(self, body: Any, decoder: BodyDecoder, limit: _BodyLimit) -> None:
            self._body, self._decoder, self._limit = body, decoder, limit

        def __aiter__(self) -> AsyncGenerator[bytes]:
            return _bounded_pieces(self._body, self._decoder, self._limit)

        async def aclose(self) -> None:
            await self._body.aclose()

    async def bound(response: Any) -> None:
        limit = _limit_of(response, bounds, refusal)
        _refuse_other_origin(response, refusal)
        decoder = _decoder_of(response, limit)
        for name in _FRAMING_HEADERS & {name.casefold() for name in response.headers}:
            del response.headers[name]
        response.stream = BoundedBody(response.stream, decoder, limit)

    return bound


def _decoder_of(response: Any, limit: _BodyLimit) -> BodyDecoder:
    """Return the decoder of a body; raise the refusal for a coding that was not asked for.

    Nothing is read of an error in such a coding.
    """
    encoding = response.headers.get("content-encoding", "").strip().casefold()
    decoder = find_decoder(encoding) if encoding in _ALLOWED_ENCODINGS else None
    if decoder is not None:
        return decoder
    if not limit.is_cut:
        raise limit.refusal(f"sent a body compressed with {encoding[:40]!r}, which was not asked for")
    limit.max_bytes = 0
    return PlainDecoder()


def _refuse_other_origin(response: Any, refusal: type[ResponseRefused]) -> None:
    """Raise `refusal` if a response redirects to another origin: a key is bound to its endpoint."""
    location = response.headers.get("location", "")
    if not location or not 300 <= response.status_code < 400:
        return
    url = response.request.url
    try:
        target = url.join(location)
    except Exception as error:  # `InvalidURL` of either library, which is none of its `HTTPError`s
        raise refusal("redirects to an address that is not valid") from error
    origin, other = ((one.scheme, one.host, one.port or _PORTS.get(one.scheme)) for one in (url, target))
    if origin != other:
        address = f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"
        raise refusal(f"redirects to another origin, which is not followed; if you trust it, set {address}")


def _limit_of(response: Any, bounds: ResponseBounds, refusal: type[ResponseRefused]) -> _BodyLimit:
    if response.status_code >= 300:
        return _BodyLimit(bounds.max_error_bytes, bounds.error_seconds, refusal, is_cut=True)
    is_wanted = bounds.max_stream_bytes is not None or _EVENT_STREAM in response.request.headers.get(
        "accept", ""
    )
    if is_wanted and response.headers.get("content-type", "").casefold().startswith(_EVENT_STREAM):
        return _BodyLimit(bounds.max_stream_bytes, bounds.stream_seconds, refusal)
    return _BodyLimit(bounds.max_bytes, bounds.seconds, refusal)


async def _bounded_pieces(body: Any, decoder: BodyDecoder, limit: _BodyLimit) -> AsyncGenerator[bytes]:
    deadline = None if limit.seconds is None else asyncio.get_running_loop().time() + limit.seconds
    left, pieces = limit.max_bytes, aiter(body)
    try:
        while left is None or left > 0 or not limit.is_cut:
            # Each wait by itself: a time-out must not be open while the reader works.
            async with asyncio.timeout_at(deadline):
                piece = await anext(pieces, None)
            if piece is None:
                return
            decoded = _decode_step(decoder, piece, limit, left)
            left = None if left is None else left - len(decoded)
            if decoded:
                yield decoded
    except TimeoutError:
        if not limit.is_cut:
            raise limit.refusal(f"did not end its answer within {limit.seconds:g} seconds") from None
    except DamagedBodyError:
        if not limit.is_cut:
            raise limit.refusal("sent a body whose compression is damaged") from None


def _decode_step(decoder: BodyDecoder, piece: bytes, limit: _BodyLimit, left: int | None) -> bytes:
    at_most = _STEP_BYTES if left is None else min(left, _STEP_BYTES)
    decoded = decoder.decode(piece, at_most + 1)
    if len(decoded) > at_most and not limit.is_cut:
        raise limit.refusal(f"sent more than {limit.max_bytes or _STEP_BYTES:,} bytes")
    return decoded[:at_most]
