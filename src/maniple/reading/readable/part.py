"""Finding the article of a page.

Own code, in the way of arc90's Readability, because the packages at hand take too long for what strangers
write, or lose what an agent needs (docs/decisions/0009-own-reading.md has the figures). Everything here takes
time linear in the page.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from maniple.reading.readable.candidates import best, scores
from maniple.reading.readable.measure import Measure, measure
from maniple.reading.readable.pruning import (
    blank,
    has_author,
    prune_article,
    prune_asides,
    prune_consent,
    prune_page,
    prune_unlikely,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# Where little is left of a page, one kind of evidence after the other is given up: what its parts are
# named, how they are named when candidates are weighed, and what they look like.
_EVIDENCE = ({"names", "weights", "looks"}, {"weights", "looks"}, {"looks"}, set[str]())
_ENOUGH = 500
# A page of more elements is no article, and measuring each would take memory that it is not worth.
_MAX_ELEMENTS = 100_000
# An article that is shorter and also less than a fifth of its page is a teaser among others.
_TEASER = 200
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


def readable_part(parse: "Callable[[], HtmlElement]", title: str, front: bool = False) -> "HtmlElement":
    """The element worth reading of the page that `parse` makes, anew at each call; the rest is emptied.

    That is the article, without a heading that repeats `title`. Of a page that has none, or that is the
    `front` of a site, it is what is left without menus: the largest `main` or `article` when that holds two
    fifths of the text, else everything.
    """
    longest, length, whole = None, -1, 0
    for evidence in _EVIDENCE:
        page = parse()
        byline = not has_author(page)
        body = _pruned_body(page)
        if sum(1 for _ in body.iter()) > _MAX_ELEMENTS:
            return _largest(body)
        if front:
            return _front(body)
        whole = max(whole, text_length(body))
        part = _article(body, title, evidence, byline)
        if (found := text_length(part)) > length:
            longest, length = part, found
        # Half of a page is not hidden behind a misleading name.
        if length >= min(_ENOUGH, whole / 2):
            break
    if longest is None or (length < _TEASER and length * 5 < whole):
        return _front(_pruned_body(parse()))
    return longest


def text_length(element: "HtmlElement") -> int:
    """Characters of text under `element`, white space at the ends of runs not counted."""
    return sum(len(text.strip()) for text in element.itertext())


def _pruned_body(page: "HtmlElement") -> "HtmlElement":
    prune_page(page)
    body = page.find(".//body")
    return page if body is None else body


def _front(body: "HtmlElement") -> "HtmlElement":
    """What is worth reading of a page that has no article."""
    measures = measure(body)
    prune_consent(measures)
    prune_asides(measures)
    return _largest(body)


def _largest(body: "HtmlElement") -> "HtmlElement":
    # The first fifty, each of which is read whole: nested ones without a bound would take quadratic time.
    mains = body.xpath("(.//main|.//*[@role='main']|.//article)[position() <= 50]")
    largest = max(mains, key=text_length, default=body)
    return largest if text_length(largest) * 5 >= text_length(body) * 2 else body


def _article(body: "HtmlElement", title: str, evidence: set[str], byline: bool) -> "HtmlElement":
    measures = measure(body)
    # Not `or`: both are to be done.
    if prune_consent(measures) | prune_asides(measures):
        measures = measure(body)
    if "names" in evidence and prune_unlikely(measures, byline):
        measures = measure(body)
    found = scores(measures, "weights" in evidence)
    part = best(found, body)
    if part is not body:
        part = _with_siblings(part, found, measures)
    if "looks" in evidence:
        prune_article(part, title)
    return part


def _with_siblings(
    top: "HtmlElement", found: "dict[HtmlElement, float]", measures: "dict[HtmlElement, Measure]"
) -> "HtmlElement":
    """`top`; or its parent, where other children belong to the article too, without the ones that do not."""
    fifth = found.get(top, 0.0) / 5
    name = top.get("class")

    def belongs(other: "HtmlElement") -> bool:
        bonus = fifth if name and other.get("class") == name else 0.0
        return found.get(other, 0.0) + bonus >= max(10.0, fifth) or _is_prose(other, measures[other])

    parent = top.getparent()
    others = [child for child in parent if child is not top]
    rest = [child for child in others if not belongs(child)]
    if len(rest) == len(others):
        return top
    for child in rest:
        blank(child)
    return parent


def _is_prose(element: "HtmlElement", own: Measure) -> bool:
    if not own.is_paragraph(element):
        return False
    if own.characters > 80:
        return own.link_density < 0.25
    return own.characters > 0 and own.linked == 0 and element.text_content().rstrip().endswith(_SENTENCE_ENDS)
