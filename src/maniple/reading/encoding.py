"""Detection of the encoding of pages, whose declarations are often wrong."""

import codecs
import re

# Declared names and the supersets that are used in fact (https://encoding.spec.whatwg.org).
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "ascii": "cp1252",
}
# Python's text encodings that no page uses; some take quadratic time.
_NON_PAGE_CODECS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"}
# In these, every byte is valid, so that decoding without an error proves nothing.
_SINGLE_BYTE = re.compile(r"cp125\d|iso8859|koi8|mac|cp8|cp437|latin")
_ASCII = bytes(range(128))
# Text with this many non-ASCII bytes that is valid UTF-8 is UTF-8, regardless of its declaration.
_MIN_UTF8_BYTES = 40
_SAMPLE_BYTES = 65_536
_MAX_MISTAKES = 0.02
_TAGS = re.compile(rb"<[^<>]{0,2000}>|[\x00-\x7f]{64,}")


def decode_text(body: bytes, charset: str | None) -> str:
    """Return `body` as text.

    The encoding is that of the byte order mark, else of the header's `charset`, else of the `<meta>` element,
    if these are plausible, else UTF-8, else a guess from the bytes.
    """
    from bs4.dammit import EncodingDetector

    body, mark = EncodingDetector.strip_byte_order_mark(body)
    declared = EncodingDetector.find_declared_encoding(body, is_html=True)
    mark = mark or detect_utf16(body)
    named = [codec for name in (mark, charset, declared) if (codec := _codec(name))]
    high_bytes = len(body.translate(None, _ASCII))
    if not mark and (not named or _SINGLE_BYTE.match(named[0]) or high_bytes >= _MIN_UTF8_BYTES):
        named.insert(0, "utf-8")
    for codec in dict.fromkeys([*named, "utf-8"]):
        try:
            return body.decode(codec)
        except UnicodeDecodeError:
            continue
    for codec in named:
        text = body.decode(codec, "replace")
        if text.count("\ufffd") <= _MAX_MISTAKES * high_bytes:
            return text
    return body.decode(_guess_encoding(body), "replace")


def _guess_encoding(body: bytes) -> str:
    from charset_normalizer import from_bytes

    found = from_bytes(_TAGS.sub(b" ", body)[:_SAMPLE_BYTES])
    best = found.best()
    if best is None:
        return "utf-8"
    # The library often mistakes Western for Central European, which is rarer.
    western = next((match for match in found if match.encoding == "cp1252"), None)
    if (
        western is not None
        and western.chaos <= best.chaos
        and best.encoding.startswith(("cp125", "iso8859", "mac"))
    ):
        return "cp1252"
    return _SUPERSETS.get(best.encoding, best.encoding)


def detect_utf16(body: bytes) -> str | None:
    """Return the UTF-16 codec of markup without a byte order mark: every other byte of it is zero."""
    head = body[:200]
    zeros = (head[::2].count(0), head[1::2].count(0))
    if max(zeros) * 4 < len(head) or min(zeros) > 0:
        return None
    return "utf-16-be" if zeros[0] else "utf-16-le"


def _codec(name: str | None) -> str | None:
    try:
        codec = codecs.lookup(name or "").name
    except LookupError:
        return None
    return None if codec in _NON_PAGE_CODECS else _SUPERSETS.get(codec, codec)
