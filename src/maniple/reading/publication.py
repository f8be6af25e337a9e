"""Who published a page, who wrote it, and when: from its metadata, markup and byline, its address last."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maniple.reading.dates import find_date, find_date_in_address, find_dates, parse_date
from maniple.reading.publication_signs import (
    ADDRESS,
    ARTICLE_TYPES,
    AUTHOR_CLASS,
    AUTHOR_LABEL,
    AUTHOR_NAMES,
    BY,
    BYLINE_CHARACTERS,
    BYLINE_CLASS,
    DATE_CLASS,
    DATE_FIELDS,
    DATE_NAMES,
    LABELLED,
    LOOKED_AT,
    MAX_AUTHORS,
    MAX_CANDIDATES,
    MAX_ITEMS,
    MAX_SCRIPTS,
    NAME_END,
    NO_DATES,
    NO_NAME,
    NOT_OF_PAGE,
    PAGE_TYPES,
    PUBLISHER_NAMES,
    ROLE,
    SITE_PARTS,
    SMALL_WORDS,
    SOURCE_LABEL,
    TEMPLATE,
    TEXT_TYPES,
    VALUE_CHARACTERS,
    WRITTEN_BY,
)
from maniple.reading.title_lines import find_date_below_title, find_published_date

_AHEAD = timedelta(days=2)
_AUTHOR_MARKUP = (
    "(//*[@itemprop='author' or @itemprop='creator' or @property='author' or @property='schema:author'"
    " or @rel='sioc:has_creator'])[position() <= 5]"
)
_FOOTER_OF_ARTICLE = re.compile(r"meta|byline|submitted")
_ROLE_BEHIND = re.compile(r"\s*(?:기자|특파원|記者|记者|编辑|編集部)$")

if TYPE_CHECKING:
    from lxml.html import HtmlElement


@dataclass(frozen=True, slots=True)
class Publication:
    """When and by whom a page was published. What is unknown is empty."""

    published: str = ""
    """`YYYY-MM-DD`, or `YYYY-MM` or `YYYY` where no more is known."""
    author: str = ""
    """The names of its authors, separated by commas."""
    publisher: str = ""
    """The site, the paper or the journal."""

    def __bool__(self) -> bool:
        return bool(self.published or self.author or self.publisher)

    @property
    def line(self) -> str:
        """One line for a reader; "" if nothing is known."""
        named = (("Published", self.published), ("Author", self.author), ("Publisher", self.publisher))
        return "; ".join(f"{name}: {value}" for name, value in named if value)


def find_publication(
    page: "HtmlElement", url: str, title: str = "", now: datetime | None = None
) -> Publication:
    """Return what a page, which was not pruned, says about its publication. Linear.

    A date more than two days after `now`, by default the current time, is not the one of its publication.
    """
    latest = ((now or datetime.now(UTC)) + _AHEAD).date().isoformat()
    month_first = _is_month_first(page, url)
    metas = _read_metas(page)
    items = [*_read_items(page)]
    byline = _read_byline(page, month_first)
    published = (
        _first_known(_dates_of_items(items), latest)
        or _first_known(
            (parse_date(value, month_first=month_first) for value in _values(metas, DATE_NAMES)), latest
        )
        or _first_known(_dates_of_markup(page, month_first), latest)
        or _first_known([byline.published], latest)
        or find_date_below_title(page, latest, month_first=month_first)
        or _first_known([find_date_in_address(url)], latest)
    )
    author = (
        _authors(
            name for item in items for name in _names_of(item.get("author") or item.get("creator"), items)
        )
        or _authors(_meta_authors(metas))
        or _authors(_texts(page, _AUTHOR_MARKUP))
        or byline.author
    )
    journal = _values(metas, PUBLISHER_NAMES[:2])
    publisher = _first(
        map(
            _clean_publisher,
            (
                *journal,
                *(name for item in items for name in _names_of(item.get("publisher"), items)),
                *(name for item in items for name in _names_of(item.get("isPartOf"), items)),
                *_values(metas, PUBLISHER_NAMES[2:]),
                *_texts(page, "(//*[@itemprop='publisher' or @itemprop='sourceOrganization'])[1]"),
                byline.publisher,
                _site_in_title(title, url),
                *(
                    str(item.get("name", ""))
                    for item in items
                    if _has_type(item, re.compile("WebSite$|Organization$"))
                ),
            ),
        )
    )
    return Publication(published, author, publisher)


def _first_known(dates: Iterable[str], latest: str) -> str:
    """Return the first date that is neither a placeholder nor after `latest`."""
    return next((one for one in dates if one and one not in NO_DATES and one[: len(latest)] <= latest), "")


def _first(values: Iterable[str]) -> str:
    return next(filter(None, values), "")


def _is_month_first(page: "HtmlElement", url: str) -> bool | None:
    language = page.get("lang", "").lower().replace("_", "-")
    host = urlsplit(url).hostname or ""
    if language == "en-us" or host.endswith((".gov", ".mil")):
        return True
    if language.startswith("en") or not language:
        return False if host.endswith((".uk", ".au", ".nz", ".ie", ".in")) or language == "en-gb" else None
    return False


def _read_metas(page: "HtmlElement") -> dict[str, list[str]]:
    metas: dict[str, list[str]] = {}
    for meta in islice(page.iter("meta"), MAX_ITEMS):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        content = " ".join(meta.get("content", "")[: 4 * VALUE_CHARACTERS].split())
        if name and content:
            metas.setdefault(name.strip().lower(), []).append(content)
    return metas


def _values(metas: Mapping[str, list[str]], names: Iterable[str]) -> Iterator[str]:
    return (value for name in names for value in metas.get(name, ()))


def _read_items(page: "HtmlElement") -> Iterator[dict[str, Any]]:
    """Yield the items of the structured data: those of articles, then those of pages, then others."""
    found: list[dict[str, Any]] = []
    for script in page.xpath(f"(//script[@type='application/ld+json'])[position() <= {MAX_SCRIPTS}]"):
        text = (script.text or "").strip().removeprefix("<![CDATA[").removesuffix("]]>").rstrip("; \n")
        try:
            found += islice(_walk_items(json.loads(text, strict=False)), MAX_ITEMS)
        except (ValueError, RecursionError):
            continue
    yield from (one for one in found if _has_type(one, TEXT_TYPES))
    yield from (one for one in found if not _has_type(one, TEXT_TYPES) and _has_type(one, ARTICLE_TYPES))
    yield from (one for one in found if not _has_type(one, ARTICLE_TYPES) and _has_type(one, PAGE_TYPES))
    yield from (one for one in found if not _has_type(one, ARTICLE_TYPES) and not _has_type(one, PAGE_TYPES))


def _walk_items(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value[:MAX_ITEMS]:
            yield from _walk_items(one, depth + 1)
    elif isinstance(value, dict) and depth < 6:
        yield value
        for name in ("@graph", "mainEntity", "mainEntityOfPage", "hasPart", "itemReviewed"):
            if isinstance(value.get(name), list | dict):
                yield from _walk_items(value[name], depth + 1)


def _has_type(item: Mapping[str, Any], wanted: re.Pattern[str]) -> bool:
    kinds = item.get("@type", "")
    return any(
        isinstance(kind, str) and wanted.search(kind)
        for kind in (kinds if isinstance(kinds, list) else [kinds])
    )


def _dates_of_items(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    values = (
        item.get(name)
        for item in items
        if _has_type(item, ARTICLE_TYPES) or _has_type(item, PAGE_TYPES)
        for name in DATE_FIELDS
    )
    return (parse_date(str(value)) for value in values if isinstance(value, str | int))


def _names_of(value: Any, items: Iterable[Mapping[str, Any]], depth: int = 0) -> Iterator[str]:
    """Yield the names in a field of the structured data: texts, items, references, or lists of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < 3:
        for one in value[:20]:
            yield from _names_of(one, items, depth + 1)
    elif isinstance(value, dict):
        name = value.get("name") or value.get("legalName")
        if name is None and (given := value.get("givenName")):
            name = f"{given} {value.get('familyName', '')}"
        if name is None and (key := value.get("@id")):
            same = (one for one in items if one.get("@id") == key and one is not value)
            name = next((one["name"] for one in same if one.get("name")), None)
        yield from _names_of(name, items, depth + 1) if depth < 3 else ()


