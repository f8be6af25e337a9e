"""Extraction of the article of a page.

An own implementation of arc90's Readability, because the available packages are too slow for hostile pages or
lose content that agents need (see docs/decisions/0009-own-reading.md). Everything takes linear time.
"""

from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING

from maniple.reading.element_metrics import (
    ElementMetrics,
    complete_metrics,
    count_commas,
    is_aside,
    is_byline,
    is_consent_box,
    is_share_bar,
    is_unlikely_name,
    measure_elements,
    name_score,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml.html import HtmlElement

# If too little of a page is left, the extraction is repeated with fewer kinds of evidence: first without
# pruning by names, then without names in the scores, then without pruning by the look of elements.
_EVIDENCE = ({"names", "weights", "looks"}, {"weights", "looks"}, {"looks"}, set[str]())
_ENOUGH_CHARACTERS = 500
# A page with more elements is no article, and measuring each would take too much memory.
MAX_ELEMENTS = 100_000
# An article that is shorter and also less than a fifth of its page is a teaser among others.
_TEASER_CHARACTERS = 200
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


def find_readable_part(
    parse: "Callable[[], HtmlElement]", title: str, front: bool = False, *, drops_byline: bool = False
) -> "HtmlElement":
    """Return the element with the readable part of a page; the rest is emptied.

    `parse` returns a new tree of the page at each call. The readable part is the article, without a heading
    that repeats `title`. `drops_byline` says that the author is known otherwise, so that a line with the name
    alone may be left out. For a page without an article, and for the `front` page of a site, it is the page
    without menus: the largest `main` or `article` if it has two fifths of the text, else the whole body.
    """
    longest, length, whole = None, -1, 0
    for evidence in _EVIDENCE:
        page = parse()
        byline = drops_byline and not has_author(page)
        body = pruned_body(page)
        if sum(1 for _ in body.iter()) > MAX_ELEMENTS:
            return find_largest(body)
        if front:
            return _front(body)
        whole = max(whole, text_length(body))
        part = _article(body, title, evidence, byline)
        if (found := text_length(part)) > length:
            longest, length = part, found
        # With half of the page's text, the result is accepted.
        if length >= min(_ENOUGH_CHARACTERS, whole / 2):
            break
    if longest is None or (length < _TEASER_CHARACTERS and length * 5 < whole):
        return _front(pruned_body(parse()))
    return longest


def text_length(element: "HtmlElement") -> int:
    """Return the characters of text in `element`, without white space at the ends of text nodes."""
    return sum(len(text.strip()) for text in element.itertext())


def pruned_body(page: "HtmlElement") -> "HtmlElement":
    """Return the body of `page` without scripts, menus and hidden elements."""
    prune_page(page)
    body = page.find(".//body")
    return page if body is None else body


def _front(body: "HtmlElement") -> "HtmlElement":
    """Return the readable part of a page without an article."""
    measures = measure_elements(body)
    prune_consent(measures)
    prune_asides(measures)
    return find_largest(body)


def find_largest(body: "HtmlElement") -> "HtmlElement":
    """Return the largest `main` or `article` if it has two fifths of the text of `body`, else `body`."""
    # Only the first fifty, because the text of each is read, and nested ones would take quadratic time.
    mains = body.xpath("(.//main|.//*[@role='main']|.//article)[position() <= 50]")
    largest = max(mains, key=text_length, default=body)
    return largest if text_length(largest) * 5 >= text_length(body) * 2 else body


def _article(body: "HtmlElement", title: str, evidence: set[str], byline: bool) -> "HtmlElement":
    measures = measure_elements(body)
    # `|`, not `or`, because both must run.
    if prune_consent(measures) | prune_asides(measures):
        measures = measure_elements(body)
    if "names" in evidence and prune_unlikely(measures, byline):
        measures = measure_elements(body)
    found = score_candidates(measures, "weights" in evidence)
    part = choose_candidate(found, body)
    if part is not body:
        part = _with_siblings(part, found, measures)
    if "looks" in evidence:
        prune_article(part, title)
    return part


def _with_siblings(
    top: "HtmlElement", found: "dict[HtmlElement, float]", measures: "dict[HtmlElement, ElementMetrics]"
) -> "HtmlElement":
    """Return `top`, or its parent if other children belong to the article, too.

    Those that do not are emptied.
    """
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
        empty_element(child)
    return parent


def _is_prose(element: "HtmlElement", own: ElementMetrics) -> bool:
    if not own.is_paragraph(element):
        return False
    if own.characters > 80:
        return own.link_density < 0.25
    return own.characters > 0 and own.linked == 0 and element.text_content().rstrip().endswith(_SENTENCE_ENDS)


_PARAGRAPHS = {"p", "td", "pre", "section", "h2", "h3", "h4", "h5", "h6"}
_CONTAINERS = {"div", "article", "main", "center", "body"}
_TABLE_PARTS = {"thead", "tbody", "tfoot", "tr"}
_BY_TAG = {"div": 5, "pre": 3, "td": 3, "blockquote": 3}
_BY_TAG |= dict.fromkeys(("address", "ol", "ul", "dl", "dd", "dt", "li", "form"), -3)
_BY_TAG |= dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "th"), -5)
_LEVELS = 5
_LEAST_CHARACTERS = 25


