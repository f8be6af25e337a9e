"""The HTTP client of the crawler: user agent, checked connections, errors and decompression."""

import ssl
import sys
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable
from http import HTTPStatus
from importlib.metadata import version
from typing import Protocol

import httpx

from maniple.egress import AddressGuard, PermanentFetchError
from maniple.errors import FetchError

ROBOTS_TOKEN = "maniple"
"""The name of this agent in robots.txt."""


def user_agent(contact: str | None) -> str:
    """Return the `User-Agent` header; `contact` is the operator's address for owners of sites. Blocks.

    It begins like that of every well-known robot, because firewalls block other names.
    """
    where = f"; +{contact}" if contact else ""
    return f"Mozilla/5.0 (compatible; {ROBOTS_TOKEN}/{version('maniple')}{where})"


_DEFAULT_PORTS = {"http": 80, "https": 443}


class GuardedTransport(httpx.AsyncBaseTransport):
    """Checks the address of every request, including redirects, and connects to the checked address."""

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext) -> None:
        self._guard = guard
        # No keep-alive: connections are pooled by address, which several names may share.
        self._inner = httpx.AsyncHTTPTransport(verify=tls, limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; raises `FetchError` if its address is not allowed."""
        url = request.url
        if url.scheme not in _DEFAULT_PORTS:
            raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
        address = await self._guard.resolve(url.host, url.port or _DEFAULT_PORTS[url.scheme])
        # The Host header is already set. The certificate must match the name, not the address.
        pinned = httpx.Request(
            method=request.method,
            url=url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": url.raw_host.decode("ascii")},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


_DAY_SECONDS = 86_400.0


_FINAL_STATUSES = {401, 404, 410, 451}


def status_error(url: str, status: int, retry_after_seconds: float | None = None) -> FetchError:
    """Return the error for a response without a page: HTTP status 300 and above, or without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        403: "It keeps programs out or needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It limits requests; use another source for now.",
    }.get(status, "Use another source.")
    if retry_after_seconds is not None and retry_after_seconds > _DAY_SECONDS:
        advice = "It is not to be asked again today; use another source."
    elif retry_after_seconds is not None:
        advice = f"It can be asked again in {retry_after_seconds:,.0f} s; use another source until then."
    raised = PermanentFetchError if status in _FINAL_STATUSES else FetchError
    return raised(f"{url} answered {status} ({phrase}). {advice}")


def broken_redirect_error(url: str, cause: str) -> FetchError:
    """Return the error for a redirect of `url` to an invalid address.

    `cause` is the address or the reason.
    """
    return FetchError(f"{url} redirects to an invalid address ({cause[:200]}); use another source.")


def too_many_redirects_error(url: str) -> FetchError:
    """Return the error for too many redirects; `url` is the requested address."""
    return FetchError(f"{url} redirects too often; use its final address.")


class BodyDecoder(Protocol):
    """Decompresses a body incrementally."""

    @property
    def is_complete(self) -> bool:
        """Whether the received data end at the end of the compressed data."""
        ...

    def decode(self, data: bytes, at_most: int) -> bytes:
        """Decompress the next bytes to about `at_most` bytes, which limits the memory of a zip bomb."""
        ...


ACCEPTED_ENCODINGS = "gzip, deflate, br, zstd"
"""The value of the `Accept-Encoding` header."""


_MAX_ENCODINGS = 3


async def read_body(response: httpx.Response, url: str, max_bytes: int, *, cut: bool = False) -> bytes:
    """Return the decompressed body; with `cut`, the first `max_bytes` of a longer one instead of an error.

    Raises:
        FetchError: it is longer than `max_bytes`, damaged, incomplete, or has an unsupported encoding.
    """
    first, *others = _decoders(response.headers.get("content-encoding", ""), url)
    length = response.headers.get("content-length", "")
    if not cut and length.isascii() and length.isdecimal() and int(length[:20]) > max_bytes:
        raise _too_large(url, max_bytes)
    try:
        body = await _read_first_encoding(response, first, max_bytes)
        longest = len(body)
        for other in others:
            body = other.decode(body[:max_bytes], max_bytes + 1)
            longest = max(longest, len(body))
    except DamagedBodyError as error:
        raise FetchError(f"{url} sent damaged data; try again or use another source.") from error
    if longest > max_bytes and not cut:
        raise _too_large(url, max_bytes)
    if not cut and not all(one.is_complete for one in (first, *others)):
        raise FetchError(f"{url} broke off in the middle; try again or use another source.")
    return body[:max_bytes]


