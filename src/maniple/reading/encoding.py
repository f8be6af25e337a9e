"""Detection of the encoding of pages, whose declarations are often wrong."""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from maniple.reading.encoding_models import find_encoding, has_model, score_encoding

# Declared names and the supersets that are used in fact (https://encoding.spec.whatwg.org).
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "koi8-r": "koi8-u",
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
_SAMPLE_TIMES = 8
"""The part of a page that is searched for a sample of its text, in samples."""
_LEAST_SCORE = 0.25
"""Below this, letters that stand alone are not of the declared script."""
_MAX_MISTAKES = 0.02
_TAGS = re.compile(rb"<[^<>]{0,2000}>|[\x00-\x7f]{64,}")
_WESTERN = {"cp1252", "iso8859-1", "latin-1", "iso8859-15"}
_ISO_2022_JP = b"\x1b$"
_TOGETHER = re.compile(rb"[\x80-\xff]{2,}")
_MAX_TOGETHER = 0.5
_MIN_LETTERS = 5
"""With fewer non-ASCII bytes, a declaration is believed."""
_WESTERN_COVERAGE = 0.9
_OTHER_COVERAGE = 0.97
_MIN_GAIN = 0.04
_DOUBLE_ACUTE_O, _A_TILDE, _A_UMLAUT = 0xF5, 0xE3, 0xE4
"""Hungarian ő is õ in Western encodings, where õ is rarer than ã (Portuguese) or ä (Estonian)."""
_PUNCTUATION = frozenset("\xa0\xad“”„‚‘’‹›«»–—…•·°§©®™€£¥†‡¡¿×±²³½¼¾µ¶ªº")
_CENTRAL = (
    "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "ąćęłńóśźż", "áéíóöőúüű", "ăâîşţșț", "čćđšž",
)  # fmt: skip
"""The letters beyond ASCII: Czech, Slovak, Polish, Hungarian, Romanian, and Croatian with Slovenian."""
_ALPHABETS = {
    "cp1252": (
        "àâæçèéêëîïôœùûüÿ", "äöüß", "áéíñóúü", "àáâãçéêíóôõúü", "àèéìíòóùú", "åäöéæø", "áæéíðóöúýþ",
        "àçèéíïòóúü", "àáéèëêïíóôöü",
    ),
    "cp1250": _CENTRAL,
    "iso8859-2": _CENTRAL,
    "cp1254": ("âçğıîöşüû",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
}  # fmt: skip
"""The letters of the languages that are written in each encoding of Latin script; the Western ones first."""


def decode_text(body: bytes, charset: str | None) -> str:
    """Return `body` as text.

    The encoding is that of the byte order mark, else of the header's `charset`, else of the `<meta>` element,
    if these are plausible, else UTF-8, else a guess from the bytes. Servers declare Western encodings for
    everything, so a Western one counts only if the page names no other and the bytes look like it.
    """
    from bs4.dammit import EncodingDetector

    body, mark = EncodingDetector.strip_byte_order_mark(body)
    declared = EncodingDetector.find_declared_encoding(body, is_html=True)
    mark = mark or detect_utf16(body)
    named = [codec for name in (mark, charset, declared) if (codec := _codec(name))]
    high_bytes = len(body.translate(None, _ASCII))
    if not mark:
        named.sort(key=_is_western)
        if not named or _SINGLE_BYTE.match(named[0]) or high_bytes >= _MIN_UTF8_BYTES:
            named.insert(0, "utf-8")
        if not high_bytes and _ISO_2022_JP in body[:_SAMPLE_BYTES]:
            named.insert(0, "iso2022_jp")
    for codec in dict.fromkeys([*named, "utf-8"]):
        try:
            text = body.decode(codec)
        except UnicodeDecodeError:
            continue
        other = "" if mark or codec == "utf-8" else _find_better_encoding(body, codec)
        return body.decode(other, "replace") if other else text
    for codec in named:
        text = body.decode(codec, "replace")
        if text.count("\ufffd") <= _MAX_MISTAKES * high_bytes:
            other = "" if mark or codec == "utf-8" else _find_better_encoding(body, codec)
            return body.decode(other, "replace") if other else text
    sample = _strip_markup(body)
    found = "" if _is_apart(sample) else find_encoding(sample)
    return body.decode(found or _find_other_encoding(body) or _guess_encoding(body), "replace")


def _is_western(codec: str) -> bool:
    return codec in _WESTERN


def _strip_markup(body: bytes) -> bytes:
    return _TAGS.sub(b" ", body[: _SAMPLE_TIMES * _SAMPLE_BYTES])[:_SAMPLE_BYTES]


def _find_better_encoding(body: bytes, codec: str) -> str:
    """Return the encoding that explains `body` clearly better than the declared `codec`; "" if none does."""
    if _is_western(codec):
        return _find_other_encoding(body)
    sample = _strip_markup(body)
    if not has_model(codec):
        return _find_other_latin(sample, codec) if _is_apart(sample) else find_encoding(sample)
    if _is_apart(sample) and score_encoding(sample, codec) < _LEAST_SCORE:
        return _find_other_encoding(body) or "cp1252"
    return find_encoding(sample, codec)


def _is_apart(sample: bytes) -> bool:
    """Return whether there are letters beyond ASCII that stand alone, as in Latin script."""
    total = len(sample.translate(None, _ASCII))
    return total >= _MIN_LETTERS and sum(map(len, _TOGETHER.findall(sample))) <= _MAX_TOGETHER * total


def _find_other_latin(sample: bytes, codec: str) -> str:
    """Return the encoding of Latin script whose languages have letters that those of `codec` have not."""
    counts = Counter(sample.translate(None, _ASCII))
    if codec not in _ALPHABETS or counts.total() < _MIN_LETTERS:
        return ""
    coverage = {one: _cover(counts, one, languages) for one, languages in _ALPHABETS.items()}
    best = max(coverage, key=lambda one: coverage[one])
    is_better = coverage[best] >= max(_OTHER_COVERAGE, coverage[codec] + _MIN_GAIN)
    return best if is_better else ""


def _find_other_encoding(body: bytes) -> str:
    """Return the encoding of bytes that are not Western; "" if they may be.

    In Western texts, non-ASCII letters stand alone between others. Where they stand together, the script is
    another one; where they are those of another alphabet, the language is Central European or Turkish.
    """
    sample = _strip_markup(body)
    counts = Counter(sample.translate(None, _ASCII))
    total = counts.total()
    if total < _MIN_LETTERS:
        return ""
    if not _is_apart(sample):
        text = body.decode("utf-8", "replace")
        if text.count("\ufffd") <= _MAX_MISTAKES * total:
            return "utf-8"
        found = find_encoding(sample) or _guess_encoding(body)
        return "" if _is_western(found) else found
    coverage = {codec: _cover(counts, codec, languages) for codec, languages in _ALPHABETS.items()}
    is_rare = counts[_DOUBLE_ACUTE_O] <= counts[_A_TILDE] + counts[_A_UMLAUT]
    if not is_rare and coverage["cp1250"] >= _OTHER_COVERAGE:
        return "cp1250"
    best = max(coverage, key=lambda codec: coverage[codec])
    return best if coverage["cp1252"] < _WESTERN_COVERAGE and coverage[best] >= _OTHER_COVERAGE else ""


def _cover(counts: Mapping[int, int], codec: str, languages: Iterable[str]) -> float:
    """Return the share of the non-ASCII letters that the most suitable language has, 0 to 1."""
    letters = {bytes([byte]).decode(codec, "replace").lower(): 0 for byte in counts}
    for byte, count in counts.items():
        letters[bytes([byte]).decode(codec, "replace").lower()] += count
    judged = {letter: count for letter, count in letters.items() if letter not in _PUNCTUATION}
    total = sum(judged.values())
    found = max(sum(judged.get(letter, 0) for letter in alphabet) for alphabet in languages)
    return found / total if total else 1.0


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
