"""What kind of document an answer is: what its server calls it, and what its bytes say."""

import re
from dataclasses import dataclass

from maniple.egress import PermanentFetchError
from maniple.media_types import DOCX
from maniple.reading.encoding import detect_utf16
from maniple.reading.pictures import PICTURE_TYPES, identify_picture

HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"

_NO_TEXT = ("image/", "audio/", "video/", "font/")
# Servers say these when they know nothing; what such a document is, its bytes say.
_VAGUE = {
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-unknown",
    "application/zip",
    "application/force-download",
    "application/download",
    "unknown/unknown",
}
_MARKUP = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*){0,5}<(?:!doctype html|html|head|body|title|p|div|h1|meta)\b", re.I | re.S
)
_TEXT_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# What no text contains (https://mimesniff.spec.whatwg.org/#binary-data-byte).
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_LOOKED_AT_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A response as it came: its last address after redirects, its type and its decompressed bytes."""

    url: str
    media_type: str
    """Lower case, without parameters; empty when the server named none."""
    charset: str | None
    body: bytes
    frames: tuple["FetchedDocument", ...] = ()
    """Those in its frames: what is read then, instead of the body."""


def require_readable(url: str, declared: str) -> None:
    """Refuse by its name what holds no text, before it is loaded.

    Raises:
        PermanentFetchError: it is a picture that no model takes, a sound, a film or a font.
    """
    if declared.startswith(_NO_TEXT) and declared not in PICTURE_TYPES:
        raise _unreadable(url, declared)


def sniff_media_type(url: str, declared: str, body: bytes) -> str:
    """The media type of `body`, which its server called `declared` (lower case, without parameters).

    Text is never taken for markup when the server says that it is plain: it may be the source of a page.

    Raises:
        PermanentFetchError: it is nothing that can be read.
    """
    head = _in_utf_8(body[:_LOOKED_AT_BYTES])
    if head.lstrip()[:5] == b"%PDF-":
        return PDF
    if head[:4] == b"PK\x03\x04":
        if declared == DOCX or b"word/document.xml" in body:
            return DOCX
        raise _unreadable(url, declared if declared not in _VAGUE else "an archive")
    if declared in PICTURE_TYPES or (b"\0" in head and not head.startswith(_TEXT_MARKS)):
        return _of_picture(url, declared, body)
    if declared in _VAGUE:
        return _guessed(head)
    if declared.startswith("text/") or declared.endswith(("json", "xml")):
        return declared
    if _BINARY.search(head) or not declared.startswith("application/"):
        raise _unreadable(url, declared)
    return "text/plain"  # YAML, scripts, TeX and their like, as well as tables that are called Excel's


def _in_utf_8(head: bytes) -> bytes:
    """`head`; UTF-16 that does not say so is full of zeros, as binary data are."""
    codec = detect_utf16(head)
    text = head.decode(codec, "ignore").encode() if codec else head
    return head if _BINARY.search(text) else text


def _of_picture(url: str, declared: str, body: bytes) -> str:
    picture = identify_picture(body)
    if picture is None:
        raise _unreadable(url, declared if declared in PICTURE_TYPES else "binary data")
    return picture.media_type


def _guessed(head: bytes) -> str:
    if _MARKUP.match(head):
        return "text/html"
    if head.lstrip()[:1] == b"<":
        return "application/xml"
    return "application/json" if head.lstrip()[:1] in (b"{", b"[") else "text/plain"


def _unreadable(url: str, kind: str) -> PermanentFetchError:
    return PermanentFetchError(f"{url} is {kind[:100]}, which cannot be read here; look for a web page.")
