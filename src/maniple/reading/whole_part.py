"""Extraction of the whole content of a page without its navigation, as documentation needs it.

The rules for articles drop what looks like a list of links, a form or a remark. In a reference, such parts
are the content: synopses, signatures, tables of functions, and lists of the chapters.
"""

import re
from itertools import islice
from typing import TYPE_CHECKING

from maniple.reading.element_metrics import ElementMetrics, measure_elements
from maniple.reading.readability import (
    MAX_ELEMENTS,
    empty_element,
    find_largest,
    prune_asides,
    prune_consent,
    pruned_body,
    text_length,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAIN = ".//main|.//*[@role='main']"
_LEAST_MAIN = 100
"""The characters of a main part that is read without what is around it."""
_LEAST_COVERAGE = 0.7
"""The share of the page's text that an article has at least."""
_LEAST_MAIN_COVERAGE = 0.9
"""The same where the page says what its main part is."""
_MAX_LINK_DENSITY = 0.3
_MAX_LINK_DENSITY_OF_SHORT = 0.5
"""The same where the article is so short that it may be no more than a remark."""
_ENOUGH_CHARACTERS = 500
_FRAME_NAME = re.compile(
    r"(?:^|\s)(?:(?:site|page|doc|docs|top|bottom|md|book)[-_]{0,2})?"
    r"(?:nav|navbar|navheader|navfooter|navigation|breadcrumbs?|menu|menubar|footer|sidebar|related|pager"
    r"|pagination|paginator|prev-?next|skip-?link|skip-?to-content|search-?(?:box|form|menu)|submenu|toplang"
    r"|bottomlang|edit-(?:page|link|this-page)|feedback|language-switcher|version-switcher)(?:\s|$)"
)
_REMARK_NAME = re.compile(
    r"comment|disqus|replies|respond\b|related|recommend|teaser|newsletter|promo|subscribe|sponsor|advert|share|social"
    r"|outbrain|taboola|trending|popular|read-?more|you-may"
)
_PROTECTED_TAGS = {"html", "body", "main", "article", "a", "tbody", "tr", "pre", "code", "dl"}
_WHOLE_TAGS = {"html", "body", "main", "article"}
_TURNING_LINKS = "(.//a[@accesskey='n' or @accesskey='p' or @rel='next' or @rel='prev'])[position() <= 8]"
_BAR_CHARACTERS = 200
_CODE = {"pre", "code"}
_NAME_CHARACTERS = 300


def find_whole_part(page: "HtmlElement", *, is_declared: bool) -> "HtmlElement":
    """Return the element of `page` with all of its content; menus and what frames the content are emptied.

    `is_declared` says that the page declares itself as documentation; of others, comments are emptied, too.
    """
    body = pruned_body(page)
    if sum(1 for _ in islice(body.iter(), MAX_ELEMENTS + 1)) > MAX_ELEMENTS:
        return find_largest(body)
    measures = measure_elements(body)
    prune_consent(measures)
    if not is_declared:
        prune_asides(measures)
        _prune_remarks(body)
    _prune_frame(body, measures)
    mains = [main for main in body.xpath(_MAIN) if text_length(main) >= _LEAST_MAIN]
    return mains[0] if len(mains) == 1 else find_largest(body)


def choose_part(article: "HtmlElement", whole: "HtmlElement") -> "HtmlElement":
    """Return `whole` if `article`, of the same page, misses much of its text and it is no list of links."""
    own = measure_elements(whole)[whole]
    is_main = whole.tag == "main" or whole.get("role") == "main"
    least = own.characters * (_LEAST_MAIN_COVERAGE if is_main else _LEAST_COVERAGE)
    found = text_length(article)
    most_links = _MAX_LINK_DENSITY if found >= _ENOUGH_CHARACTERS else _MAX_LINK_DENSITY_OF_SHORT
    return whole if own.link_density < most_links and found < least else article


def _prune_remarks(body: "HtmlElement") -> None:
    inside: set[HtmlElement] = set()
    remarks: list[HtmlElement] = []
    for element in body.iter():
        if element.getparent() in inside or element.tag in _CODE:
            inside.add(element)
        elif element.tag not in _PROTECTED_TAGS and _REMARK_NAME.search(_name(element)):
            remarks.append(element)
    for element in remarks:
        empty_element(element)


def _name(element: "HtmlElement") -> str:
    return f"{element.get('class', '')} {element.get('id', '')}"[:_NAME_CHARACTERS].lower()


def _prune_frame(body: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]") -> None:
    """Empty menus, footers and the like; not most of the page, and no section with a heading of its own."""
    most = measures[body].characters / 2
    framing = [
        element
        for element, own in measures.items()
        if element.tag not in _PROTECTED_TAGS
        and own.characters < most
        and not own.in_headings
        and _FRAME_NAME.search(_name(element))
    ]
    for element in [*framing, *_find_turning_bars(body, measures)]:
        empty_element(element)


def _find_turning_bars(
    body: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]"
) -> "list[HtmlElement]":
    """Return the largest elements around links to the previous and next page that have little else."""
    bars: list[HtmlElement] = []
    for link in body.xpath(_TURNING_LINKS):
        bar = link
        for holder in link.iterancestors():
            own = measures.get(holder)
            if (
                own is None
                or holder.tag in _WHOLE_TAGS
                or own.characters > _BAR_CHARACTERS
                or own.in_headings
            ):
                break
            bar = holder
        bars.append(bar)
    return bars