async def _read_first_encoding(response: httpx.Response, stream: BodyDecoder, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += stream.decode(chunk, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            break
    return bytes(body)


def _too_large(url: str, max_bytes: int) -> FetchError:
    return FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")


def _decoders(encodings: str, url: str) -> list[BodyDecoder]:
    """Return the decoders of a body, in the order of decoding."""
    names = [name.strip() for name in encodings.lower().split(",", _MAX_ENCODINGS)]
    found = [one for name in reversed(names) if (one := find_decoder(name)) is not None]
    if len(found) < len(names) or len(names) > _MAX_ENCODINGS:
        raise FetchError(
            f"{url} is compressed with {encodings[:40]}, which is not supported; use another source."
        )
    return found


# The largest window of zstd in HTTP, as a power of two (RFC 9659), which limits the memory.
_ZSTD_WINDOW_LOG = 23
# Each stream needs a decompressor; a body of empty streams would block other work.
_MAX_STREAMS = 100


class DamagedBodyError(Exception):
    """The received data do not match their encoding."""


def find_decoder(encoding: str) -> BodyDecoder | None:
    """Return a decoder for a content coding in lower case; None for an unsupported one.

    A name that is no content coding is probably a server's mistake, so the body is read as uncompressed text.
    """
    match encoding:
        case "" | "identity" | "none" | "utf-8":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Streams(lambda: zlib.decompressobj(31), zlib.error, b"\x1f")  # gzip's, largest window
        case "deflate":
            return _Deflate()
        case "br":
            return _Brotli()
        case "zstd":
            return _zstd_decoder()
        case "compress" | "x-compress" | "dcb" | "dcz" | "exi" | "aes128gcm" | "pack200-gzip":
            return None
        case _:
            return _Text()


class _Stream(Protocol):
    """The interface of the decompressors of `zlib` and `zstd`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Streams:
    """Decompresses concatenated streams, such as the members of gzip and the frames of zstd.

    A further stream begins with `follows`; None means that there is none. Any other data are padding.
    """

    def __init__(self, begin: Callable[[], _Stream], error: type[Exception], follows: bytes | None) -> None:
        self._begin, self._error, self._follows = begin, error, follows
        self._stream: _Stream | None = None
        self._begun = 0

    @property
    def is_complete(self) -> bool:
        return self._stream is None

    def decode(self, data: bytes, at_most: int) -> bytes:
        decoded = b""
        while data and len(decoded) < at_most:
            if self._stream is None and not self._begin_next(data):
                break
            self._stream = self._stream or self._begin()
            try:
                decoded += self._stream.decompress(data, at_most - len(decoded))
            except self._error as error:
                raise DamagedBodyError from error
            data = self._stream.unused_data
            if self._stream.eof:
                self._stream = None
        return decoded

    def _begin_next(self, data: bytes) -> bool:
        if self._begun and (self._follows is None or not data.startswith(self._follows)):
            self._follows = None
            return False
        self._begun += 1
        if self._begun > _MAX_STREAMS:
            raise DamagedBodyError
        return True


class _Deflate:
    """The coding `deflate`: zlib's format, or the raw stream that some servers send (RFC 9110, 8.4.1.2)."""

    def __init__(self) -> None:
        self._chosen: _Streams | None = None

    @property
    def is_complete(self) -> bool:
        return self._chosen is None or self._chosen.is_complete

    def decode(self, data: bytes, at_most: int) -> bytes:
        if self._chosen is None and data:
            window = 15 if data[0] & 0x0F == 8 else -15
            self._chosen = _Streams(lambda: zlib.decompressobj(window), zlib.error, None)
        return self._chosen.decode(data, at_most) if self._chosen else b""


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self._decompressor = brotli.Decompressor()
        self._error = brotli.error
        self._is_begun = False

    @property
    def is_complete(self) -> bool:
        return not self._is_begun or self._decompressor.is_finished()

    def decode(self, data: bytes, at_most: int) -> bytes:
        self._is_begun = self._is_begun or bool(data)
        try:
            decoded = self._decompressor.process(data, output_buffer_limit=at_most)
            while len(decoded) < at_most and not self._decompressor.can_accept_more_data():
                decoded += self._decompressor.process(b"", output_buffer_limit=at_most - len(decoded))
        except self._error as error:
            raise DamagedBodyError from error
        return decoded


class _Plain:
    is_complete = True

    def decode(self, data: bytes, at_most: int) -> bytes:
        return data


class _Text:
    """Passes UTF-8 text unchanged and rejects anything else, for unknown names of codings."""

    is_complete = True

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")()

    def decode(self, data: bytes, at_most: int) -> bytes:
        try:
            self._decoder.decode(data)
        except UnicodeDecodeError as error:
            raise DamagedBodyError from error
        return data


def _zstd_decoder() -> _Streams:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    return _Streams(lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError, b"")
