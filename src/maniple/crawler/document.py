"""Media types of documents, from the server's declaration and from the bytes."""

import re
from dataclasses import dataclass

from maniple.egress import PermanentFetchError
from maniple.reading.encoding import detect_utf16
from maniple.reading.formats import FORMATS, HEAD_BYTES, identify_binary
from maniple.reading.pictures import PICTURE_TYPES, identify_picture

HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"

_PACKED = frozenset(
    media_type
    for one in FORMATS.values()
    if not one.is_text
    for media_type in one.media_types
    if media_type.startswith("application/")
)
"""Of these, the content of a container says what it is."""
_NO_TEXT = ("image/", "audio/", "video/", "font/")
# Types of servers that do not know the type; it is then determined from the bytes.
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
# Bytes that do not occur in text (https://mimesniff.spec.whatwg.org/#binary-data-byte).
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_LOOKED_AT_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A response: its address after redirects, its type and its decompressed bytes."""

    url: str
    media_type: str
    """Lower case, without parameters; empty if the server declared none."""
    charset: str | None
    body: bytes
    frames: tuple["FetchedDocument", ...] = ()
    """The documents in its frames, which are read instead of the body."""
    note: str = ""
    """A sentence about how it was fetched, if that is not as usual."""


def require_readable(url: str, declared: str) -> None:
    """Refuse documents without text by their declared type, before they are loaded.

    Raises:
        PermanentFetchError: it is a picture that models do not support, audio, video or a font.
    """
    if declared.startswith(_NO_TEXT) and declared not in PICTURE_TYPES:
        raise _unreadable(url, declared)


def sniff_media_type(url: str, declared: str, body: bytes) -> str:
    """Return the media type of `body`; `declared` is the server's type (lower case, without parameters).

    Text that is declared as plain is never treated as markup, because it may be the source code of a page.

    Raises:
        PermanentFetchError: it is of no readable type.
    """
    if key := identify_binary(body[:HEAD_BYTES]):
        media_types = FORMATS[key].media_types
        # Of an archive, the declared type says more than its first bytes, and is not relied on.
        return declared if declared in media_types or declared in _PACKED else media_types[0]
    head = _to_utf_8(body[:_LOOKED_AT_BYTES])
    if declared in PICTURE_TYPES or (b"\0" in head and not head.startswith(_TEXT_MARKS)):
        return _picture_type(url, declared, body)
    if declared in _VAGUE:
        return _guess_text_type(head)
    if declared.startswith("text/") or declared.endswith(("json", "xml")):
        return declared
    if _BINARY.search(head) or not declared.startswith("application/"):
        raise _unreadable(url, declared)
    return "text/plain"  # YAML, scripts, TeX and similar, and CSV tables that are declared as Excel


def _to_utf_8(head: bytes) -> bytes:
    """Return `head` in UTF-8; UTF-16 without a mark contains zeros and would look like binary data."""
    codec = detect_utf16(head)
    text = head.decode(codec, "ignore").encode() if codec else head
    return head if _BINARY.search(text) else text


def _picture_type(url: str, declared: str, body: bytes) -> str:
    picture = identify_picture(body)
    if picture is None:
        raise _unreadable(url, declared if declared in PICTURE_TYPES else "binary data")
    return picture.media_type


def _guess_text_type(head: bytes) -> str:
    if _MARKUP.match(head):
        return "text/html"
    if head.lstrip()[:1] == b"<":
        return "application/xml"
    return "application/json" if head.lstrip()[:1] in (b"{", b"[") else "text/plain"


def _unreadable(url: str, kind: str) -> PermanentFetchError:
    return PermanentFetchError(f"{url} is {kind[:100]}, which cannot be read; use a web page instead.")
