"""Which element holds the article: the one that the paragraphs, by their length and commas, speak for."""

from typing import TYPE_CHECKING

from maniple.reading.readable.measure import Measure, count_commas
from maniple.reading.readable.naming import weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.html import HtmlElement

_PARAGRAPHS = {"p", "td", "pre", "section", "h2", "h3", "h4", "h5", "h6"}
_CONTAINERS = {"div", "article", "main", "center", "body"}
_BY_TAG = {"div": 5, "pre": 3, "td": 3, "blockquote": 3}
_BY_TAG |= dict.fromkeys(("address", "ol", "ul", "dl", "dd", "dt", "li", "form"), -3)
_BY_TAG |= dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "th"), -5)
_LEVELS = 5
_LEAST_CHARACTERS = 25


def scores(measures: "dict[HtmlElement, Measure]", weighed: bool) -> "dict[HtmlElement, float]":
    """What the paragraphs give to the elements around them, less for links; `weighed`: names count too."""
    found: dict[HtmlElement, float] = {}
    for holder, points in _paragraphs(measures):
        element = holder
        for level in range(_LEVELS):
            if element is None or element not in measures:
                break
            if element not in found:
                found[element] = _BY_TAG.get(element.tag, 0) + (weight(element) if weighed else 0)
            found[element] += points / (1, 2, 6, 9, 12)[level]
            element = element.getparent()
    return {element: score * (1 - measures[element].link_density) for element, score in found.items()}


def best(found: "dict[HtmlElement, float]", body: "HtmlElement") -> "HtmlElement":
    """The element that holds the article; `body` where nothing speaks for another."""
    if not found:
        return body
    top = max(found, key=lambda element: found[element])
    top = _common_holder(top, found)
    top = _better_parent(top, found)
    while (
        top is not body
        and (parent := top.getparent()) is not None
        and parent is not body
        and len(parent) == 1
    ):
        top = parent
    return top


def _paragraphs(measures: "dict[HtmlElement, Measure]") -> "Iterator[tuple[HtmlElement, float]]":
    """Who holds a paragraph, and what the paragraph is worth."""
    for element, own in measures.items():
        if element.tag in _CONTAINERS and (
            own.blocks > 1 or element.find("br") is not None or element.tag == "body"
        ):
            yield from _runs(element, measures)
        elif element.tag in _PARAGRAPHS or element.tag in _CONTAINERS:
            parent = _holder(element, measures)
            if own.characters >= _LEAST_CHARACTERS and parent is not None:
                yield parent, _points(own.characters, own.commas)


def _holder(element: "HtmlElement", measures: "dict[HtmlElement, Measure]") -> "HtmlElement | None":
    """What `element` stands in; a division that holds one paragraph alone is that paragraph."""
    parent = element.getparent()
    if element.tag == "p" and parent in measures and measures[parent].is_paragraph(parent):
        return parent.getparent()
    return parent


def _runs(
    container: "HtmlElement", measures: "dict[HtmlElement, Measure]"
) -> "Iterator[tuple[HtmlElement, float]]":
    """The text that stands in `container` itself, between its blocks and its empty lines."""
    characters, commas, broken = len((container.text or "").strip()), count_commas(container.text), False
    for child in container:
        own = measures.get(child)
        tail = (child.tail or "").strip()
        if own is None or own.blocks or (child.tag == "br" and broken):
            if characters >= _LEAST_CHARACTERS:
                yield container, _points(characters, commas)
            characters = commas = 0
        elif own is not None:
            characters, commas = characters + own.characters, commas + own.commas
        broken = child.tag == "br" and not tail
        characters, commas = characters + len(tail), commas + count_commas(tail)
    if characters >= _LEAST_CHARACTERS:
        yield container, _points(characters, commas)


def _points(characters: int, commas: int) -> float:
    return 2 + commas + min(characters // 100, 3)


def _common_holder(top: "HtmlElement", found: "dict[HtmlElement, float]") -> "HtmlElement":
    """What holds `top` and at least three others of nearly its score, else `top`."""
    rivals = sorted(found, key=lambda element: -found[element])[1:5]
    rivals = [rival for rival in rivals if found[rival] >= 0.75 * found[top]]
    if len(rivals) < 3:
        return top
    counts: dict[HtmlElement, int] = {}
    for rival in rivals:
        for holder in rival.iterancestors():
            counts[holder] = counts.get(holder, 0) + 1
    return next((h for h in top.iterancestors() if counts.get(h, 0) >= 3 and h.tag != "html"), top)


def _better_parent(top: "HtmlElement", found: "dict[HtmlElement, float]") -> "HtmlElement":
    """The first holder of `top` with a higher score, where the scores on the way do not fall too low."""
    last = found.get(top, 0.0)
    floor = last / 3
    for holder in top.iterancestors():
        if holder.tag in ("body", "html"):
            break
        score = found.get(holder)
        if score is None:
            continue
        if score < floor:
            break
        if score > last:
            return holder
        last = score
    return top
