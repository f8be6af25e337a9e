import pytest

from maniple.crawler.document import sniff_media_type
from maniple.errors import FetchError
from maniple.media_types import DOCX
from tests.pictures import gif, jpeg, png, webp

ARCHIVE = b"PK\x03\x04" + bytes(26) + b"word/document.xml" + bytes(100)


@pytest.mark.parametrize(
    ("declared", "body", "found"),
    [
        ("text/html", b"<p>Hi", "text/html"),
        ("text/plain", b"<html><p>Hi", "text/plain"),
        ("text/csv", b"a,b", "text/csv"),
        ("application/rss+xml", b"<rss/>", "application/rss+xml"),
        ("application/ld+json", b"{}", "application/ld+json"),
        ("application/pdf", b"%PDF-1.7", "application/pdf"),
        ("text/html", b"\n%PDF-1.4 sent by mistake", "application/pdf"),
        ("application/octet-stream", b"%PDF-1.7", "application/pdf"),
        (DOCX, b"PK\x03\x04", DOCX),
        ("application/octet-stream", ARCHIVE, "application/zip"),
        ("application/zip", ARCHIVE, "application/zip"),
        ("application/vnd.ms-excel", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/vnd.ms-excel"),
        ("", b"  <!DOCTYPE html><p>Hi", "text/html"),
        ("", b"<!-- Hi --> <HTML>", "text/html"),
        ("", b'<?xml version="1.0"?><feed/>', "application/xml"),
        ("", b' {"a": 1}', "application/json"),
        ("", "words, 文章".encode(), "text/plain"),
        ("application/octet-stream", "﻿words".encode("utf-16"), "text/plain"),
        ("", b"", "text/plain"),
        ("image/png", png(), "image/png"),
        ("text/html", jpeg(), "image/jpeg"),
        ("", gif(), "image/gif"),
        ("application/octet-stream", webp(), "image/webp"),
        ("text/html", "<p>Hi".encode("utf-16-le"), "text/html"),
        ("", "<!DOCTYPE html><p>Hi".encode("utf-16-be"), "text/html"),
        ("application/yaml", b"a: 1", "text/plain"),
        ("application/javascript", b"let a = '<p>'", "text/plain"),
        ("application/vnd.ms-excel", b"a,b", "text/plain"),
    ],
)
def test_the_type_is_detected_from_the_bytes(declared: str, body: bytes, found: str) -> None:
    assert sniff_media_type("u", declared, body) == found


@pytest.mark.parametrize(
    ("declared", "body", "said"),
    [
        ("text/html", b"\x7fELF\0\0", "binary data"),
        ("", b"\x89PNG\r\n\x1a\n\0\0", "binary data"),
        ("application/gzip", b"\x1f\x8b\x08 words", "application/gzip"),
        ("application/x-tar", b"a" * 600 + b"\1", "application/x-tar"),
    ],
)
def test_what_holds_no_text_is_refused(declared: str, body: bytes, said: str) -> None:
    with pytest.raises(FetchError, match=f"u is {said}, which cannot be read"):
        sniff_media_type("u", declared, body)
