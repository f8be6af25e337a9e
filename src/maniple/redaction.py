"""Removal of secrets from all data that leave the process: text, JSON, bytes, streams.

It guards against accidents (an error that quotes a URL, a page that echoes a header, a model that was shown a
key), not against code that hides a secret on purpose: no filter can.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = 6
"""Shorter secrets are left alone: they would tear ordinary words apart, and are guessed sooner than found."""

_HEX = re.compile("%[0-9A-F]{2}")
_Text = TypeVar("_Text", str, bytes)
_Span = tuple[int, int]


class Redactor:
    """Masks every one of `secrets`, also as JSON, Python, URLs, HTML and base64 write it.

    Secrets can be added. A value without a secret is returned unchanged, as the same object. The check is
    one search per spelling, which is faster than one regular expression of all spellings.
    """

    __slots__ = ("_bytes", "_head", "_heads", "_longest", "_secrets", "_shortest", "_texts")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self._texts: tuple[str, ...] = ()
        self._bytes: tuple[bytes, ...] = ()
        self._shortest = self._longest = 0
        self._heads: dict[str, list[str]] = {}
        self._head = re.compile(r"(?!)")
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Mask further secrets from now on, such as those of settings that a running service has changed."""
        known = {*self._secrets, *(one for one in secrets if len(one) >= SHORTEST)}
        if len(known) == len(self._secrets):
            return
        self._secrets = tuple(sorted(known))
        spellings = {spelling for secret in self._secrets for spelling in _spellings(secret)}
        self._texts = tuple(sorted(spellings))
        self._bytes = tuple(text.encode("utf-8", "surrogatepass") for text in self._texts)
        self._shortest = min(map(len, self._texts), default=0)
        self._longest = max(map(len, self._texts), default=0)
        heads: dict[str, list[str]] = {}
        for text in self._texts:
            heads.setdefault(text[0], []).append(text)
        self._heads, self._head = heads, re.compile("[" + re.escape("".join(heads)) + "]")

    def __repr__(self) -> str:
        return f"Redactor(of {len(self._secrets)} secrets)"

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def each(self) -> Iterator["Redactor"]:
        """Yield a redactor for each secret alone."""
        return (Redactor((secret,)) for secret in self._secrets)

    def text(self, text: str) -> str:
        """Return `text` with `***` in the place of each secret; secrets that overlap are one."""
        if len(text) < self._shortest:
            return text
        spans = _spans(text, self._texts)
        if not spans:
            return text
        pieces, end = [], 0
        for start, stop in spans:
            pieces += (text[end:start], MASK)
            end = stop
        return "".join((*pieces, text[end:]))

    def value(self, value: Any) -> Any:
        """Return a JSON-like `value` (keys included) in the same shape without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = [(self.value(key), self.value(one)) for key, one in value.items()]
            same = all(a is c and b is d for (a, b), (c, d) in zip(items, value.items(), strict=True))
            return value if same else dict(items)
        if isinstance(value, list | tuple):
            ones = [self.value(one) for one in value]
            if all(new is old for new, old in zip(ones, value, strict=True)):
                return value
            return ones if isinstance(value, list) else tuple(ones)
        return value

    def same_length(self, data: bytes) -> bytes:
        """Return `data` with each byte of a secret replaced by `*`, so that written lengths stay true."""
        spans = _spans(data, self._bytes)
        if not spans:
            return data
        masked = bytearray(data)
        for start, stop in spans:
            masked[start:stop] = b"*" * (stop - start)
        return bytes(masked)

    def certain(self, text: str) -> int:
        """Return the length of the beginning of `text` that does not depend on what follows."""
        cut = len(text)
        for head in self._head.finditer(text, max(0, cut - self._longest + 1)):
            rest = text[head.start() :]
            if any(len(one) > len(rest) and one.startswith(rest) for one in self._heads[head[0]]):
                cut = head.start()
                break
        else:
            return cut
        # A secret that ends inside what is held is held, too: both may turn out to be one.
        return next((start for start, stop in _spans(text, self._texts) if start < cut < stop), cut)


class StreamRedactor:
    """Redacts a text that comes in pieces: what may be the beginning of a secret waits for the next piece.

    All that is given out, joined, is what `Redactor.text` would make of the whole.
    """

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, delta: str) -> str:
        """Return what can be given out now, perhaps nothing."""
        text = self._held + delta if self._held else delta
        cut = self._redactor.certain(text)
        self._held = text[cut:]
        return self._redactor.text(text[:cut])

    def end(self) -> str:
        """Return the rest."""
        rest, self._held = self._held, ""
        return self._redactor.text(rest)


def _spans(text: _Text, needles: Iterable[_Text]) -> list[_Span]:
    """Return where the needles are, in order; those that overlap as one."""
    found = sorted(span for needle in needles if needle in text for span in _places(text, needle))
    spans: list[_Span] = []
    for start, stop in found:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((start, stop))
    return spans


def _places(text: _Text, needle: _Text) -> Iterator[_Span]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + 1)


def _spellings(secret: str) -> Iterator[str]:
    """Yield the ways in which a secret is written by what our libraries send, log and store."""
    yield from (secret, repr(secret)[1:-1], html.escape(secret))
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        # A tool's arguments are JSON inside JSON.
        yield from (escaped, json.dumps(escaped, ensure_ascii=ascii_only)[1:-1])
    raw = secret.encode("utf-8", "surrogatepass")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield from (quoted, _HEX.sub(lambda match: match[0].lower(), quoted))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            yield _inside_base64(encode(b"\0" * offset + raw + b"\0\0").decode(), offset, len(raw))


def _inside_base64(encoded: str, offset: int, length: int) -> str:
    """Return the characters that the secret alone decides, as in `user:password` of Basic authentication."""
    return encoded[-(-offset * 8 // 6) : (offset + length) * 8 // 6]
