"""Metrics of the subtree of each element of a page, computed in one pass from the leaves up."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_COMMAS = (",", "،", "、", "，", "﹐", "﹑", "︐", "⸁", "⸴", "⸲", "︑")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_LISTS = {"ul", "ol"}
# Not "#" alone, which is the target of buttons.
_WITHIN = re.compile("#.")
_TEXTUAL = {"span", "li", "td", "blockquote", "dl", "div", "img", "ol", "p", "pre", "table", "ul"}


@dataclass(slots=True)
class ElementMetrics:
    """Counts of characters and elements in the subtree of an element, including the element."""

    characters: int = 0
    """Without white space at the ends of text nodes."""
    linked: float = 0
    """The characters in links; those in links within the page count 30 %."""
    in_headings: int = 0
    in_lists: int = 0
    in_text: int = 0
    """The characters in elements that usually contain text."""
    commas: int = 0
    paragraphs: int = 0
    images: int = 0
    items: int = 0
    inputs: int = 0
    blocks: int = 0
    """The number of block elements."""

    @property
    def link_density(self) -> float:
        """The share of the text that is in links, 0 to 1."""
        return self.linked / self.characters if self.characters else 0.0

    def is_paragraph(self, element: "HtmlElement") -> bool:
        """Return whether `element`, which has these metrics, is a paragraph or a `div` used as one."""
        if element.tag != "div":
            return element.tag == "p"
        is_one = self.blocks <= 1 or (self.blocks == 2 and holds_one_paragraph(element))
        return is_one and self.characters > 0 and self.link_density < 0.25

    def add_text(self, text: str | None) -> None:
        """Add a text node."""
        if text and (stripped := text.strip()):
            self.characters += len(stripped)
            self.commas += count_commas(stripped)

    def add(self, other: "ElementMetrics") -> None:
        """Add the metrics of a child."""
        self.characters += other.characters
        self.linked += other.linked
        self.in_headings += other.in_headings
        self.in_lists += other.in_lists
        self.in_text += other.in_text
        self.commas += other.commas
        self.paragraphs += other.paragraphs
        self.images += other.images
        self.items += other.items
        self.inputs += other.inputs
        self.blocks += other.blocks


_BLOCKS = {
    "address", "article", "aside", "blockquote", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p",
    "pre", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip


def measure_elements(root: "HtmlElement") -> "dict[HtmlElement, ElementMetrics]":
    """Return the metrics of `root` and of each descendant, in document order."""
    measures = {element: ElementMetrics() for element in root.iter()}
    for element in reversed(measures):
        own = measures[element]
        complete_metrics(element, own)
        if element is not root:
            parent = measures[element.getparent()]
            parent.add(own)
            parent.add_text(element.tail)
    return measures


def complete_metrics(element: "HtmlElement", own: ElementMetrics) -> None:
    """Complete `own`, which already includes the children of `element` and the text after them."""
    tag = element.tag
    own.add_text(element.text)
    if tag == "a":
        own.linked = own.characters * (0.3 if _WITHIN.match(element.get("href", "")) else 1)
    elif tag in _HEADINGS:
        own.in_headings = own.characters
    elif tag in _LISTS:
        own.in_lists = own.characters
    if tag in _TEXTUAL:
        own.in_text = own.characters
    own.images += tag == "img"
    own.items += tag == "li"
    own.inputs += tag == "input"
    own.blocks += tag in _BLOCKS
    if not own.paragraphs:
        own.paragraphs = int(own.is_paragraph(element))


def holds_one_paragraph(division: "HtmlElement") -> bool:
    """Return whether `division` contains one `p` and nothing else, so that both are one paragraph."""
    if (division.text or "").strip():
        return False
    found = False
    for child in division:
        if (child.tail or "").strip() or (found and child.tag == "p"):
            return False
        if child.tag == "p":
            found = True
        elif child.tag != "span" or len(child) or child.text:  # an empty span is an element that was pruned
            return False
    return found


def count_commas(text: str | None) -> int:
    """Return the number of commas of any script in `text`: prose has commas, menus do not."""
    if not text:
        return 0
    return text.count(",") if text.isascii() else sum(map(text.count, _COMMAS))


# Longer class names and ids are cut.
_MAX_NAME = 300

_UNLIKELY = re.compile(
    "-ad-|ad-break|adbox|advert|agegate|ai2html|banner|breadcrumb|combx|comment|community|consent|cookie|cover-wrap"
    "|disqus|extra|footer|gdpr|header|legends|menu|newsletter|pager|pagination|popup|related|remark"
    "|replies|rss|shoutbox|sidebar|skyscraper|social|sponsor|supplemental|yom-remote"
)
_MAYBE = re.compile("and|article|body|column|content|main|mathjax|shadow")
_GOOD = re.compile("article|blog|body|content|entry|hentry|h-entry|main|page|pagination|post|story|text")
_BAD = re.compile(
    "-ad-|banner|combx|comment|com-|contact|footer|gdpr|hidden|masthead|media|meta|outbrain|promo|related|scroll"
    r"|share|shoutbox|shopping|sidebar|skyscraper|sponsor|tags|widget|(?:^|\s)hid(?:\s|$)"
)
_CONSENT = re.compile(
    "(?:cookie|consent|privacy)[-_]?(?:bar|banner|box|dialog|message|modal|notice|overlay|popup|prompt|wall)"
    "|gdpr|onetrust|cookiebot|cookieconsent|consent[-_]?modal|didomi|qc-cmp"
)
_ASIDE = re.compile("sidebar|related|most[-_]?(?:read|popular)")
_SHARE = re.compile(r"(?:\b|_)(?:share|sharedaddy|sharing|social)(?:\b|_)")
_BYLINE = re.compile("byline|author|dateline|writtenby|p-author")


def is_unlikely_name(element: "HtmlElement") -> bool:
    """Return whether class and id are typical of menus, banners, comments and the like, not of articles."""
    name = _name(element)
    return bool(name and _UNLIKELY.search(name) and not _MAYBE.search(name))


def is_share_bar(element: "HtmlElement") -> bool:
    """Return whether class and id are those of share buttons."""
    return bool(_SHARE.search(_name(element)))


def is_consent_box(element: "HtmlElement") -> bool:
    """Return whether class and id are those of a cookie consent box."""
    return bool(_CONSENT.search(_name(element)))


def is_aside(element: "HtmlElement") -> bool:
    """Return whether class and id are those of a sidebar or a list of related articles."""
    return bool(_ASIDE.search(_name(element)))


def is_byline(element: "HtmlElement") -> bool:
    """Return whether the element names the author."""
    if element.get("rel") == "author" or "author" in element.get("itemprop", ""):
        return True
    return bool(_BYLINE.search(_name(element)))


def name_score(element: "HtmlElement") -> int:
    """Return -50 to 50:

    25 each for a class and an id that are typical of articles, -25 each for untypical ones.
    """
    total = 0
    for name in (element.get("class", ""), element.get("id", "")):
        lowered = name[:_MAX_NAME].lower()
        if lowered:
            total += 25 * (bool(_GOOD.search(lowered)) - bool(_BAD.search(lowered)))
    return total


def _name(element: "HtmlElement") -> str:
    return f"{element.get('class', '')[:_MAX_NAME]} {element.get('id', '')[:_MAX_NAME]}".strip().lower()
