"""The name under which pages are asked for."""

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
"""What a robots.txt calls this agent."""


def user_agent(contact: str | None) -> str:
    """The `User-Agent` header; `contact` is where the owner of a site finds whoever runs this. Blocks.

    The words in front are those of every well-known robot: firewalls refuse names that begin otherwise.
    """
    where = f"; +{contact}" if contact else ""
    return f"Mozilla/5.0 (compatible; {ROBOTS_TOKEN}/{version('maniple')}{where})"


_DEFAULT_PORTS = {"http": 80, "https": 443}


class GuardedTransport(httpx.AsyncBaseTransport):
    """Checks the address of every request, so of every redirect too, and connects to what was checked."""

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext) -> None:
        self._guard = guard
        # No connection is used twice: they are kept by address, which names of others may share.
        self._inner = httpx.AsyncHTTPTransport(verify=tls, limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; raises `FetchError` when its address may not be connected to."""
        url = request.url
        if url.scheme not in _DEFAULT_PORTS:
            raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
        address = await self._guard.resolve(url.host, url.port or _DEFAULT_PORTS[url.scheme])
        # The Host header is already set, and the certificate must be the name's, not the address's.
        pinned = httpx.Request(
            method=request.method,
            url=url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": url.raw_host.decode("ascii")},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close what is still connected."""
        await self._inner.aclose()


_DAY_SECONDS = 86_400.0


_FINAL_STATUSES = {401, 404, 410, 451}


def status_error(url: str, status: int, retry_after_seconds: float | None = None) -> FetchError:
    """The error for an answer that is no page: HTTP status 300 and above, or one without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        403: "It keeps programs out or needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It wants fewer requests; use another source for now.",
    }.get(status, "Use another source.")
    if retry_after_seconds is not None and retry_after_seconds > _DAY_SECONDS:
        advice = "It is not to be asked again today; use another source."
    elif retry_after_seconds is not None:
        advice = f"It can be asked again in {retry_after_seconds:,.0f} s; use another source until then."
    raised = PermanentFetchError if status in _FINAL_STATUSES else FetchError
    return raised(f"{url} answered {status} ({phrase}). {advice}")


def broken_redirect_error(url: str, cause: str) -> FetchError:
    """The error for the page `url` that leads to no address; `cause` is that, or what is wrong with it."""
    return FetchError(f"{url} redirects to what is not a valid address ({cause[:200]}); use another source.")


def too_many_redirects_error(url: str) -> FetchError:
    """The error for a page that leads on and on; `url` is the address that was asked for."""
    return FetchError(f"{url} redirects too often; use the address it should end at.")


class BodyDecoder(Protocol):
    """Decompresses a body as it comes."""

    @property
    def is_complete(self) -> bool:
        """Whether what came ends where the compressed data end."""
        ...

    def decode(self, data: bytes, at_most: int) -> bytes:
        """Decompress the next bytes, to about so many bytes at most: a bomb costs no memory."""
        ...


ACCEPTED_ENCODINGS = "gzip, deflate, br, zstd"
"""What may be asked for."""


_MOST_ENCODINGS = 3


async def read_body(response: httpx.Response, url: str, max_bytes: int, *, cut: bool = False) -> bytes:
    """The decompressed body; with `cut` its first `max_bytes` instead of an error when it is longer.

    Raises:
        FetchError: it is longer than `max_bytes`, damaged, breaks off in the middle, or is compressed in a
            way that is not known here.
    """
    first, *others = _decoders(response.headers.get("content-encoding", ""), url)
    length = response.headers.get("content-length", "")
    if not cut and length.isascii() and length.isdecimal() and int(length[:20]) > max_bytes:
        raise _too_large(url, max_bytes)
    try:
        body = await _received(response, first, max_bytes)
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


async def _received(response: httpx.Response, stream: BodyDecoder, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += stream.decode(chunk, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            break
    return bytes(body)


def _too_large(url: str, max_bytes: int) -> FetchError:
    return FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")


def _decoders(encodings: str, url: str) -> list[BodyDecoder]:
    """What undoes the encodings of a body, the last that was applied first."""
    names = [name.strip() for name in encodings.lower().split(",", _MOST_ENCODINGS)]
    found = [one for name in reversed(names) if (one := find_decoder(name)) is not None]
    if len(found) < len(names) or len(names) > _MOST_ENCODINGS:
        words = f"{url} is compressed with {encodings[:40]}, which cannot be read here; use another source."
        raise FetchError(words)
    return found


# HTTP's largest window for zstd, as a power of two (RFC 9659): so much memory a decompressor may take.
_ZSTD_WINDOW_LOG = 23
# Each costs a decompressor; a body of nothing but empty ones would hold up everybody else.
_MOST_STREAMS = 100


class DamagedBodyError(Exception):
    """What was received is not what its encoding says."""


def find_decoder(encoding: str) -> BodyDecoder | None:
    """What decompresses a content coding, named in lower case; None for one that cannot be read here.

    What is no coding at all is taken for the name of one by mistake: text comes as it is.
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
            return _unzstded()
        case "compress" | "x-compress" | "dcb" | "dcz" | "exi" | "aes128gcm" | "pack200-gzip":
            return None
        case _:
            return _Text()


class _Stream(Protocol):
    """What `zlib` and `zstd` call a decompressor."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Streams:
    """Decompresses streams that follow on each other: gzip calls them members, zstd frames.

    Another one begins with `follows`, None for nothing that may follow; what else stands there is padding.
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
            if self._stream is None and not self._goes_on(data):
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

    def _goes_on(self, data: bytes) -> bool:
        if self._begun and (self._follows is None or not data.startswith(self._follows)):
            self._follows = None
            return False
        self._begun += 1
        if self._begun > _MOST_STREAMS:
            raise DamagedBodyError
        return True


class _Deflate:
    """HTTP means zlib's format by this name; some servers send the raw stream in it (RFC 9110, 8.4.1.2)."""

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
    """Text as it is, and nothing else: it is what names no compression that there is."""

    is_complete = True

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")()

    def decode(self, data: bytes, at_most: int) -> bytes:
        try:
            self._decoder.decode(data)
        except UnicodeDecodeError as error:
            raise DamagedBodyError from error
        return data


def _unzstded() -> _Streams:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    return _Streams(lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError, b"")
