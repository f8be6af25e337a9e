"""Pictures say when, where and with what they were taken."""

import io

import pytest
from PIL import Image

from maniple.reading.picture_metadata import describe_metadata
from maniple.reading.pictures import read_picture

PLACE = {1: "S", 2: (33.0, 51.0, 24.84), 3: "E", 4: (151.0, 12.0, 55.08)}


def photo(tags: dict[int, object], place: dict[int, object] | None = None, kind: str = "JPEG") -> bytes:
    exif = Image.Exif()
    for tag, value in tags.items():
        (exif.get_ifd(0x8769) if tag == 36867 else exif)[tag] = value
    if place:
        exif.get_ifd(0x8825).update(place)
    body = io.BytesIO()
    Image.new("RGB", (32, 24)).save(body, kind, exif=exif)
    return body.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photo_is_read_with_its_date_camera_and_place(kind: str):
    body = photo({36867: "2024:05:01 10:22:33", 271: "Canon", 272: "Canon EOS R6"}, PLACE, kind)

    text = read_picture(body, "http://site.test/opera.jpg").markdown

    assert "32 x 24 pixels" in text
    assert "2024-05-01 10:22" in text
    assert text.count("Canon") == 1
    assert "33.85690° S, 151.21530° E" in text


def test_captions_are_one_line_without_control_characters():
    described = describe_metadata(photo({270: "The bridge\nat \x07night\0", 315: "A. Writer"}))

    assert "The bridge at night." in described
    assert "A. Writer" in described
    assert described.isprintable()


@pytest.mark.parametrize(
    ("tags", "place"),
    [
        ({36867: "0000:00:00 00:00:00"}, None),
        ({36867: "soon"}, None),
        ({}, {1: "N", 2: (400.0, 0.0, 0.0), 3: "E", 4: (1.0, 0.0, 0.0)}),
        ({}, {1: "N", 2: (40.0, 0.0, 0.0)}),
    ],
    ids=["zero date", "no date", "no latitude", "half a place"],
)
def test_values_without_a_meaning_are_left_out(tags: dict[int, object], place: dict[int, object] | None):
    assert describe_metadata(photo(tags, place)) == ""


def test_a_damaged_picture_has_no_metadata():
    body = photo({271: "Canon"})
    assert describe_metadata(body[:30]) == ""
    assert describe_metadata(b"\xff\xd8\xff\xe1" + bytes(100)) == ""
