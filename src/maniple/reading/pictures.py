"""Formats and sizes of pictures, from their first bytes without decoding."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.picture_metadata import describe_metadata

PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The formats that models with vision accept."""


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """The media type and the size in pixels of a picture."""

    media_type: str
    width: int
    height: int


def identify_picture(body: bytes) -> PictureInfo | None:
    """Return the type and size of a picture.

    None if it is of no type in `PICTURE_TYPES` or its size is invalid.
    """
    for media_type, measure in _MEASURES.items():
        size = measure(body)
        if size is not None and min(size) > 0:
            return PictureInfo(media_type, *size)
    return None


FIGURE = re.compile(
    r"(?<![\\!])!\[(?P<caption>(?:\\.|\[[^\[\]\n]{0,80}+\]|[^\[\]\\\n]){0,500}+)\]\([ \t]{0,9}+"
    r"(?!<?(?:[A-Za-z][A-Za-z0-9+.-]{0,30}+:|//|\#))(?P<target><[^<>\n]{1,500}+>|[^\s()<>]{1,500}+)"
    r"(?:[ \t]{1,9}+\"[^\"\n]{0,200}+\")?[ \t]{0,9}+\)"
)
"""A Markdown image whose target is a file of the conversation, not an address. Takes linear time."""
_ADDRESS_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#")
_WORKSPACE = "/workspace/"


def figure_path(target: str) -> str:
    """Return the workspace path that an image's target names; "" if it names an address or nothing valid."""
    name = unquote(target.strip().removeprefix("<").removesuffix(">"))
    if _ADDRESS_START.match(name) or not name.isprintable():
        return ""
    name = name.removeprefix(_WORKSPACE)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return "" if ".." in parts or name.startswith("/") else "/".join(parts)


def read_picture(body: bytes, url: str) -> MarkdownDocument:
    """Return a Markdown image of the picture at `url`, its size, and its date, camera and place if known.

    Raises:
        UnreadableDocument: it is not a picture.
    """
    picture = identify_picture(body)
    if picture is None:
        raise UnreadableDocument("is a damaged picture")
    name = unquote(urlsplit(url).path.rpartition("/")[2]) or "picture"
    title = "".join(letter for letter in name if letter.isprintable() and letter not in "[]`\\")
    kind = picture.media_type.removeprefix("image/").upper()
    size = f"A {kind} picture of {picture.width} x {picture.height} pixels."
    about = " ".join(filter(None, (size, describe_metadata(body))))
    return MarkdownDocument(title, f"![{title}]({quote(url, safe=_ADDRESS)})\n\n{about}", headed=False)


# Characters that stay unescaped in addresses; brackets would end an address in Markdown.
_ADDRESS = "%:/?#@!$&'*+,;=~"


def _png_size(body: bytes) -> tuple[int, int] | None:
    if body[:8] != b"\x89PNG\r\n\x1a\n" or body[12:16] != b"IHDR" or len(body) < 24:
        return None
    return int.from_bytes(body[16:20]), int.from_bytes(body[20:24])


def _gif_size(body: bytes) -> tuple[int, int] | None:
    if body[:6] not in (b"GIF87a", b"GIF89a") or len(body) < 10:
        return None
    return int.from_bytes(body[6:8], "little"), int.from_bytes(body[8:10], "little")


def _webp_size(body: bytes) -> tuple[int, int] | None:
    if body[:4] != b"RIFF" or body[8:12] != b"WEBP" or len(body) < 30:
        return None
    match body[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(body[24:27], "little"), 1 + int.from_bytes(body[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(body[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            sides = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (26, 28))
            return next(sides), next(sides)
    return None


# Markers of frames; three markers between C0 and CF have other meanings.
_JPEG_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = {0x01, *range(0xD0, 0xD9)}
_MAX_SEGMENTS = 1_000


def _jpeg_size(body: bytes) -> tuple[int, int] | None:
    if body[:3] != b"\xff\xd8\xff":
        return None
    at = 2
    for _ in range(_MAX_SEGMENTS):
        if at + 9 > len(body) or body[at] != 0xFF:
            break
        marker = body[at + 1]
        if marker in _JPEG_FRAMES:
            return int.from_bytes(body[at + 7 : at + 9]), int.from_bytes(body[at + 5 : at + 7])
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + max(int.from_bytes(body[at + 2 : at + 4]), 2)
    return None


_MEASURES: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
