"""Pictures: their kind and their size, found in what strangers send."""

import time

import pytest

from maniple.reading import UnreadableDocument
from maniple.reading.pictures import PictureInfo, identify_picture, read_picture
from tests.pictures import gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (png(), "image/png"),
        (gif(), "image/gif"),
        (jpeg(), "image/jpeg"),
        (webp(), "image/webp"),
        (webp(b"VP8L"), "image/webp"),
        (webp(b"VP8 "), "image/webp"),
    ],
)
def test_a_picture_is_described_by_its_type_and_size(body: bytes, media_type: str) -> None:
    assert identify_picture(body) == PictureInfo(media_type, 640, 480)
    assert identify_picture(body + bytes(1_000)) == PictureInfo(media_type, 640, 480)


@pytest.mark.parametrize("body", [png(), gif(), jpeg(), webp(), webp(b"VP8L"), webp(b"VP8 ")])
def test_one_that_is_cut_short_is_none(body: bytes) -> None:
    for length in range(10):
        assert identify_picture(body[:length]) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"words",
        png(0, 480),
        webp(b"ANIM"),
        b"\xff\xd8\xff\xe1\0\0" + b"\xff" * 5_000_000,
        b"\xff\xd8" + b"\xff\xe1\0\0" * 1_250_000,
        b"\xff\xd8" + b"\xff\xd0" * 2_500_000,
    ],
    ids=["nothing", "words", "empty", "no size", "fill", "no lengths", "restarts"],
)
def test_what_makes_no_sense_is_none_soon(body: bytes) -> None:
    begun = time.process_time()
    assert identify_picture(body) is None
    assert time.process_time() - begun < 0.05, "for so long the event loop may have to wait"


def test_a_picture_reads_as_its_address_and_its_size() -> None:
    reading = read_picture(png(), "http://a.test/a%5Bb%5D/gr%C3%BC(n).png?x=1&y=%20")
    assert reading.title == "grü(n).png"
    assert reading.markdown == (
        "![grü(n).png](http://a.test/a%5Bb%5D/gr%C3%BC%28n%29.png?x=1&y=%20)"
        "\n\nA PNG picture of 640 x 480 pixels."
    )


def test_a_damaged_picture_is_an_error() -> None:
    with pytest.raises(UnreadableDocument, match="damaged picture"):
        read_picture(b"\x89PNG", "http://a.test/a.png")
