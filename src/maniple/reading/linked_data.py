"""What a page says of itself in JSON-LD, for search engines: at times all of an article."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maniple.text import whole

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MOST_SCRIPTS = 20
_MOST_ITEMS = 100


def article_body(page: "HtmlElement") -> str:
    """The longest `articleBody` (schema.org) of `page`, as text; "" for none."""
    scripts = page.xpath(f"(//script[@type='application/ld+json'])[position() <= {_MOST_SCRIPTS}]")
    bodies = (body for script in scripts for body in _bodies(script.text or ""))
    return max(bodies, key=len, default="")


def _bodies(script: str) -> Iterator[str]:
    if '"articleBody"' not in script:
        return
    try:
        found = json.loads(script, strict=False)
    except (ValueError, RecursionError):
        return
    for item in _items(found):
        if isinstance(item, dict) and isinstance(body := item.get("articleBody"), str):
            yield whole(body.strip())


def _items(found: Any) -> list[Any]:
    if isinstance(found, dict) and isinstance(graph := found.get("@graph"), list):
        return graph[:_MOST_ITEMS]
    return found[:_MOST_ITEMS] if isinstance(found, list) else [found]
