"""Extraction of pages that are lists or tables of entries: search results, products, indexes, topics."""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from maniple.reading.element_metrics import ElementMetrics, is_unlikely_name, measure_elements
from maniple.reading.pagination import Pagination
from maniple.reading.readability import (
    MAX_ELEMENTS,
    empty_element,
    find_largest,
    prune_asides,
    prune_consent,
    pruned_body,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# A list has at least so many entries, or so many if it links to its other pages.
_LEAST_ENTRIES = 3
_LEAST_NUMBERED_ENTRIES = 2
# The least share of the entries in the text that is neither links nor headings elsewhere.
_LEAST_SHARE = 0.6
_LEAST_NUMBERED_SHARE = 0.4
# A page with a longer paragraph outside of its entries is an article.
_MAX_PARAGRAPH = 250
_MAX_NUMBERED_PARAGRAPH = 600
# Entries with more text are parts of an article or comments, unless the page links to further ones.
_MAX_ENTRY_PROSE = 400
# A longer paragraph that begins with a link is prose.
_MAX_LINE = 200
_MAX_ENTRY_SHARE = 0.6
_MOST_ENTRIES = 0.6
_MAX_ENTRY_ELEMENTS = 60

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_ENTRY_TAGS = {"li", "tr", "dt", "dd", "div", "article", "section", "a", "p"}
_ITEM_TAGS = {"li", "tr", "dt", "dd"}
_NAMED_TAGS = {"div", "section", "p", "a", "article"}
_PROTECTED_TAGS = {"html", "body", "main", "article", "a", "table", "code"}


def is_list_page(page: "HtmlElement", pagination: Pagination) -> bool:
    """Return whether most of the text of `page` is in the entries of lists and tables; `page` is pruned.

    An article with a list of related pages is none, and neither is one with comments.
    """
    body = _prune_list(page)
    if body is None:
        return False
    measures = measure_elements(body)
    if _empty_unlikely(body, measures, set()):
        measures = measure_elements(body)
    numbered = pagination.numbered
    entries = _find_entries(measures, numbered)
    if len(entries) < (_LEAST_NUMBERED_ENTRIES if numbered else _LEAST_ENTRIES):
        return False
    outside = _measure_outside(measures, entries)
    listed = sum(_characters(entry, measures) for entry in entries)
    if outside.longest > (_MAX_NUMBERED_PARAGRAPH if numbered else _MAX_PARAGRAPH):
        return False
    return listed >= (_LEAST_NUMBERED_SHARE if numbered else _LEAST_SHARE) * (listed + outside.prose)


def find_list_part(page: "HtmlElement", pagination: Pagination) -> "HtmlElement":
    """Return the element of `page` with the list, its head and its entries; menus are emptied."""
    body = _prune_list(page)
    if body is None:
        return find_largest(pruned_body(page))
    part = find_largest(body)
    measures = measure_elements(part)
    _empty_unlikely(part, measures, _find_entries(measures, pagination.numbered))
    return part


def _prune_list(page: "HtmlElement") -> "HtmlElement | None":
    """Return the body without menus; None if it has too many elements to be measured."""
    body = pruned_body(page)
    if sum(1 for _ in islice(body.iter(), MAX_ELEMENTS + 1)) > MAX_ELEMENTS:
        return None
    measures = measure_elements(body)
    prune_consent(measures)
    prune_asides(measures)
    return body


def _empty_unlikely(
    root: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]", entries: "set[HtmlElement]"
) -> bool:
    """Empty menus and the like by their names, but not the entries, headings, or most of the page."""
    whole = measures[root].characters
    inside: set[HtmlElement] = set()
    emptied: list[HtmlElement] = []
    for element, own in measures.items():
        if element.getparent() in inside or element in entries:
            inside.add(element)
        elif (
            element.tag not in _PROTECTED_TAGS
            and is_unlikely_name(element)
            and own.characters * 2 < whole
            and not own.in_headings
        ):
            inside.add(element)
            emptied.append(element)
    for element in emptied:
        empty_element(element)
    return bool(emptied)


