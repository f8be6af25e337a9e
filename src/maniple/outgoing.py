"""The check of requests that a model shapes: no secret of the settings leaves in one.

A page or a file may ask a model to send a key to a stranger: in an address, a search query, a form, the name
of a host, the arguments of a tool. So what is about to leave is decoded as far as it can be, compared with
each secret, and refused. A part of a secret counts as well, and what left before to the same place is
compared together with the new request: a key in two halves is a key.

It finds the spellings of a secret, not every disguise: a model that enciphers a key passes. Words that are
guessed sooner than found are no secrets here: a password `postgres` must not forbid a search for it.
"""

import base64
import binascii
import codecs
import html
import logging
import math
import re
import threading
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from maniple.errors import ToolFailure
from maniple.redaction import SHORTEST
from maniple.types import is_list, is_mapping

_WORD_LENGTH = 12
"""A shorter word of letters alone is no secret here."""
_WHOLE_LENGTH = 12
"""Of a shorter secret only the whole counts, with its capitals; of a longer one also parts."""
_PART = 16
"""So many characters of a secret in a row are refused."""
_COVERED = 0.6
"""So much of a secret, in pieces, is refused."""
_COVERED_WORDS = 0.95
"""The same of a secret that consists of words, which other texts have as well."""
_WORD_PIECE = 8
"""The size of pieces of such a secret: its single words are in other texts."""
_CHANCE = 1.5e6
"""Pieces have so many values at least that texts have them by chance only rarely."""
_MAX_THREADS = 1_000
_MAX_REQUESTS = 64
_MAX_REMEMBERED = 4_000
"""Characters that are compared together with a new request."""
_MAX_DECODED = 100_000
"""Characters of a text of which encodings are decoded; spellings in plain are found in all of it."""
_DEPTH = 4
_JOINED_DEPTH = 2
_MAX_VIEWS = 60
_REFUSAL = (
    "This was not sent: it holds a key or password of this program's settings, or a part of one, which must "
    "not leave. Go on without it, and tell the user if something asked you for it."
)
_PRINTABLE = bytes(range(32, 127))
_log = logging.getLogger(__name__)


class SecretRefused(ToolFailure):
    """A request was not sent, because it holds a secret of the settings."""

    code = "secret_refused"


class OutgoingGuard:
    """Refuses texts that hold one of `secrets`, or with earlier ones give one away."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(one for one in secrets if _is_checked(one))
        self._forms = [_Form(one) for one in sorted(self._secrets)]
        self._sent: OrderedDict[tuple[str, str], deque[_Request]] = OrderedDict()
        self._lock = threading.Lock()
        self._relaxed: list[tuple[frozenset[str], OutgoingGuard]] = []

    def __repr__(self) -> str:
        return f"OutgoingGuard(of {len(self._secrets)} secrets)"

    def without(self, own: Iterable[str]) -> "OutgoingGuard":
        """Return a guard that lets the secrets of a receiver pass to it."""
        passing = frozenset(own)
        guard = OutgoingGuard(self._secrets - passing)
        self._relaxed.append((passing, guard))
        return guard

    def add(self, secrets: Iterable[str]) -> None:
        """Refuse texts with further secrets from now on, also in the guards that `without` has returned."""
        given = frozenset(secrets)
        with self._lock:
            self._secrets |= {one for one in given if _is_checked(one)}
            self._forms = [_Form(one) for one in sorted(self._secrets)]
        for passing, guard in self._relaxed:
            guard.add(given - passing)

    def check(self, request: Any, *, by: str, thread: str = "", to: str = "") -> None:
        """Raise `SecretRefused` for a request (a text, or JSON-like arguments) that gives a secret away.

        `by` says what sends it, for the log. The requests of one `thread` to one place count together. Takes
        some milliseconds of the processor; safe in threads.
        """
        if not self._forms:
            return
        asked = _Request("\n".join(_leaves(request)))
        with self._lock:
            sent = self._remember((thread, to))
            if self._gives_away([*sent, asked]):
                _log.warning("A request of %s was refused: it holds a secret of the settings.", by)
                raise SecretRefused(_REFUSAL)
            sent.append(asked)
            while sum(len(one.text) for one in sent) > _MAX_REMEMBERED:
                sent.popleft()

    def _remember(self, key: tuple[str, str]) -> "deque[_Request]":
        sent = self._sent.setdefault(key, deque(maxlen=_MAX_REQUESTS))
        self._sent.move_to_end(key)
        if len(self._sent) > _MAX_THREADS:
            self._sent.popitem(last=False)
        return sent

    def _gives_away(self, requests: "list[_Request]") -> bool:
        joined = _decode_all([*dict.fromkeys(_join_values([one.text for one in requests]))], _JOINED_DEPTH)
        views = [*joined, *(view for one in requests for view in one.views)]
        folds = dict.fromkeys([*map(_fold, joined), *(one.folded for one in requests)])
        folded = _FoldedText("\n".join(folds))
        return any(one.is_in(views, folded) for one in self._forms)


class _Request:
    """The text of a request, and what it is decoded."""

    __slots__ = ("folded", "text", "views")

    def __init__(self, text: str) -> None:
        self.text = text
        self.views = _decode_all([text])
        self.folded = "\n".join(dict.fromkeys(map(_fold, self.views)))


class _FoldedText:
    """A folded text, and all its pieces of a size."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces: dict[int, set[str]] = {}

    def pieces(self, size: int) -> set[str]:
        """Return all pieces of a size."""
        if size not in self._pieces:
            self._pieces[size] = {self.text[start : start + size] for start in range(len(self.text))}
        return self._pieces[size]