def score_candidates(
    measures: "dict[HtmlElement, ElementMetrics]", weighed: bool
) -> "dict[HtmlElement, float]":
    """Return the scores that paragraphs give to their ancestors, lowered by links.

    `weighed` includes names.
    """
    found: dict[HtmlElement, float] = {}
    for container, points in _paragraphs(measures):
        element = container
        for level in range(_LEVELS):
            if element is None or element not in measures:
                break
            if element not in found:
                found[element] = _BY_TAG.get(element.tag, 0) + (name_score(element) if weighed else 0)
            found[element] += points / (1, 2, 6, 9, 12)[level]
            element = element.getparent()
    return {element: score * (1 - measures[element].link_density) for element, score in found.items()}


def choose_candidate(found: "dict[HtmlElement, float]", body: "HtmlElement") -> "HtmlElement":
    """Return the element that contains the article; `body` if there is no better candidate."""
    if not found:
        return body
    top = max(found, key=lambda element: found[element])
    top = _common_ancestor(top, found)
    top = _better_parent(top, found)
    while (
        top is not body
        and (parent := top.getparent()) is not None
        and parent is not body
        and len(parent) == 1
    ):
        top = parent
    # A part of a table is no article; its head and caption are read with it.
    while top.tag in _TABLE_PARTS and (parent := top.getparent()) is not None:
        top = parent
    return top


def _paragraphs(measures: "dict[HtmlElement, ElementMetrics]") -> "Iterator[tuple[HtmlElement, float]]":
    """Yield the container of each paragraph, and the points of the paragraph."""
    for element, own in measures.items():
        if element.tag in _CONTAINERS and (
            own.blocks > 1 or element.find("br") is not None or element.tag == "body"
        ):
            yield from _text_runs(element, measures)
        elif element.tag in _PARAGRAPHS or element.tag in _CONTAINERS:
            parent = _container_of(element, measures)
            if own.characters >= _LEAST_CHARACTERS and parent is not None:
                yield parent, _points(own.characters, own.commas)


def _container_of(
    element: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]"
) -> "HtmlElement | None":
    """Return the container of `element`; a `div` with a single paragraph counts as that paragraph."""
    parent = element.getparent()
    if element.tag == "p" and parent in measures and measures[parent].is_paragraph(parent):
        return parent.getparent()
    return parent


def _text_runs(
    container: "HtmlElement", measures: "dict[HtmlElement, ElementMetrics]"
) -> "Iterator[tuple[HtmlElement, float]]":
    """Yield points for the text directly in `container`, split at blocks and empty lines."""
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


def _common_ancestor(top: "HtmlElement", found: "dict[HtmlElement, float]") -> "HtmlElement":
    """Return the common ancestor of `top` and at least three candidates with similar scores, else `top`."""
    rivals = sorted(found, key=lambda element: -found[element])[1:5]
    rivals = [rival for rival in rivals if found[rival] >= 0.75 * found[top]]
    if len(rivals) < 3:
        return top
    counts: dict[HtmlElement, int] = {}
    for rival in rivals:
        for container in rival.iterancestors():
            counts[container] = counts.get(container, 0) + 1
    return next((h for h in top.iterancestors() if counts.get(h, 0) >= 3 and h.tag != "html"), top)


def _better_parent(top: "HtmlElement", found: "dict[HtmlElement, float]") -> "HtmlElement":
    """Return the first ancestor of `top` with a higher score, unless a score in between is too low.

    Else `top`.
    """
    last = found.get(top, 0.0)
    floor = last / 3
    for container in top.iterancestors():
        if container.tag in ("body", "html"):
            break
        score = found.get(container)
        if score is None:
            continue
        if score < floor:
            break
        if score > last:
            return container
        last = score
    return top


