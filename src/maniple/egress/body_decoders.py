"""Decompression of HTTP bodies in steps, so that a few bytes never become gigabytes in memory."""

import sys
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Protocol

# The largest window of zstd in HTTP, as a power of two (RFC 9659), which limits the memory.
_ZSTD_WINDOW_LOG = 23
# Each stream needs a decompressor; a body of empty streams would block other work.
_MAX_STREAMS = 100
_BEGINS_TEXT = (b"<", b"{", b"[", b" ", b"\n", b"\r", b"\t", b"\xef")
"""The first byte of markup and JSON, perhaps after blanks or a byte order mark of UTF-8."""


class BodyDecoder(Protocol):
    """Decompresses a body incrementally."""

    @property
    def is_complete(self) -> bool:
        """Whether the received data end at the end of the compressed data."""
        ...

    def decode(self, data: bytes, at_most: int) -> bytes:
        """Decompress the next bytes to about `at_most` bytes, which limits the memory of a zip bomb."""
        ...


class DamagedBodyError(Exception):
    """The received data do not match their encoding."""


def find_decoder(encoding: str) -> BodyDecoder | None:
    """Return a decoder for a content coding in lower case; None for an unsupported one.

    A name that is no content coding is probably a server's mistake, so the body is read as uncompressed text.
    """
    match encoding:
        case "" | "identity" | "none" | "utf-8":
            return PlainDecoder()
        case "gzip" | "x-gzip":
            # gzip's, largest window
            return _OrPlain(_Streams(lambda: zlib.decompressobj(31), zlib.error, b"\x1f"))
        case "deflate":
            return _Deflate()
        case "br":
            return _Brotli()
        case "zstd":
            return _OrPlain(_zstd_decoder())
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


class _OrPlain:
    """Passes a body that begins as markup or JSON, and decompresses any other.

    Some servers only declare a coding. Compressed data of gzip and zstd never begin so.
    """

    def __init__(self, compressed: BodyDecoder) -> None:
        self._compressed = compressed
        self._chosen: BodyDecoder | None = None

    @property
    def is_complete(self) -> bool:
        return self._chosen is None or self._chosen.is_complete

    def decode(self, data: bytes, at_most: int) -> bytes:
        if self._chosen is None and data:
            self._chosen = PlainDecoder() if data[:1] in _BEGINS_TEXT else self._compressed
        return self._chosen.decode(data, at_most) if self._chosen else b""


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


class PlainDecoder:
    """Passes a body that is not compressed."""

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
