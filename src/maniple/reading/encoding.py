"""From bytes to text, whatever the page says about itself."""

import codecs
import re

# What pages call by the name on the left is in truth the superset on the right
# (https://encoding.spec.whatwg.org).
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
# Python calls these text encodings; no page is written in them, and some take quadratic time.
_NOT_OF_PAGES = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"}
# Every byte means something in these, so that reading without a mistake says nothing for them.
_OF_ONE_BYTE = re.compile(r"cp125\d|iso8859|koi8|mac|cp8|cp437|latin")
_ASCII = bytes(range(128))
# So much that makes sense as UTF-8 is UTF-8, whatever it is declared to be.
_TELLING_BYTES = 40
_SAMPLE_BYTES = 65_536
_MOST_MISTAKES = 0.02
_TAGS = re.compile(rb"<[^<>]{0,2000}>|[\x00-\x7f]{64,}")


def decode_text(body: bytes, charset: str | None) -> str:
    """`body` as text.

    Its byte order mark is trusted, then the header's `charset` and its own `<meta>` as far as they make
    sense, then UTF-8; what is none of
    these is guessed from its bytes.
    """
    from bs4.dammit import EncodingDetector

    body, mark = EncodingDetector.strip_byte_order_mark(body)
    declared = EncodingDetector.find_declared_encoding(body, is_html=True)
    mark = mark or detect_utf16(body)
    named = [codec for name in (mark, charset, declared) if (codec := _codec(name))]
    high_bytes = len(body.translate(None, _ASCII))
    if not mark and (not named or _OF_ONE_BYTE.match(named[0]) or high_bytes >= _TELLING_BYTES):
        named.insert(0, "utf-8")
    for codec in dict.fromkeys([*named, "utf-8"]):
        try:
            return body.decode(codec)
        except UnicodeDecodeError:
            continue
    for codec in named:
        text = body.decode(codec, "replace")
        if text.count("\ufffd") <= _MOST_MISTAKES * high_bytes:
            return text
    return body.decode(_guessed(body), "replace")


def _guessed(body: bytes) -> str:
    from charset_normalizer import from_bytes

    found = from_bytes(_TAGS.sub(b" ", body)[:_SAMPLE_BYTES])
    best = found.best()
    if best is None:
        return "utf-8"
    # Central European before Western is a mistake that it makes, and the rarer case.
    western = next((match for match in found if match.encoding == "cp1252"), None)
    if (
        western is not None
        and western.chaos <= best.chaos
        and best.encoding.startswith(("cp125", "iso8859", "mac"))
    ):
        return "cp1252"
    return _SUPERSETS.get(best.encoding, best.encoding)


def detect_utf16(body: bytes) -> str | None:
    """UTF-16 that does not say so: of markup in it, every other byte is zero."""
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
    return None if codec in _NOT_OF_PAGES else _SUPERSETS.get(codec, codec)
