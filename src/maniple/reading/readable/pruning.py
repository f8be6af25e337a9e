"""Taking out of a page what nobody reads: by what it is, by its name, by what it looks like."""

from itertools import takewhile
from typing import TYPE_CHECKING

from maniple.reading.readable.measure import Measure, close
from maniple.reading.readable.naming import is_aside, is_byline, is_consent, is_share, is_unlikely, weight

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml.html import HtmlElement

_NEVER_READ = (
    # A page without a body has its title among its text, as the parser sees it.
    "//title|//script|//style|//template|//svg|//canvas|//iframe|//object|//embed|//video|//audio|//dialog"
    "|//link|//footer|//aside|//button|//select|//textarea|//nav"
    "|//*[@role='menu' or @role='menubar' or @role='complementary' or @role='navigation' or @role='search'"
    " or @role='alert' or @role='alertdialog' or @role='dialog' or @aria-modal='true']"
    "|//*[@hidden or @aria-hidden='true'][not(self::body or self::main or self::article or self::img)]"
    "|//*[contains(translate(@style, ' ', ''), 'display:none')"
    " or contains(translate(@style, ' ', ''), 'visibility:hidden')][not(self::body)]"
)
_AUTHOR = (
    "boolean(//meta[@content!=''][@name='author' or @name='parsely-author' or @name='dc.creator'"
    " or @name='DC.creator' or @name='dcterms.creator' or @property='dc:creator']"
    "|//script[@type='application/ld+json'][contains(., '\"author\"')])"
)
_CONDITIONAL = {"form", "fieldset", "table", "ul", "div"}
_KEPT_BY_TAG = {"html", "body", "main", "article", "a"}
_MAX_BYLINE = 100
_MAX_CONSENT = 3_000
_LEAST_PROSE = 10
_MAX_SHARE = 500


def blank(element: "HtmlElement") -> None:
    """Empty `element`; what is behind it stays.

    Emptied, not removed: lxml joins the strings on both sides of a removed element, in quadratic time.
    """
    element.clear(keep_tail=True)
    element.tag = "span"


def prune_page(page: "HtmlElement") -> None:
    """Empty what is never read: scripts, menus, what is hidden, what is said where there are no scripts."""
    for element in page.xpath(_NEVER_READ):
        blank(element)
    for element in page.xpath("//noscript"):
        # Images alone are those that a script would load.
        texts = (element.text, *(child.tail for child in element))
        if any(child.tag != "img" for child in element) or any((text or "").strip() for text in texts):
            blank(element)


def has_author(page: "HtmlElement") -> bool:
    """Whether `page` says in its head who wrote it: a line about the author is then a part of the text."""
    return bool(page.xpath(_AUTHOR))


def prune_unlikely(measures: "dict[HtmlElement, Measure]", byline: bool) -> "list[HtmlElement]":
    """Empty what is named like no article and, of `byline`, the first line about who wrote it.

    Returns what was emptied.
    """
    emptied: list[HtmlElement] = []
    sheltered: set[HtmlElement] = set()
    for element, own in measures.items():
        if byline and 0 < own.characters < _MAX_BYLINE and is_byline(element):
            emptied.append(element)
            byline = False
        elif element.getparent() in sheltered or element.tag in ("table", "code"):
            sheltered.add(element)
        elif element.tag not in _KEPT_BY_TAG and is_unlikely(element):
            emptied.append(element)
    for element in emptied:
        blank(element)
    return emptied


def prune_consent(measures: "dict[HtmlElement, Measure]") -> bool:
    """Empty boxes that ask to agree to cookies, unless they are all of the page; returns whether any is."""
    whole = max((own.characters for own in measures.values()), default=0)
    return _emptied(
        element
        for element, own in measures.items()
        if 0 < own.characters < min(_MAX_CONSENT, whole)
        and element.tag not in _KEPT_BY_TAG
        and is_consent(element)
    )


def prune_asides(measures: "dict[HtmlElement, Measure]") -> bool:
    """Empty lists of links that are named as standing beside; returns whether any is.

    Of a page that says nothing else they stay.
    """
    whole = max((_prose(own) for own in measures.values()), default=0)
    return _emptied(
        element
        for element, own in measures.items()
        if own.link_density > 0.5
        and whole - _prose(own) >= _LEAST_PROSE
        and element.tag not in _KEPT_BY_TAG
        and is_aside(element)
    )