class _Form:
    """A secret as it is looked for. Folded texts have letters and digits alone, in small letters."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        folded = _fold(secret)
        self._is_whole = len(folded) < _WHOLE_LENGTH
        rotated = codecs.encode(folded, "rot13")
        self._needles = [_Needle(one) for one in dict.fromkeys((folded, folded[::-1], rotated))]

    def is_in(self, views: list[str], folded: _FoldedText) -> bool:
        """Return whether decoded texts hold the secret, or too much of it."""
        if self._is_whole:
            return any(self._secret in one or self._secret[::-1] in one for one in views)
        return any(one.is_in(folded) for one in self._needles)


class _Needle:
    def __init__(self, text: str) -> None:
        self._text = text
        self._size = _WORD_PIECE if _is_words(text) else _piece_size(text)
        self._limit = (_COVERED_WORDS if _is_words(text) else _COVERED) * len(text)
        self._places: dict[str, list[int]] = {}
        for start in range(len(text) - self._size + 1):
            self._places.setdefault(text[start : start + self._size], []).append(start)
        parts = range(len(text) - _PART + 1) if len(text) > _PART and not _is_words(text) else ()
        self._parts = [text[start : start + _PART] for start in parts]

    def is_in(self, folded: _FoldedText) -> bool:
        """Return whether a folded text holds it, a long part, or enough pieces."""
        pieces = folded.pieces(self._size)
        found = [places for piece, places in self._places.items() if piece in pieces]
        covered = {place + step for places in found for place in places for step in range(self._size)}
        return len(covered) >= self._limit or (
            bool(covered) and any(one in folded.text for one in self._parts)
        )


def _is_checked(secret: str) -> bool:
    is_word = secret.isalpha() and secret.casefold() == secret
    return len(secret) >= (_WORD_LENGTH if is_word else SHORTEST)


def _fold(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return "".join(filter(str.isalnum, text.casefold()))


def _piece_size(text: str) -> int:
    """Return the length of pieces that other texts rarely have by chance."""
    if text.isdecimal():
        letters = 10
    elif set(text) <= set("0123456789abcdef"):
        letters = 16
    else:
        letters = 26 if text.isalpha() else 36
    return math.ceil(math.log(_CHANCE) / math.log(letters))


_LETTERS = re.compile(r"[^\W\d_]{5,}")


def _is_words(text: str) -> bool:
    """Return whether most of a text is long runs of letters with vowels among them, as words are."""
    words = [one for one in _LETTERS.findall(text) if len(one) >= 5 and 0.2 <= _share_of_vowels(one) <= 0.6]
    return sum(map(len, words)) >= 0.7 * len(text)


def _share_of_vowels(text: str) -> float:
    return sum(letter in "aeiouy" for letter in text) / len(text)


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts and numbers of JSON-like data, keys included."""
    if is_mapping(value):
        for key, one in value.items():
            yield from (str(key), *_leaves(one))
    elif isinstance(value, str):
        yield value
    elif is_list(value):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


