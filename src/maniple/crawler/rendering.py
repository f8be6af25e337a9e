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
    if article is not None and not _says_nothing(article):
        return False
    return document.media_type in HTML and bool(_SCRIPT.search(document.body))


def _says_nothing(article: Article) -> bool:
    text = article.markdown
    if len(text) >= _NEXT_TO_NOTHING_CHARACTERS:
        return False
    return text == article.title or bool(_WANTS_SCRIPT.search(text))
