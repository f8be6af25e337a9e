"""The body of an answer, decompressed with a bound on what comes out."""

import httpx

from maniple.crawler.decoders import DamagedError, Decoder, decoder
from maniple.errors import FetchError

ENCODINGS = "gzip, deflate, br, zstd"
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
    except DamagedError as error:
        raise FetchError(f"{url} sent damaged data; try again or use another source.") from error
    if longest > max_bytes and not cut:
        raise _too_large(url, max_bytes)
    if not cut and not all(one.is_complete for one in (first, *others)):
        raise FetchError(f"{url} broke off in the middle; try again or use another source.")
    return body[:max_bytes]


async def _received(response: httpx.Response, stream: Decoder, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += stream.decode(chunk, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            break
    return bytes(body)


def _too_large(url: str, max_bytes: int) -> FetchError:
    return FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")


def _decoders(encodings: str, url: str) -> list[Decoder]:
    """What undoes the encodings of a body, the last that was applied first."""
    names = [name.strip() for name in encodings.lower().split(",", _MOST_ENCODINGS)]
    found = [one for name in reversed(names) if (one := decoder(name)) is not None]
    if len(found) < len(names) or len(names) > _MOST_ENCODINGS:
        words = f"{url} is compressed with {encodings[:40]}, which cannot be read here; use another source."
        raise FetchError(words)
    return found
