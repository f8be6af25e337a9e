"""Pages that say nothing until their scripts have run."""

import re
from typing import Protocol

from maniple.crawler.article import Article, Document
from maniple.crawler.media_types import HTML

_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
_WANTS_SCRIPT = re.compile(r"java\s?script", re.IGNORECASE)
# A page with more text than this has said something, whatever it says about scripts.
_NEXT_TO_NOTHING_CHARACTERS = 400


class Render(Protocol):
    """Opens a page in a browser."""

    async def __call__(self, url: str, /) -> Document:
        """The page at `url` as HTML after its scripts ran; raises `ToolFailure` when it cannot be had."""
        ...


def may_need_scripts(document: Document, article: Article | None) -> bool:
    """Whether scripts may have more to say than `article`, which is all that was read, None for nothing."""
    if document.media_type not in HTML or not _SCRIPT.search(document.body):
        return False
    if article is None or article.markdown == article.title:
        return True
    text = article.markdown
    return len(text) < _NEXT_TO_NOTHING_CHARACTERS and bool(_WANTS_SCRIPT.search(text))