def _meta_authors(metas: Mapping[str, list[str]]) -> Iterator[str]:
    for name in AUTHOR_NAMES:
        found = [one for one in metas.get(name, ()) if not ADDRESS.search(one)]
        if any(map(_clean_author, found)):
            is_turned = name.startswith(("citation", "bepress", "dc"))
            yield from (_turn_name(one) if is_turned else one for one in found)
            return
    for number in ("1", "2"):
        labels = metas.get(f"twitter:label{number}", ())
        if any(map(WRITTEN_BY.match, labels)):
            yield from metas.get(f"twitter:data{number}", ())


def _turn_name(name: str) -> str:
    """Return `Doe, Jane` as `Jane Doe`."""
    family, comma, given = name.partition(", ")
    return f"{given} {family}" if comma and given and "," not in given and ";" not in name else name


def _authors(names: Iterable[str]) -> str:
    found: dict[str, str] = {}
    for name in names:
        for one in re.split(r"\s*;\s*", name):
            if cleaned := _clean_author(one):
                found.setdefault(cleaned.casefold(), cleaned)
    shown = [*found.values()]
    more = " et al." if len(shown) > MAX_AUTHORS else ""
    return f"{', '.join(shown[:MAX_AUTHORS])}{more}"[:VALUE_CHARACTERS]


