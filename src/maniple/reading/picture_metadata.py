"""What a picture says of itself in EXIF: when, where and with what it was taken, and its captions.

Only the headers are parsed, but by a large library on untrusted bytes: it runs where `read_picture` does, in
a process of the fork server.
"""

import io
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Exif

_FORMATS = ("PNG", "JPEG", "WEBP")
_PHOTO, _GPS = 0x8769, 0x8825
_TAKEN, _CHANGED, _MAKE, _MODEL = 36867, 306, 271, 272
_TEXTS = {270: "Description", 315: "Author", 33432: "Copyright"}
_LATITUDE, _LONGITUDE = (1, 2, "NS", 90), (3, 4, "EW", 180)
"""The tags of the hemisphere and of the degrees, the letters of the hemispheres, and the limit."""
_VALUE_CHARACTERS = 300
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d)(?: (\d\d:\d\d)(?::\d\d)?)?")
_NO_DATE = "0000"


def describe_metadata(body: bytes) -> str:
    """Return sentences about the date, camera, place and captions of a picture; "" if it has none."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(body), formats=_FORMATS) as picture:
            return " ".join(f"{name}: {value}." for name, value in _read_values(picture.getexif()))
    except Exception:  # noqa: BLE001 - of a damaged picture, the decoders raise various errors
        return ""


def _read_values(exif: "Exif") -> Iterator[tuple[str, str]]:
    photo, place = exif.get_ifd(_PHOTO), exif.get_ifd(_GPS)
    if taken := _parse_date(photo.get(_TAKEN)):
        yield "Taken", taken
    elif changed := _parse_date(exif.get(_CHANGED)):
        yield "Last changed", changed
    make, model = _clean(exif.get(_MAKE)), _clean(exif.get(_MODEL))
    if make or model:
        yield "Camera", model if model.lower().startswith(make.lower()) else f"{make} {model}".strip()
    latitude, longitude = _parse_angle(place, *_LATITUDE), _parse_angle(place, *_LONGITUDE)
    if latitude and longitude:
        yield "Place", f"{latitude}, {longitude}"
    for tag, name in _TEXTS.items():
        if text := _clean(exif.get(tag)):
            yield name, text.rstrip(".")


def _clean(value: Any) -> str:
    """Return a text value in one line of printable characters; "" for other values."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return ""
    line = " ".join(value.replace("\0", " ").split())
    return "".join(letter for letter in line if letter.isprintable())[:_VALUE_CHARACTERS]


def _parse_date(value: Any) -> str:
    match = _DATE.match(_clean(value))
    if match is None or match[1] == _NO_DATE:
        return ""
    return f"{match[1]}-{match[2]}-{match[3]}" + (f" {match[4]} (local time)" if match[4] else "")


def _parse_angle(place: dict[int, Any], side: int, angle: int, letters: str, limit: int) -> str:
    letter, parts = _clean(place.get(side)).upper()[:1], place.get(angle)
    if not letter or letter not in letters or not isinstance(parts, tuple) or len(parts) != 3:
        return ""
    degrees, minutes, seconds = map(float, parts)
    value = degrees + minutes / 60 + seconds / 3600
    return f"{value:.5f}° {letter}" if math.isfinite(value) and 0 <= value <= limit else ""