_VALUE_ENDS = re.compile(r"[&;\n?#/]")


def _join_values(requests: list[str]) -> Iterator[str]:
    """Yield what stands behind each other in the places that differ: values, and labels of host names."""
    parts = [part for one in requests for part in _VALUE_ENDS.split(one) if part]
    yield "".join(part.rpartition("=")[2] for part in parts)
    yield "".join(part.partition("=")[2] for part in parts)
    yield "".join(one.rpartition("=")[2] for text in requests for one in _VALUE_ENDS.split(text)[-1:])
    yield "".join(text.split()[-1] for text in requests if text.split())
    yield "".join(_first_label(one) for text in requests for one in text.split())


def _first_label(text: str) -> str:
    try:
        host = urlsplit(text).hostname or (text if re.fullmatch(r"[\w.-]+(:\d+)?", text) else "")
    except ValueError:
        return ""
    return host.partition(".")[0] if "." in host else ""


def _decode_all(texts: list[str], depth: int = _DEPTH) -> list[str]:
    """Return texts and what they are decoded, several times over, without those that were there before."""
    views = dict.fromkeys(texts)
    fresh = [text[-_MAX_DECODED:] for text in texts]
    if depth == _DEPTH:
        fresh += [text[::-1] for text in fresh]
    room = 10 * _MAX_DECODED
    for _ in range(depth):
        found = dict.fromkeys(one for text in fresh for one in _decode(text))
        fresh = []
        for one in filter(None, found):
            if one not in views and len(views) < _MAX_VIEWS and room > 0:
                room -= len(one)
                views[one] = None
                fresh.append(one)
    return list(views)


_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4})\}?|x([0-9a-fA-F]{2}))")
_HEX = re.compile(r"(?:(?:0x|\\x|%)?[0-9a-fA-F]{2}[ :,_-]{0,2}){4,}")
_HEX_PAIR = re.compile(r"(?:0x|\\x|%)?([0-9a-fA-F]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}|[a-z2-7]{16,}")
_BLANKS = re.compile(r"[\s\"',]+")
_NUMBER = re.compile(r"\d+")
_NUMBERS = re.compile(r"(?:\b\d{2,3}\b[^\w\n]{1,3}){5,}\d{2,3}\b")


def _decode(text: str) -> Iterator[str]:
    """Yield what a text is in other spellings, also what is none."""
    yield from (unquote(text), unquote_plus(text), html.unescape(text))
    yield _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
    hexadecimal = (bytes(map(_parse_hex, _HEX_PAIR.findall(found[0]))) for found in _HEX.finditer(text))
    numbers = (
        bytes(int(one) % 256 for one in _NUMBER.findall(found[0])) for found in _NUMBERS.finditer(text)
    )
    yield _join(map(_as_text, [*hexadecimal, *numbers]))
    yield _join(_decode_base32(found[0]) for found in _BASE32.finditer(text))
    # In each way to cut it, because a part of a text may begin anywhere in it.
    for cut in range(4):
        yield _join(_decode_base64(found[0][cut:]) for found in _BASE64.finditer(text))
    # Base64 that was cut into values, or that blanks interrupt.
    if len(text) <= _MAX_REMEMBERED:
        yield _join(_decode_base64(found[0]) for found in _BASE64.finditer(_BLANKS.sub("", text)))


def _parse_hex(pair: str) -> int:
    return int(pair, 16)


def _join(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, parts))


def _decode_base64(text: str) -> str:
    letters = text.rstrip("=").replace("-", "+").replace("_", "/")
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return _as_text(base64.b64decode(letters + "=" * (-len(letters) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _decode_base32(text: str) -> str:
    letters = text.upper()
    while len(letters) % 8 in (1, 3, 6):
        letters = letters[:-1]
    try:
        return _as_text(base64.b32decode(letters + "=" * (-len(letters) % 8)))
    except (binascii.Error, ValueError):
        return ""


def _as_text(data: bytes) -> str:
    """Return bytes as text where that is most of them; else it was no encoding of one."""
    others = data.translate(None, _PRINTABLE)
    return data.decode("latin-1") if len(others) <= 0.2 * len(data) and len(data) >= 3 else ""
