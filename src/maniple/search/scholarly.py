"""What the providers of scholarly papers share: records of papers, their markup, pauses between requests."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import Field

from maniple.search.provider import (
    CONTENT_CHARACTERS,
    HttpEndpoint,
    RateLimited,
    SearchHit,
    is_web_address,
    make_hit,
    read_iso_date,
)
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from lxml.etree import _Element

PATIENCE_SECONDS = 3.0
"""A `Retry-After` up to this is waited for once; a longer one is reported."""
QUERY_CHARACTERS = 300
MAX_AUTHORS = 5
"""The authors that a hit names; it says how many more there are."""
_NAME_CHARACTERS = 200
_MARKUP_CHARACTERS = 20 * CONTENT_CHARACTERS
_MAX_WAITING = 3
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S{1,300})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# JATS, HTML and MathML, by the names of their elements: "for n<N and p>0" is no markup. No pattern can pass a
# bracket, so all are linear.
_END = r"(?:\s+[\w:.-]+\s*=[^<>]*)?\s*/?>"
_HEADING = re.compile(rf"<(?:jats:)?title{_END}([^<>]*)</(?:jats:)?title\s*>", re.IGNORECASE)
_POWER = re.compile(rf"<(?:jats:)?sup{_END}([^<>]*)</(?:jats:)?sup\s*>", re.IGNORECASE)
_BLOCK = re.compile(rf"</?(?:jats:)?(?:p|sec|list|list-item|br|div|abstract|title){_END}", re.IGNORECASE)
_INLINE = (
    "i|b|u|em|strong|sub|sup|sc|span|font|a|inf|tt|italic|bold|underline|monospace|xref|ext-link|"
    "inline-formula|disp-formula|tex-math|alternatives|AbstractText|ArticleTitle"
)
_TAG = re.compile(rf"</?(?:(?:jats|mml):[\w.-]+|{_INLINE}){_END}", re.IGNORECASE)
MailAddress = Annotated[str, Field(pattern=r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}$")]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """What an engine says about a paper. A value that is missing or of another type is left out."""

    title: Any = ""
    abstract: Any = ""
    """Plain text or markup."""
    authors: Iterable[Any] = ()
    """Names, in the order of the paper."""
    published: Any = ""
    """`YYYY-MM-DD`, or `YYYY-MM` or `YYYY`; a year may be a number."""
    venue: Any = ""
    """The journal, the conference, the repository or the publisher."""
    doi: Any = ""
    address: Any = ""
    """The page to show instead of the link of the DOI."""
    pages: Sequence[Any] = ()
    """Pages of a paper without DOI; the first web address is taken."""
    full_texts: Iterable[Any] = ()
    """Where everybody may read all of it; the first web address is taken."""

    def to_hit(self) -> SearchHit | None:
        """Return the hit; None for a paper without an address."""
        doi = normalize_doi(self.doi)
        url = _find_address((self.address, link_doi(doi) if doi else "", *self.pages))
        if not url:
            return None
        return replace(
            make_hit(markup_to_text(self.title), url, markup_to_text(self.abstract)),
            kind="paper",
            published=read_iso_date(self.published),
            author=_list_authors(self.authors),
            publisher=fix_surrogates(markup_to_text(self.venue)[:_NAME_CHARACTERS]),
            doi=doi,
            full_text_url=_find_address(self.full_texts),
        )


class RequestQueue:
    """Sends the requests to one engine one after the other, with a pause between their starts and ends.

    Raises `RateLimited` for a request that would be the fourth to wait.
    """

    def __init__(self, name: str, pause_seconds: float) -> None:
        self._name = name
        self._pause_seconds = pause_seconds
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._free_at = 0.0

    async def run(self, send: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return what `send` returns, once it is its turn."""
        if self._waiting >= _MAX_WAITING:
            message = (
                f"{self._name} allows one request every {self._pause_seconds:g} s, and others wait already."
            )
            raise RateLimited(message, cooldown_seconds=self._pause_seconds)
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(max(self._free_at - time.monotonic(), 0))
                try:
                    return await send()
                finally:
                    self._free_at = time.monotonic() + self._pause_seconds
        finally:
            self._waiting -= 1