def _clean_author(name: str) -> str:
    name = _ROLE_BEHIND.sub("", BY.sub("", " ".join(name.split())))
    if TEMPLATE.search(name):
        return ""
    if ADDRESS.search(name) or NO_NAME.match(name) or not any(map(str.isalpha, name)):
        return ""
    return name.strip(" ,.;:|-–—")[:VALUE_CHARACTERS] if len(name) < VALUE_CHARACTERS else ""


def _clean_publisher(name: str) -> str:
    name = re.sub(r"^(?:©|\(c\)|copyright)\s*(?:\d{4}\s*)?", "", " ".join(name.split()), flags=re.I).strip(
        " ,.|-–—"
    )
    is_name = (
        name
        and not ADDRESS.search(name)
        and not TEMPLATE.search(name)
        and len(name) <= 120
        and any(map(str.isalpha, name))
    )
    return name if is_name else ""


def _texts(page: "HtmlElement", path: str) -> Iterator[str]:
    for element in page.xpath(path):
        inner = element.xpath("(.//*[@itemprop='name' or @property='name' or @property='schema:name'])[1]")
        target = inner[0] if inner else element
        yield " ".join((target.get("content") or target.text_content()[:BYLINE_CHARACTERS]).split())


def _dates_of_markup(page: "HtmlElement", month_first: bool | None) -> Iterator[str]:
    """Yield the dates in microdata, RDFa, and in each `<time>` that belongs to the article."""
    named = page.xpath(
        "(//*[@itemprop='datePublished' or @itemprop='dateCreated' or @property='datePublished'"
        " or contains(concat(' ', @property, ' '), ' dc:date ') or @property='dc:issued'"
        " or @property='schema:datePublished' or @property='dcterms:issued'"
        " or (self::time and @pubdate)])[position() <= 5]"
    )
    yield from (_date_of_element(one, month_first) for one in named)
    times = [one for one in islice(page.iter("time", "abbr", "relative-time"), 50) if _is_of_page(one)]
    told = [one for one in times if DATE_CLASS.search(_name(one)) or LABELLED.search(_text_around(one))]
    in_articles = [
        one for one in times if any(up.tag in ("article", "main", "header") for up in one.iterancestors())
    ]
    yield from (_date_of_element(one, month_first) for one in (*told, *in_articles, *times))


