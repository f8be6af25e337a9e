"""Decompressing what HTTP allows a body to be compressed with, a piece at a time."""

import sys
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Protocol

# HTTP's largest window for zstd, as a power of two (RFC 9659): so much memory a decompressor may take.
_ZSTD_WINDOW_LOG = 23
# Each costs a decompressor; a body of nothing but empty ones would hold up everybody else.
_MOST_STREAMS = 100


class DamagedError(Exception):
    """What was received is not what its encoding says."""


class Decoder(Protocol):
    """Decompresses a body as it comes."""

    @property
    def is_complete(self) -> bool:
        """Whether what came ends where the compressed data end."""
        ...

    def decode(self, data: bytes, at_most: int) -> bytes:
        """Decompress the next bytes, to about so many bytes at most: a bomb costs no memory."""
        ...


def decoder(encoding: str) -> Decoder | None:
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
                raise DamagedError from error
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
            raise DamagedError
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
            raise DamagedError from error
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
            raise DamagedError from error
        return data


def _unzstded() -> _Streams:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    return _Streams(lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError, b"")