_NEVER_READ = (
    # The parser puts the title of a page without a body into its text.
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
_PROTECTED_TAGS = {"html", "body", "main", "article", "a"}
_MAX_BYLINE = 100
_MAX_CONSENT = 3_000
_LEAST_PROSE = 10
_MAX_SHARE = 500


def empty_element(element: "HtmlElement") -> None:
    """Empty `element`; the text after it stays.

    It is not removed, because lxml joins the strings on both sides of a removed element, in quadratic time.
    """
    element.clear(keep_tail=True)
    element.tag = "span"


def prune_page(page: "HtmlElement") -> None:
    """Empty elements that are never read: scripts, menus, hidden elements, and `noscript` texts."""
    for element in page.xpath(_NEVER_READ):
        empty_element(element)
    for element in page.xpath("//noscript"):
        # A `noscript` with images alone has those that a script would load.
        texts = (element.text, *(child.tail for child in element))
        if any(child.tag != "img" for child in element) or any((text or "").strip() for text in texts):
            empty_element(element)


def has_author(page: "HtmlElement") -> bool:
    """Return whether the metadata of `page` has the author.

    A line about the author then belongs to the text.
    """
    return bool(page.xpath(_AUTHOR))


def prune_unlikely(measures: "dict[HtmlElement, ElementMetrics]", byline: bool) -> "list[HtmlElement]":
    """Empty elements with names untypical of articles and, if `byline`, the first line about the author.

    Returns the emptied elements.
    """
    emptied: list[HtmlElement] = []
    protected: set[HtmlElement] = set()
    for element, own in measures.items():
        if byline and 0 < own.characters < _MAX_BYLINE and _names_author_alone(element):
            emptied.append(element)
            byline = False
        elif element.getparent() in protected or element.tag in ("table", "code", "pre"):
            protected.add(element)  # of code, names such as "comment" are those of the highlighter
        elif element.tag not in _PROTECTED_TAGS and is_unlikely_name(element):
            emptied.append(element)
    for element in emptied:
        empty_element(element)
    return emptied


def _names_author_alone(element: "HtmlElement") -> bool:
    """Whether an element is a byline without a date, which would be lost."""
    return is_byline(element) and not any(map(str.isdigit, element.text_content()))


def prune_consent(measures: "dict[HtmlElement, ElementMetrics]") -> bool:
    """Empty cookie consent boxes, unless they are the whole page; return whether there were any."""
    whole = max((own.characters for own in measures.values()), default=0)
    return _empty_all(
        element
        for element, own in measures.items()
        if 0 < own.characters < min(_MAX_CONSENT, whole)
        and element.tag not in _PROTECTED_TAGS
        and is_consent_box(element)
    )


def prune_asides(measures: "dict[HtmlElement, ElementMetrics]") -> bool:
    """Empty sidebars of links, unless the page has no other text; return whether there were any."""
    whole = max((_prose(own) for own in measures.values()), default=0)
    return _empty_all(
        element
        for element, own in measures.items()
        if own.link_density > 0.5
        and whole - _prose(own) >= _LEAST_PROSE
        and element.tag not in _PROTECTED_TAGS
        and is_aside(element)
    )


def _prose(own: ElementMetrics) -> float:
    return own.characters - own.linked - own.in_headings


def _empty_all(elements: "Iterable[HtmlElement]") -> bool:
    found = list(elements)
    for element in found:
        empty_element(element)
    return bool(found)


def prune_article(root: "HtmlElement", title: str) -> None:
    """Empty elements in `root` that do not look like parts of an article:

    Link lists, forms, repeated titles.
    """
    elements = list(root.iter())
    protected = _find_protected(elements)
    measures = {element: ElementMetrics() for element in elements}
    for element in reversed(elements):
        own = measures[element]
        complete_metrics(element, own)
        if element is root:
            return
        parent = measures[element.getparent()]
        if _is_dropped(element, own, element in protected) or _repeats_title(element, own, title):
            empty_element(element)
        else:
            parent.add(own)
        parent.add_text(element.tail)


def _find_protected(elements: "list[HtmlElement]") -> "set[HtmlElement]":
    """Return elements in code, figures and data tables, the data tables, and the elements around those."""
    found: set[HtmlElement] = set()
    holders: set[HtmlElement] = set()
    for element in elements:
        is_table, parent = element.tag == "table", element.getparent()
        is_of_data = is_table and is_data_table(element)
        # A figure may be no more than a frame around a table of links.
        is_inside = parent in found and not (is_table and parent.tag == "figure")
        if is_of_data or is_inside or element.tag in ("code", "figure", "pre"):
            found.add(element)
        if is_of_data:
            holders.update(takewhile(lambda container: container not in holders, element.iterancestors()))
    return found | holders


def is_data_table(table: "HtmlElement") -> bool:
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


def _is_dropped(element: "HtmlElement", own: ElementMetrics, protected: bool) -> bool:
    if element.tag in ("h1", "h2"):
        return name_score(element) < 0
    if own.characters < _MAX_SHARE and is_share_bar(element):
        return True
    return (
        element.tag in _CONDITIONAL
        and not protected
        and not own.is_paragraph(element)
        and _is_unlikely(element, own)
    )


def _is_unlikely(element: "HtmlElement", own: ElementMetrics) -> bool:
    rank = name_score(element)
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


def _is_gallery(own: ElementMetrics) -> bool:
    return own.items == own.images


def _is_stub(own: ElementMetrics) -> bool:
    headed = own.in_headings >= 0.9 * own.characters
    return not headed and own.characters < 25 and (own.images == 0 or own.images > 2) and own.linked > 0


def _repeats_title(element: "HtmlElement", own: ElementMetrics, title: str) -> bool:
    if element.tag not in ("h1", "h2") or not 0 < own.characters < 300:
        return False
    words = element.text_content().lower().split()
    known = set(title.lower().split())
    new = sum(len(word) + 1 for word in words if word not in known)
    return new < 0.25 * (sum(map(len, words)) + len(words))