def _date_of_element(element: "HtmlElement", month_first: bool | None) -> str:
    for name in (
        "datetime",
        "content",
        "title",
        "data-datetime",
        "data-date",
        "data-timestamp",
        "data-published",
    ):
        if (value := element.get(name)) and (date := parse_date(value, month_first=month_first)):
            return date
    return find_date(element.text_content()[:BYLINE_CHARACTERS], month_first=month_first)


def _text_around(element: "HtmlElement") -> str:
    parent = element.getparent()
    return _short_text(parent).lower() if parent is not None else ""


def _name(element: "HtmlElement") -> str:
    return f"{element.get('class', '')[:300]} {element.get('id', '')[:300]}".lower()


def _is_of_page(element: "HtmlElement") -> bool:
    around = (element, *islice(element.iterancestors(), 8))
    return not any(
        (one.tag in ("aside", "footer", "nav", "li") and not _FOOTER_OF_ARTICLE.search(_name(one)))
        or (one.tag not in ("body", "html") and NOT_OF_PAGE.search(_name(one)))
        for one in around
    )


def _read_byline(page: "HtmlElement", month_first: bool | None) -> Publication:
    """Return what short elements near the title say, by their classes and their words."""
    published = publisher = ""
    authors: list[str] = []
    body = page.find(".//body")
    for element in islice((page if body is None else body).iter(), LOOKED_AT):
        if not _may_be_byline(element) or not (text := _short_text(element)) or not _is_of_page(element):
            continue
        name = _name(element)
        if not published and (BYLINE_CLASS.search(name) or LABELLED.search(text.lower())):
            published = find_published_date(text, month_first=month_first)
        if len(authors) < MAX_CANDIDATES and (author := _author_of(element, name, text)):
            authors.append(author)
        if not publisher and (match := SOURCE_LABEL.search(text)):
            publisher = match[1]
    return Publication(published, _choose_author(authors), publisher)


def _may_be_byline(element: "HtmlElement") -> bool:
    if element.tag == "a":
        return element.get("rel") == "author" or bool(AUTHOR_CLASS.search(_name(element)))
    return element.tag not in ("script", "style", "body", "html", "title", "option")


def _choose_author(candidates: list[str]) -> str:
    """Return the first candidate without what stands behind the name: an inner element has the name alone."""
    if not candidates:
        return ""
    first = candidates[0]
    shorter = [one for one in candidates[1:] if first.startswith(f"{one} ")]
    return min(shorter, key=len, default=first)


def _short_text(element: "HtmlElement") -> str:
    """Return the text of an element; "" if it is longer than a byline."""
    pieces: list[str] = []
    length = 0
    for piece in islice(element.itertext(), 40):
        pieces.append(piece)
        length += len(piece.strip())
        if length > BYLINE_CHARACTERS:
            return ""
    return " ".join(" ".join(pieces).split())


def _author_of(element: "HtmlElement", name: str, text: str) -> str:
    if match := AUTHOR_LABEL.search(text):
        return _clean_author(match[1])
    is_named = element.get("rel") == "author" or AUTHOR_CLASS.search(name)
    begins = BY.match(text)
    if not is_named and not begins:
        return ""
    rest = text[begins.end() :] if begins else text
    rest = rest[: next((begin for _, begin, _ in find_dates(rest)), None)]
    end = NAME_END.search(rest)
    found = _clean_author(ROLE.sub("", rest[: end.start()] if end else rest))
    words = found.split()
    is_name = 0 < len(words) <= 8 and (words[0][:1].isupper() or not words[0].isascii())
    return found if is_name and len(found) <= 80 else ""


def _site_in_title(title: str, url: str) -> str:
    """Return the part of a title that is the name of the site: that its host contains."""
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    known = re.sub(r"[\W_]+", "", host.lower())
    for part in reversed(SITE_PARTS.split(title)[1:]):
        squeezed = SMALL_WORDS.sub("", part.lower())
        if len(squeezed) >= 3 and squeezed in known:
            return part
    return ""
