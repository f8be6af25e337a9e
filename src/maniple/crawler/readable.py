"""Finding what a person would read on a page.

Own code, because the packages at hand lose what an agent needs: readabilipy without Node drops links,
images and the line breaks of code, and took 72 s for a page of 2.2 MB; readability-lxml drops tables
and lists; trafilatura took 53 s for that page. Everything here takes time linear in the page.
"""

import re
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_NOISE = (
    "//script|//style|//noscript|//template|//svg|//canvas|//iframe|//object|//video|//audio|//dialog"
    "|//button|//input|//select|//textarea|//nav|//aside|//*[@role='navigation' or @role='search']"
    "|//*[@hidden or @aria-hidden='true'][not(self::body or self::main or self::article)]"
    "|//*[contains(translate(@style, ' ', ''), 'display:none')][not(self::body)]"
    "|//header[not(ancestor::article or ancestor::main)]|//footer[not(ancestor::article or ancestor::main)]"
)
_NOISY_NAME = re.compile(
    r"(?:^|[\s_-])(cookies?|consent|gdpr|newsletter|breadcrumbs?|sidebar|share|adverts?)(?:$|[\s_-])"
)
_MAIN = "//main|//*[@role='main']|//article"
_KEPT_ATTRIBUTES = {"href", "src", "alt", "colspan", "rowspan", "start"}
# Measuring one candidate reads all of its text: without a bound, nested ones would take quadratic time.
_MAX_CANDIDATES = 50


def readable_part(page: "HtmlElement") -> "HtmlElement":
    """The element of `page` with the text worth reading; menus and the like are emptied in place.

    That is the largest `main` or `article` when it holds at least two fifths of the text that is
    left without menus, sidebars and hidden parts, else everything left.
    """
    _blank(page.xpath(_NOISE))
    body = page.find(".//body")
    body = page if body is None else body
    whole = text_length(body)
    noisy = (element for element in body.iter("div", "section", "ul", "ol", "p") if _has_noisy_name(element))
    _blank([e for e in islice(noisy, _MAX_CANDIDATES) if text_length(e) * 4 < whole])
    best = max(page.xpath(_MAIN)[:_MAX_CANDIDATES], key=text_length, default=body)
    return best if text_length(best) * 5 >= text_length(body) * 2 else body


def text_length(element: "HtmlElement") -> int:
    """Characters of text under `element`, white space at the ends of runs not counted."""
    return sum(len(text.strip()) for text in element.itertext())


def keep_first(root: "HtmlElement", characters: int) -> None:
    """Remove what follows the first `characters` of text, so that nobody converts what nobody will read.

    An element counts as one character: a page of nothing but tags ends too.
    """
    total = 0
    for element in root.iter():
        total += 1 + len(element.text or "") + len(element.tail or "")
        if total > characters:
            _drop_after(element, root)
            return


def clean_attributes(root: "HtmlElement", base: str) -> None:
    """Make links and images absolute against `base` and remove those that are not http or https."""
    for element in root.iter():
        kept = _KEPT_ATTRIBUTES | {"class"} if element.tag in ("pre", "code") else _KEPT_ATTRIBUTES
        attributes = {name: value for name, value in element.attrib.items() if name in kept}
        element.attrib.clear()
        element.attrib.update(attributes)
        for name in ("href", "src"):
            if name in element.attrib:
                _make_absolute(element, name, base)
    _blank(root.xpath(".//img[not(@src)]"))


def _has_noisy_name(element: "HtmlElement") -> bool:
    return bool(_NOISY_NAME.search(f"{element.get('class', '')} {element.get('id', '')}".lower()))


def _blank(elements: "list[HtmlElement]") -> None:
    # Emptied, not removed: lxml joins the strings on both sides of a removed element, in quadratic time.
    for element in elements:
        element.clear(keep_tail=True)
        element.tag = "span"


def _make_absolute(element: "HtmlElement", name: str, base: str) -> None:
    try:
        url = urljoin(base, element.attrib[name].strip())
    except ValueError:
        url = ""
    if url.startswith(("http://", "https://")):
        element.attrib[name] = url
    else:
        del element.attrib[name]


def _drop_after(element: "HtmlElement", root: "HtmlElement") -> None:
    while element is not root:
        parent = element.getparent()
        for sibling in list(element.itersiblings()):
            parent.remove(sibling)
        element = parent
