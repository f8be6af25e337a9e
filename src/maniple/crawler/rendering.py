"""Pages that say nothing until their scripts have run."""

import re
from typing import Protocol

from maniple.crawler.article import Article, Document
from maniple.crawler.media_types import HTML

_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
# What frameworks put a page in, with no more than a line in it.
_EMPTY_ROOT = re.compile(
    rb"""\bid\s{0,9}=\s{0,9}["']?(?:root|app|__next|__nuxt)(?:>|["'\s][^<>]{0,300}>)[^<>]{0,300}<(?:/|script\b)""",
    re.IGNORECASE,
)
_ROOT_WITHIN_BYTES = 200_000
_NOTICE = re.compile(
    r"java\s?script|^\W*loading\b|\bloading\W*$|please wait|just a moment|加载中|正在加载|请稍候|読み込み中",
    re.IGNORECASE,
)
_LONGEST_NOTICE = 200
_LINK = re.compile(r"!?\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
# A page with more prose than this has said something, whatever it says about scripts.
_NEXT_TO_NOTHING_CHARACTERS = 400
_SHORT_CHARACTERS = 10_000


class Render(Protocol):
    """Opens a page in a browser."""

    async def __call__(self, url: str, /) -> Document:
        """The page at `url` as HTML after its scripts ran; raises `ToolFailure` when it cannot be had."""
        ...


def may_need_scripts(document: Document, article: Article | None) -> bool:
    """Whether scripts may have more to say than `article`, which is all that was read, None for nothing."""
    if document.media_type not in HTML or not _SCRIPT.search(document.body):
        return False
    if article is None:
        return True
    said = said_characters(article)
    if said >= _NEXT_TO_NOTHING_CHARACTERS:
        return False
    is_notice = any(_is_notice(line) for line in article.markdown.splitlines())
    return said == 0 or is_notice or bool(_EMPTY_ROOT.search(document.body[:_ROOT_WITHIN_BYTES]))


def said_characters(article: Article) -> int:
    """How much an article says besides its title, its links and that it is loading or wants JavaScript."""
    text = article.markdown
    if len(text) >= _SHORT_CHARACTERS:
        return len(text)
    lines = [_LINK.sub("", line).strip("#*- ") for line in text.splitlines()]
    return sum(len(line) for line in lines if line != article.title and not _is_notice(line))


def _is_notice(line: str) -> bool:
    return len(line) < _LONGEST_NOTICE and bool(_NOTICE.search(line))