def _prose(own: Measure) -> float:
    return own.characters - own.linked - own.in_headings


def _emptied(elements: "Iterable[HtmlElement]") -> bool:
    found = list(elements)
    for element in found:
        blank(element)
    return bool(found)


def prune_article(root: "HtmlElement", title: str) -> None:
    """Empty what is under `root` and looks like no part of an article: link lists, forms, repeated titles."""
    elements = list(root.iter())
    sheltered = _sheltered(elements)
    measures = {element: Measure() for element in elements}
    for element in reversed(elements):
        own = measures[element]
        close(element, own)
        if element is root:
            return
        parent = measures[element.getparent()]
        if _is_dropped(element, own, element in sheltered) or _repeats(element, own, title):
            blank(element)
        else:
            parent.add(own)
        parent.add_text(element.tail)


def _sheltered(elements: "list[HtmlElement]") -> "set[HtmlElement]":
    """What stands in code, a figure or a table of data, those tables, and what holds such a table."""
    found: set[HtmlElement] = set()
    holders: set[HtmlElement] = set()
    for element in elements:
        is_table, parent = element.tag == "table", element.getparent()
        is_of_data = is_table and is_data(element)
        # A figure may be no more than a frame around a table of links.
        is_inside = parent in found and not (is_table and parent.tag == "figure")
        if is_of_data or is_inside or element.tag in ("code", "figure", "pre"):
            found.add(element)
        if is_of_data:
            holders.update(takewhile(lambda holder: holder not in holders, element.iterancestors()))
    return found | holders


def is_data(table: "HtmlElement") -> bool:
    """Whether `table` is one, and not a page laid out with it."""
    if table.get("role") == "presentation" or table.find(".//table") is not None:
        return False
    if any(
        table.find(f".//{tag}") is not None for tag in ("caption", "th", "thead", "tfoot", "colgroup", "col")
    ):
        return True
    rows = table.findall(".//tr")
    columns = max((len(row) for row in rows), default=0)
    return len(rows) > 1 and columns > 1 and (len(rows) >= 10 or columns > 4 or len(rows) * columns > 10)


def _is_dropped(element: "HtmlElement", own: Measure, sheltered: bool) -> bool:
    if element.tag in ("h1", "h2"):
        return weight(element) < 0
    if own.characters < _MAX_SHARE and is_share(element):
        return True
    return (
        element.tag in _CONDITIONAL
        and not sheltered
        and not own.is_paragraph(element)
        and _is_fishy(element, own)
    )


def _is_fishy(element: "HtmlElement", own: Measure) -> bool:
    rank = weight(element)
    if rank < 0:
        return True
    if own.commas >= 10:
        return False
    is_list = element.tag in ("ul", "ol") or own.in_lists > 0.9 * own.characters
    most_links = 0.5 if rank >= 25 else 0.2
    return (
        (own.images > 1 and own.paragraphs / own.images < 0.5 and not _is_gallery(own))
        or (not is_list and own.items - 100 > own.paragraphs)
        or (element.tag in ("form", "fieldset") and own.inputs > own.paragraphs // 3)
        or (not is_list and _is_stub(own))
        or (own.link_density > most_links and not (is_list and rank < 25))
        or (own.images == 0 and own.in_text == 0)
    )


def _is_gallery(own: Measure) -> bool:
    return own.items == own.images


def _is_stub(own: Measure) -> bool:
    headed = own.in_headings >= 0.9 * own.characters
    return not headed and own.characters < 25 and (own.images == 0 or own.images > 2) and own.linked > 0


def _repeats(element: "HtmlElement", own: Measure, title: str) -> bool:
    if element.tag not in ("h1", "h2") or not 0 < own.characters < 300:
        return False
    words = element.text_content().lower().split()
    known = set(title.lower().split())
    new = sum(len(word) + 1 for word in words if word not in known)
    return new < 0.25 * (sum(map(len, words)) + len(words))
