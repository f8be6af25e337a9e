import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import brotli
import httpx
import pytest
from backports import zstd

from maniple.crawler.http_client import read_body
from maniple.errors import FetchError

pytestmark = pytest.mark.anyio
TEXT = b"Some text that is worth squeezing. " * 400


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


def brotlied(data: bytes) -> bytes:
    return brotli.compress(data, quality=4)  # the best quality takes seconds over a bomb


SQUEEZED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("GZIP", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotlied),
    ("zstd", zstd.compress),
    ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    ("gzip, br", lambda data: brotlied(gzip.compress(data))),
    ("identity", bytes),
    ("none", bytes),
    ("utf-8", bytes),
    ("UTF8", bytes),
    ("", bytes),
]


def answer(body: bytes, encoding: str, piece: int = 65_536) -> httpx.Response:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), piece):
            yield body[start : start + piece]

    return httpx.Response(200, headers={"content-encoding": encoding}, content=pieces())


@pytest.mark.parametrize("piece", [1, 7, 65_536])
@pytest.mark.parametrize(("encoding", "squeeze"), SQUEEZED)
async def test_a_body_comes_out_as_it_went_in(
    encoding: str, squeeze: Callable[[bytes], bytes], piece: int
) -> None:
    assert await read_body(answer(squeeze(TEXT), encoding, piece), "u", len(TEXT)) == TEXT


@pytest.mark.parametrize(("encoding", "squeeze"), SQUEEZED)
async def test_one_byte_too_many_is_refused(encoding: str, squeeze: Callable[[bytes], bytes]) -> None:
    with pytest.raises(FetchError, match=f"larger than {len(TEXT) - 1:,} bytes"):
        await read_body(answer(squeeze(TEXT), encoding), "u", len(TEXT) - 1)


@pytest.mark.parametrize(("encoding", "squeeze"), SQUEEZED)
async def test_a_bomb_is_refused_before_it_goes_off(encoding: str, squeeze: Callable[[bytes], bytes]) -> None:
    import tracemalloc

    bomb = answer(squeeze(bytes(100_000_000)), encoding)
    tracemalloc.start()
    try:
        with pytest.raises(FetchError, match="larger than 1,000,000 bytes"):
            await read_body(bomb, "u", 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_damaged_compressed_data_is_an_error(encoding: str) -> None:
    with pytest.raises(FetchError, match="damaged"):
        await read_body(answer(b"\xff\x8bno such thing" * 10, encoding), "u", 1_000)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("body", [b"<p>As it is", b'{"a": 1}', b"\xef\xbb\xbf<p>", b""])
@pytest.mark.parametrize("piece", [1, 65_536])
async def test_a_body_that_is_only_declared_as_compressed_is_read(
    encoding: str, body: bytes, piece: int
) -> None:
    assert await read_body(answer(body, encoding, piece), "u", 1_000) == body


@pytest.mark.parametrize("encoding", ["compress", "dcz", "gzip, compress", "gzip, gzip, gzip, gzip"])
async def test_an_unrequested_compression_is_reported(encoding: str) -> None:
    with pytest.raises(FetchError, match=f"compressed with {encoding}"):
        await read_body(answer(b"squeezed", encoding), "u", 1_000)


@pytest.mark.parametrize("piece", [1, 65_536])
async def test_the_frames_of_zstd_are_read_one_after_the_other(piece: int) -> None:
    body = zstd.compress(TEXT[:100]) + zstd.compress(TEXT[100:])
    assert await read_body(answer(body, "zstd", piece), "u", len(TEXT)) == TEXT


@pytest.mark.parametrize(("encoding", "squeeze"), [("zstd", zstd.compress), ("gzip", gzip.compress)])
async def test_endless_empty_streams_are_no_page(encoding: str, squeeze: Callable[[bytes], bytes]) -> None:
    with pytest.raises(FetchError, match="damaged"):
        await read_body(answer(squeeze(b"") * 100_000, encoding), "u", 1_000)


async def test_a_window_of_zstd_beyond_that_of_the_web_is_refused() -> None:
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    wide = stream.compress(TEXT) + stream.flush()
    with pytest.raises(FetchError, match="damaged"):
        await read_body(answer(wide, "zstd"), "u", len(TEXT))


COMPRESSED = [(encoding, squeeze) for encoding, squeeze in SQUEEZED if squeeze is not bytes]


@pytest.mark.parametrize("piece", [1, 65_536])
@pytest.mark.parametrize(("encoding", "squeeze"), COMPRESSED)
async def test_what_ends_in_the_middle_is_no_page(
    encoding: str, squeeze: Callable[[bytes], bytes], piece: int
) -> None:
    with pytest.raises(FetchError, match="broke off in"):
        await read_body(answer(squeeze(TEXT)[:-20], encoding, piece), "u", len(TEXT))


@pytest.mark.parametrize(("encoding", "squeeze"), SQUEEZED)
async def test_nothing_at_all_is_an_empty_page(encoding: str, squeeze: Callable[[bytes], bytes]) -> None:
    assert await read_body(answer(b"", encoding), "u", 1_000) == b""


@pytest.mark.parametrize("piece", [1, 65_536])
async def test_the_members_of_gzip_are_read_one_after_the_other(piece: int) -> None:
    body = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]) + bytes(100)
    assert await read_body(answer(body, "gzip", piece), "u", len(TEXT)) == TEXT


async def test_what_is_no_text_under_an_encoding_that_there_is_not_is_damaged() -> None:
    with pytest.raises(FetchError, match="damaged"):
        await read_body(answer(gzip.compress(TEXT), "squashed"), "u", len(TEXT))


async def test_a_body_with_a_too_large_content_length_is_not_read() -> None:
    async def endless() -> AsyncIterator[bytes]:
        raise AssertionError("nothing of it is read")
        yield b""

    response = httpx.Response(200, headers={"content-length": "1001"}, content=endless())
    with pytest.raises(FetchError, match="larger than 1,000 bytes"):
        await read_body(response, "u", 1_000)


async def test_the_beginning_alone_can_be_had() -> None:
    assert await read_body(answer(gzip.compress(TEXT), "gzip"), "u", 10, cut=True) == TEXT[:10]
