"""The comparison of a short page with what its site shows for an address that cannot exist.

A site that shows a login form, a consent dialog, a challenge or a "not found" for every address shows it
for such an address, too. The comparison needs no words of any language.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from weakref import WeakValueDictionary

from cachetools import TTLCache

from maniple.crawler.article import Article
from maniple.errors import FetchError

_MAX_SITES = 2_000
_CACHE_SECONDS = 600.0
_MAX_CHARACTERS = 1_500
"""A page with more text is not compared; an ideograph counts as three characters."""
_MAX_WORDS = 3_000
_OWN_SHARE = 20
"""Of so many words of the page, one may be missing in the other page."""
_OTHER_SHARE = 10
"""For so many words of the page, the other page may have one of its own."""
_FRONT = re.compile(
    r"(?:/[a-z]{2}(?:[-_][a-z]{2})?)?/?(?:(?:index|default|home|main|start)(?:\.\w{1,5})?/?)?", re.I
)
_SUFFIX = re.compile(r"\.[a-z]\w{1,4}$", re.IGNORECASE)
_TARGET = re.compile(r"\]\([^()]{0,2000}\)")
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af]|[^\W_]+")
"""A letter of a script without blanks between words is a word."""
_IDEOGRAPH = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
_log = logging.getLogger(__name__)

ReadPage = Callable[[str], Awaitable[Article]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a site shows for an address that cannot exist."""

    words: Counter[str]
    was_redirected: bool


class SiteProbe:
    """Asks sites for an address that cannot exist: once in ten minutes for each site and kind of page.

    `read` fetches and reads a page as any other: the address, robots.txt and the pace are checked.
    """

    def __init__(self, read: ReadPage, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._answers: TTLCache[str, _Answer | None] = TTLCache(_MAX_SITES, _CACHE_SECONDS, clock)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def is_catch_all(self, url: str, article: Article) -> bool:
        """Return whether `article`, read from `url`, is what its site shows for any address.

        False if the page is the front page, is long or has a date or an author, or the site cannot be asked.
        """
        if not _is_doubtful(url, article):
            return False
        answer = await self._ask(url)
        if answer is None:
            return False
        if answer.was_redirected and not _is_elsewhere(url, article.url):
            return False  # the page to which the site sends others, at its own address
        return _are_same(_count_words(article, url), answer.words)

    async def _ask(self, url: str) -> _Answer | None:
        address, key = _impossible_address(url)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            if key not in self._answers:
                self._answers[key] = await self._request(address)
            return self._answers.get(key)

    async def _request(self, address: str) -> _Answer | None:
        try:
            article = await self._read(address)
        except FetchError as error:
            _log.debug("The site does not show a page for any address: %s", error)
            return None
        return _Answer(_count_words(article, address), _is_elsewhere(address, article.url))


def _is_doubtful(url: str, article: Article) -> bool:
    if (
        not article.is_source
        or article.sections
        or article.publication.published
        or article.publication.author
    ):
        return False
    path = urlsplit(url).path
    if _FRONT.fullmatch(path):
        return False
    text = _TARGET.sub("", article.markdown[: 10 * _MAX_CHARACTERS])
    return len(text) + 2 * len(_IDEOGRAPH.findall(text)) < _MAX_CHARACTERS


def _impossible_address(url: str) -> tuple[str, str]:
    """Return an address in the folder of `url` that cannot exist, and the key of its kind of page."""
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    suffix = match[0] if (match := _SUFFIX.search(name)) else ""
    first = folder.split("/", 2)[1] if folder.count("/") else ""
    digest = hashlib.sha256(f"{parts.netloc}{folder}".encode("utf-8", "replace")).hexdigest()[:24]
    path = f"{folder}/{digest}{suffix}"
    return urlunsplit(
        (parts.scheme, parts.netloc, path, "", "")
    ), f"{parts.scheme}://{parts.netloc}/{first}{suffix}"


def _is_elsewhere(asked: str, shown: str) -> bool:
    """Whether a request was redirected to another host or path."""
    return _place(asked) != _place(shown)


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    return host, quote(unquote(parts.path)).rstrip("/")


def _count_words(article: Article, url: str) -> Counter[str]:
    """Return the words of an article, without numbers, codes and the words of its address."""
    own = set(_WORD.findall(unquote(url).casefold()))
    text = f"{article.title}\n{_TARGET.sub(']', article.markdown[: 20 * _MAX_WORDS])}".casefold()
    words = _WORD.findall(text)[:_MAX_WORDS]
    return Counter(one for one in words if one not in own and not any(map(str.isdigit, one)))


def _are_same(page: Counter[str], other: Counter[str]) -> bool:
    total = page.total()
    own, missing = (page - other).total(), (other - page).total()
    return total > 0 and own <= total // _OWN_SHARE and missing <= total // _OTHER_SHARE