def normalize_doi(value: Any) -> str:
    """Return a DOI in lower case without the address of its resolver; "" for what is none."""
    found = _DOI.fullmatch(value.strip()) if isinstance(value, str) else None
    return found[1].lower() if found and found[1].isprintable() else ""


def link_doi(doi: str) -> str:
    """Return the address that leads to the paper of a DOI."""
    return f"https://doi.org/{quote(doi, safe='/:;()._-')}"


def markup_to_text(value: Any) -> str:
    """Return HTML or JATS as one line of text; "" for what is no text. Exponents are written with `^`.

    The headings of a structured abstract end with a colon; the heading "Abstract" is left out.
    """
    if not isinstance(value, str):
        return ""
    text = _HEADING.sub(_write_heading, value[:_MARKUP_CHARACTERS])
    text = _POWER.sub(r"^\1", text)
    return " ".join(unescape(_TAG.sub("", _BLOCK.sub(" ", text))).split())


def format_date(year: Any, month: Any = None, day: Any = None) -> str:
    """Return numbers, or an English name of the month, as `YYYY-MM-DD` or as much of it as is known."""
    parts = [_read_number(year, 4), _read_month(month), _read_number(day, 2)]
    known = parts[: parts.index("")] if "" in parts else parts
    return read_iso_date("-".join(known))


def take_dicts(values: Any, limit: int) -> list[dict[str, Any]]:
    """Return the first `limit` JSON objects of a list; nothing for any other value."""
    items = values if isinstance(values, list) else []
    return list(islice((one for one in items if isinstance(one, dict)), limit))


def take_dict(values: Any, name: str) -> dict[str, Any]:
    """Return the JSON object called `name` of another; an empty one where there is none."""
    found = values.get(name) if isinstance(values, dict) else None
    return found if isinstance(found, dict) else {}


def parse_xml(body: bytes, root: str, endpoint: HttpEndpoint) -> "_Element":
    """Return the root element, of the given name; raises `ProviderFailure`."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it is compiled

    # Entities of an untrusted document could read local files or expand without limit.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        found = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise endpoint.malformed_response() from error
    if found.tag != root:
        raise endpoint.malformed_response()
    return found


def list_hits(records: Iterable[PaperRecord], limit: int) -> list[SearchHit]:
    """Return at most `limit` papers that have an address."""
    return list(islice((hit for one in records if (hit := one.to_hit()) is not None), limit))


def _write_heading(found: re.Match[str]) -> str:
    heading = found[1].strip().rstrip(":")
    return f" {heading}: " if heading and heading.casefold() not in ("abstract", "summary") else " "


def _find_address(values: Iterable[Any]) -> str:
    texts = (value.strip() for value in values if isinstance(value, str))
    return next((text for text in texts if is_web_address(text)), "")


def _list_authors(names: Iterable[Any]) -> str:
    found = [name for one in names if (name := markup_to_text(one)[:_NAME_CHARACTERS])]
    more = [f"and {len(found) - MAX_AUTHORS:,} more"] if len(found) > MAX_AUTHORS else []
    return fix_surrogates(", ".join([*found[:MAX_AUTHORS], *more]))


def _read_number(value: Any, digits: int) -> str:
    text = str(value).strip() if isinstance(value, str | int) else ""
    return text.zfill(digits) if text.isdecimal() and len(text) <= digits else ""


def _read_month(value: Any) -> str:
    name = value.strip().casefold()[:3] if isinstance(value, str) else ""
    return f"{_MONTHS.index(name) + 1:02}" if name in _MONTHS else _read_number(value, 2)
