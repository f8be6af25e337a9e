"""The body of an answer, decompressed with a bound on what comes out."""

import sys
import zlib
from collections.abc import Callable

import httpx

from maniple.errors import FetchError

ENCODINGS = "gzip, deflate, br, zstd"
"""What may be asked for."""

_Decode = Callable[[bytes, int], bytes]
"""Decompresses the next bytes, to about so many bytes at most: a bomb costs no memory."""

# HTTP's largest window for zstd, as a power of two (RFC 9659): so much memory a decompressor may take.
_ZSTD_WINDOW_LOG = 23
# Each costs a decompressor; a body of nothing but empty ones would hold up everybody else.
_MOST_ZSTD_FRAMES = 100


class _DamagedError(Exception):
    """What was received is not what its encoding says."""


async def read_body(response: httpx.Response, url: str, max_bytes: int, *, cut: bool = False) -> bytes:
    """The decompressed body; with `cut` its first `max_bytes` instead of an error when it is longer.

    Raises:
        FetchError: it is longer than `max_bytes`, damaged, or compressed in a way that is not known here.
    """
    decode = _decoder(response.headers.get("content-encoding", "").strip().lower(), url)
    length = response.headers.get("content-length", "")
    if not cut and length.isascii() and length.isdecimal() and int(length[:20]) > max_bytes:
        raise _too_large(url, max_bytes)
    body = bytearray()
    async for chunk in response.aiter_raw():
        try:
            body += decode(chunk, max_bytes + 1 - len(body))
        except _DamagedError as error:
            raise FetchError(f"{url} sent damaged data; try again or use another source.") from error
        if len(body) > max_bytes:
            if cut:
                break
            raise _too_large(url, max_bytes)
    return bytes(body[:max_bytes])


def _too_large(url: str, max_bytes: int) -> FetchError:
    return FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")


def _decoder(encoding: str, url: str) -> _Decode:
    match encoding:
        case "" | "identity":
            return lambda data, _: data
        case "gzip" | "x-gzip":
            return _inflated(31)  # gzip's header, largest window
        case "deflate":
            return _deflated()
        case "br":
            return _unbrotlied()
        case "zstd":
            return _unzstded()
        case _:
            words = (
                f"{url} is compressed with {encoding[:40]}, which cannot be read here; use another source."
            )
            raise FetchError(words)


def _inflated(window: int) -> _Decode:
    inflate = zlib.decompressobj(window)

    def decode(data: bytes, at_most: int) -> bytes:
        try:
            return inflate.decompress(data, at_most)
        except zlib.error as error:
            raise _DamagedError from error

    return decode


def _deflated() -> _Decode:
    """HTTP means zlib's format by this name; some servers send the raw stream in it (RFC 9110, 8.4.1.2)."""
    chosen: list[_Decode] = []

    def decode(data: bytes, at_most: int) -> bytes:
        if not chosen and data:
            chosen.append(_inflated(15 if data[0] & 0x0F == 8 else -15))
        return chosen[0](data, at_most) if chosen else b""

    return decode


def _unbrotlied() -> _Decode:
    import brotli

    decompressor = brotli.Decompressor()

    def decode(data: bytes, at_most: int) -> bytes:
        try:
            decoded = decompressor.process(data, output_buffer_limit=at_most)
            while len(decoded) < at_most and not decompressor.can_accept_more_data():
                decoded += decompressor.process(b"", output_buffer_limit=at_most - len(decoded))
        except brotli.error as error:
            raise _DamagedError from error
        return decoded

    return decode


def _unzstded() -> _Decode:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    def begun() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})

    frame, ended = begun(), 0

    def decode(data: bytes, at_most: int) -> bytes:
        nonlocal frame, ended
        decoded = b""
        try:
            while data and len(decoded) < at_most and ended < _MOST_ZSTD_FRAMES:
                decoded += frame.decompress(data, at_most - len(decoded))
                data = frame.unused_data
                if frame.eof:
                    frame, ended = begun(), ended + 1
        except zstd.ZstdError as error:
            raise _DamagedError from error
        if ended == _MOST_ZSTD_FRAMES:
            raise _DamagedError
        return decoded

    return decode
