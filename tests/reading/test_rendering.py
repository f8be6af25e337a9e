"""Pictures and pages of PDFs come out within a model's limits; hostile files end with a sentence."""

import io
import struct
import zlib

import pytest
from PIL import Image

from maniple.crawler.article import read_article
from maniple.crawler.document import PDF, FetchedDocument
from maniple.errors import FetchError
from maniple.reading import UnreadableDocument
from maniple.reading.fork_server import ForkServer
from maniple.reading.pictures import identify_picture
from maniple.reading.rendering import MAX_BYTES, MAX_SIDE_PIXELS
from tests.reading.files import joined_pdf, pdf, scan

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def fork_server():
    server = ForkServer()
    yield server
    server.close()


def picture(kind: str, size: tuple[int, int], mode: str = "RGB", **options) -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, kind, **options)
    return stream.getvalue()


def noise(size: tuple[int, int]) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(stream, "PNG")
    return stream.getvalue()


async def test_a_picture_within_the_limits_stays_as_it_is(fork_server):
    body = picture("PNG", (640, 480))
    rendered = await fork_server.render(body)
    assert (rendered.content, rendered.kind, rendered.width, rendered.height) == (body, "PNG", 640, 480)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF"])
async def test_a_large_picture_is_scaled_and_keeps_its_shape(fork_server, kind):
    rendered = await fork_server.render(picture(kind, (4_000, 2_000)))
    shown = identify_picture(rendered.content)
    assert shown is not None
    assert (shown.width, shown.height) == (MAX_SIDE_PIXELS, MAX_SIDE_PIXELS // 2)
    assert (rendered.width, rendered.height, rendered.kind) == (4_000, 2_000, kind)


@pytest.mark.slow
async def test_a_picture_of_many_bytes_is_made_smaller(fork_server):
    body = noise((1_500, 1_500))
    assert len(body) > MAX_BYTES
    rendered = await fork_server.render(body)
    assert len(rendered.content) <= MAX_BYTES
    assert rendered.media_type == "image/jpeg"


@pytest.mark.parametrize("mode", ["I;16", "CMYK", "RGBA", "LA", "P", "1"])
async def test_every_kind_of_colours_becomes_what_models_take(fork_server, mode):
    kind = "TIFF" if mode in ("CMYK", "I;16") else "PNG"
    rendered = await fork_server.render(picture(kind, (3_000, 30), mode))
    assert Image.open(io.BytesIO(rendered.content)).mode in ("RGB", "L")


async def test_what_is_transparent_becomes_white(fork_server):
    rendered = await fork_server.render(picture("PNG", (2_000, 2_000), "RGBA"))
    shown = Image.open(io.BytesIO(rendered.content)).convert("RGB")
    assert shown.getpixel((5, 5)) == (255, 255, 255)


async def test_a_turned_photo_is_shown_upright(fork_server):
    exif = Image.Exif()
    exif[0x0112] = 6
    rendered = await fork_server.render(picture("JPEG", (400, 200), exif=exif))
    shown = identify_picture(rendered.content)
    assert shown is not None
    assert (shown.width, shown.height) == (200, 400)


async def test_of_an_animation_the_first_frame_is_shown(fork_server):
    frames = [Image.new("RGB", (90, 90), color) for color in ("red", "green", "blue")]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    rendered = await fork_server.render(stream.getvalue())
    assert (rendered.media_type, rendered.pages) == ("image/png", 3)


def png_of(width: int, height: int) -> bytes:
    """A valid PNG that claims to be that large, in few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(bytes(width // 8 + 1) * height, 9)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "body",
    [
        lambda: png_of(12_000, 12_000),
        lambda: png_of(40_000, 40_000),
        b"\x89PNG\r\n\x1a\n and nothing",
        lambda: noise((300, 300))[:9_000],
        b"\xff\xd8\xff\xe0" + bytes(200),
        b"GIF89a" + bytes(100),
        b"II*\0" + b"\xff" * 300,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"",
    ],
    ids=["bomb", "greater bomb", "no PNG", "cut off", "no JPEG", "no GIF", "no TIFF", "SVG", "empty"],
)
async def test_a_bomb_or_a_damaged_picture_ends_with_a_sentence(fork_server, body):
    with pytest.raises(UnreadableDocument, match=r"^is a "):
        await fork_server.render(body() if callable(body) else body)
    assert (await fork_server.render(picture("PNG", (10, 10)))).kind == "PNG"


async def test_a_scanned_page_is_rendered_by_its_number(fork_server):
    body = scan("One", "Two")
    rendered = await fork_server.render(body, 2)
    assert (rendered.kind, rendered.pages) == ("PDF", 2)
    assert max(rendered.width, rendered.height) == MAX_SIDE_PIXELS
    assert rendered.content != (await fork_server.render(body, 1)).content


@pytest.mark.parametrize(
    ("body", "number", "said"),
    [
        (pdf("One"), 2, "no page 2; the last one is page 1"),
        (pdf("secret", password="word"), 1, "requires a password"),
        (b"%PDF-1.7 and nothing", 1, "damaged"),
    ],
    ids=["no such page", "locked", "damaged"],
)
async def test_a_page_that_cannot_be_rendered_ends_with_a_sentence(fork_server, body, number, said):
    with pytest.raises(UnreadableDocument, match=said):
        await fork_server.render(body, number)


async def test_a_page_that_claims_to_be_huge_is_bounded(fork_server):
    huge = pdf("Wide").replace(b"[ 0.0 0.0 300 300 ]", b"[ 0 0 900000 90000 ]")
    assert b"900000" in huge
    rendered = await fork_server.render(huge, 1)
    assert max(rendered.width, rendered.height) <= MAX_SIDE_PIXELS + 1


async def test_pages_without_text_are_named_and_blank_ones_are_not(fork_server):
    read = await fork_server.read(
        "pdf", joined_pdf(pdf("Words", ""), scan("A"), pdf("More"), scan("B")), "x", None
    )
    assert read.textless_pages == (3, 5)
    assert "2 of 5 pages have no text" in read.note
    assert "Words" in read.markdown


async def test_a_scanned_pdf_of_the_web_is_refused_with_the_number_of_its_pages(fork_server):
    with pytest.raises(FetchError, match="None of the 2 pages has text"):
        await read_article(FetchedDocument("http://a.test/b", PDF, None, scan("A", "B")), 9_000, fork_server)
