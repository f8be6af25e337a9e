"""What the class and id of an element tell about what is in it.

The words are those that pages have in common; they go back to arc90's Readability, which taught the web to be
read this way.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# A name of thousands of characters is no name.
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


def is_unlikely(element: "HtmlElement") -> bool:
    """Whether the name is that of a menu, a banner, comments and the like, and no article's."""
    name = _name(element)
    return bool(name and _UNLIKELY.search(name) and not _MAYBE.search(name))


def is_share(element: "HtmlElement") -> bool:
    """Whether the name is that of buttons to share the page."""
    return bool(_SHARE.search(_name(element)))


def is_consent(element: "HtmlElement") -> bool:
    """Whether the name is that of a box that asks to agree to cookies."""
    return bool(_CONSENT.search(_name(element)))


def is_aside(element: "HtmlElement") -> bool:
    """Whether the name is that of what stands beside an article and leads to others."""
    return bool(_ASIDE.search(_name(element)))


def is_byline(element: "HtmlElement") -> bool:
    """Whether the element says who wrote it."""
    if element.get("rel") == "author" or "author" in element.get("itemprop", ""):
        return True
    return bool(_BYLINE.search(_name(element)))


def weight(element: "HtmlElement") -> int:
    """-50 to 50: 25 for a class that articles have, as much for such an id, -25 for what they have not."""
    total = 0
    for name in (element.get("class", ""), element.get("id", "")):
        lowered = name[:_MAX_NAME].lower()
        if lowered:
            total += 25 * (bool(_GOOD.search(lowered)) - bool(_BAD.search(lowered)))
    return total


def _name(element: "HtmlElement") -> str:
    return f"{element.get('class', '')[:_MAX_NAME]} {element.get('id', '')[:_MAX_NAME]}".strip().lower()