def _find_entries(measures: "dict[HtmlElement, ElementMetrics]", numbered: bool) -> "set[HtmlElement]":
    """Return the outermost elements that repeat side by side and are entries of a list."""
    sets: dict[tuple[HtmlElement, str], list[HtmlElement]] = {}
    for element in measures:
        parent = element.getparent()
        if parent is not None and parent in measures and (kind := _kind(element)):
            sets.setdefault((_holder(parent), kind), []).append(element)
    found: set[HtmlElement] = set()
    for (_, kind), members in sets.items():
        if _is_list(kind, members, measures, numbered):
            found.update(members)
    outermost: set[HtmlElement] = set()
    inside: set[HtmlElement] = set()
    for element in measures:
        if element.getparent() in inside:
            inside.add(element)
        elif element in found:
            inside.add(element)
            outermost.add(element)
    return outermost


def _kind(element: "HtmlElement") -> str:
    """Return what an element must have in common with its neighbours to be an entry of the same list."""
    if element.get("role") in ("row", "listitem", "article"):
        return f"role {element.get('role')}"
    if element.tag not in _ENTRY_TAGS:
        return ""
    if element.tag in ("dt", "dd"):
        return "dl"
    names = element.get("class", "").split(maxsplit=1)
    return f"{element.tag}.{names[0]}" if names and element.tag in _NAMED_TAGS else str(element.tag)


def _holder(parent: "HtmlElement") -> "HtmlElement":
    above = parent.getparent()
    return above if parent.tag in ("tbody", "thead", "tfoot") and above is not None else parent


def _is_list(
    kind: str,
    members: "list[HtmlElement]",
    measures: "dict[HtmlElement, ElementMetrics]",
    numbered: bool,
) -> bool:
    filled = [one for one in members if measures[one].characters or measures[one].images]
    least = 1 if kind in _ITEM_TAGS else _LEAST_NUMBERED_ENTRIES if numbered else _LEAST_ENTRIES
    if len(filled) < least:
        return False
    lengths = [_characters(one, measures) for one in filled]
    total = sum(lengths)
    if len(filled) >= _LEAST_ENTRIES and max(lengths) > _MAX_ENTRY_SHARE * max(total, 1):
        return False  # a page that is laid out in rows, of which one has the content
    if not numbered and sum(measures[one].linked for one in filled) + _MAX_ENTRY_PROSE * len(filled) < total:
        return False
    if kind == "dl" or (kind in ("tr", "role row") and _is_tabular(filled)):
        return True
    entries = sum(1 for one in filled if _is_entry(one, measures[one]))
    return entries >= _MOST_ENTRIES * len(filled)


def _characters(entry: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]") -> int:
    """Return the characters of `entry` and, if it is a link, of the text after it on its line."""
    tail = (entry.tail or "").strip() if entry.tag == "a" else ""
    return measures[entry].characters + len(tail)


def _is_tabular(rows: "list[HtmlElement]") -> bool:
    wide = sum(1 for row in rows if len(row) > 1)
    return len(rows) >= _LEAST_ENTRIES and wide >= _MOST_ENTRIES * len(rows)


def _is_entry(element: "HtmlElement", own: ElementMetrics) -> bool:
    """Return whether `element` is an entry: it begins with its link, or its heading is one."""
    if not own.linked and element.tag != "a" and not own.images:
        return False
    if element.tag == "a" or own.link_density >= 0.5:
        return True
    if element.tag == "p" and ((element.text or "").strip() or own.characters > _MAX_LINE):
        return False
    for inner in islice(element.iter(), 1, _MAX_ENTRY_ELEMENTS):
        if inner.tag == "a":
            return True
        if inner.tag in _HEADINGS:
            return inner.find(".//a") is not None or inner.getparent().tag == "a"
        if (inner.text or "").strip() and element.tag not in _ITEM_TAGS:
            return False
    return False


@dataclass(slots=True)
class _Outside:
    prose: float = 0
    longest: int = 0


def _measure_outside(measures: "dict[HtmlElement, ElementMetrics]", entries: "set[HtmlElement]") -> _Outside:
    """Return the text outside of `entries` that is neither linked nor in headings."""
    outside = _Outside()
    inside: set[HtmlElement] = set()
    for element, own in measures.items():
        if element.getparent() in inside or element in entries:
            inside.add(element)
            continue
        if element.tag not in ("a", *_HEADINGS):
            outside.prose += len((element.text or "").strip())
        if own.is_paragraph(element):
            outside.longest = max(outside.longest, own.characters)
    for element in measures:
        parent = element.getparent()
        if parent in measures and parent not in inside and not (element.tag == "a" and element in entries):
            outside.prose += len((element.tail or "").strip())
    return outside
