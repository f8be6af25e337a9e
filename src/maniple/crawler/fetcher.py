"""Getting a page without reaching anything that is not public."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

import httpx
from cachetools import LRUCache

from maniple.config.web_settings import FetchSettings
from maniple.crawler.document import HTML, FetchedDocument, require_readable, sniff_media_type
from maniple.crawler.http_client import (
    ACCEPTED_ENCODINGS,
    GuardedTransport,
    broken_redirect_error,
    read_body,
    status_error,
    too_many_redirects_error,
    user_agent,
)
from maniple.crawler.robots import RobotsRules
from maniple.egress import AddressGuard, PermanentFetchError, translate_fetch_error
from maniple.errors import FetchError
from maniple.reading.encoding import decode_text
from maniple.reading.html import find_base_url, parse_html, resolve_url
from maniple.retry_after import retry_after_seconds

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1",
    "accept-encoding": ACCEPTED_ENCODINGS,
    "accept-language": "*",
}


@dataclass(frozen=True, slots=True)
class MarkupRedirects:
    """Absolute addresses, of any scheme: whoever follows them checks them as any other."""

    refresh: str | None = None
    frames: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A document and the headers of a request that asks whether it has changed."""

    document: FetchedDocument
    validators: Mapping[str, str]


class PageCache:
    """The pages used last, up to a number of bytes.

    Nothing is given out without a request: each use is checked by the guard and answered by the site, so
    that a kept page is no way around either. A page that depends on a cookie is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[str, CachedPage] = LRUCache(max_bytes, _size)

    def question(self, request: httpx.Request) -> CachedPage | None:
        """Make `request` ask whether the page has changed; what is kept of it, to be used if it has not."""
        for name in _VALIDATORS:
            request.headers.pop(name, None)  # of the page that redirected here
        page = None if "cookie" in request.headers else self._kept.get(_key(request))
        request.headers.update(page.validators if page else {})
        return page

    def keep(self, request: httpx.Request, response: httpx.Response, document: FetchedDocument) -> None:
        """Keep `document` if its site says how to ask for changes, and nothing against it."""
        headers = response.headers
        forbidden = "no-store" in headers.get("cache-control", "").lower() or "*" in headers.get("vary", "")
        page = CachedPage(document, _validators(headers))
        if forbidden or "cookie" in request.headers or not page.validators:
            self._kept.pop(_key(request), None)
        elif _size(page) <= self._kept.maxsize:
            self._kept[_key(request)] = page


@dataclass(frozen=True, slots=True)
class FetchContext:
    """What every visit goes by."""

    robots: RobotsRules | None
    """None: they are not asked."""
    pages: PageCache
    max_bytes: int
    max_redirects: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Fetcher:
    """GETs http and https pages; addresses, redirects, time, size and type are all bounded.

    Between two fetches nothing is kept but pages that their sites confirm, and what their robots.txt say:
    no cookie, no connection.
    """

    def __init__(
        self,
        settings: FetchSettings,
        guard: AddressGuard,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._tls: ssl.SSLContext | None = None
        self._headers: dict[str, str] = {}
        robots = RobotsRules(self._client) if settings.robots else None
        pages = PageCache(settings.cache_bytes)
        self._ways = FetchContext(robots, pages, settings.max_bytes, settings.max_redirects, sleep)

    async def fetch(self, url: str) -> FetchedDocument:
        """The page at `url`, redirects followed.

        Raises:
            FetchError: the address is not a public web page, or no readable answer came in time.
        """
        require_web_address(url)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._prepare()
                async with self._client() as client:
                    return await PageVisit(client, self._ways).document(url)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            raise translate_fetch_error(url, error) from error

    async def require_allowed(self, url: str) -> None:
        """Return unless the site is known to close `url` to programs; for those who let others fetch it.

        Raises:
            PermanentFetchError: it does.
        """
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._prepare()
                if self._ways.robots is not None:
                    await self._ways.robots.require_allowed(require_web_address(url))
        except PermanentFetchError:
            raise
        except (FetchError, httpx.HTTPError, TimeoutError):
            return  # Whoever fetches it may get through, and forbidden it is not.

    async def _prepare(self) -> None:
        if self._tls is None:
            name = await asyncio.to_thread(user_agent, self._settings.contact)
            self._headers = {"user-agent": name, **_HEADERS}
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)

    def _client(self) -> httpx.AsyncClient:
        assert self._tls is not None, "_prepare comes first"
        return httpx.AsyncClient(
            transport=GuardedTransport(self._guard, self._tls),
            headers=self._headers,
            timeout=self._settings.timeout_seconds,
            max_redirects=self._settings.max_redirects,
            # A proxy or a password that the environment names would be used past the check.
            trust_env=False,
        )


class PageVisit:
    """Gets one page; cookies, redirects and patience end with it.

    `client` follows no redirect by itself and connects to checked addresses only.
    """

    def __init__(self, client: httpx.AsyncClient, ways: FetchContext) -> None:
        self._client = client
        self._ways = ways
        self._redirects_left = ways.max_redirects
        self._may_wait = True

    async def document(self, url: str) -> FetchedDocument:
        """The page to which `url` leads, with its frames.

        Raises:
            FetchError: the way is closed, too long or ends at something that cannot be read.
            httpx.HTTPError, httpx.InvalidURL, UnicodeError: there is no answer.
        """
        document = await self._answer(url)
        leads = await asyncio.to_thread(find_markup_redirects, document)
        while leads.refresh is not None:
            self._count_redirect(url)
            document = await self._answer(leads.refresh)
            leads = await asyncio.to_thread(find_markup_redirects, document)
        return replace(document, frames=tuple(await self._frames(leads.frames)))

    async def _frames(self, urls: Sequence[str]) -> list[FetchedDocument]:
        """The frames that can be had, one after the other, no larger together than one page."""
        frames: list[FetchedDocument] = []
        missed: FetchError | None = None
        for url in urls:
            try:
                frame = await self._answer(url)
            except FetchError as error:
                missed = error
            except httpx.HTTPError as error:
                missed = translate_fetch_error(url, error)
            else:
                frames.append(frame)
            if sum(len(one.body) for one in frames) > self._ways.max_bytes:
                frames.pop()
                break
        if not frames and missed:
            raise missed
        return frames

    async def _answer(self, url: str) -> FetchedDocument:
        require_web_address(url)
        answer = await self._ask(self._client.build_request("GET", url))
        while isinstance(answer, httpx.Request):
            self._count_redirect(url)
            require_web_address(str(answer.url))
            answer = await self._ask(answer)
        return answer

    async def _ask(self, request: httpx.Request) -> FetchedDocument | httpx.Request:
        """What is answered: a page, or the request that a redirect wants to be made instead."""
        url = str(request.url)
        if self._ways.robots is not None:
            await self._ways.robots.require_allowed(request.url)
        while True:
            kept = self._ways.pages.question(request)
            response = await self._sent(request)
            try:
                if response.next_request is not None:
                    return _redirected(response, response.next_request)
                if response.status_code == 304 and kept is not None:
                    return kept.document
                if response.status_code == 200:
                    document = await self._read(response, url)
                    self._ways.pages.keep(request, response, document)
                    return document
            finally:
                await response.aclose()
            await self._wait_or_refuse(response, url)

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._client.send(request, stream=True)
        except httpx.RemoteProtocolError as error:
            if _BROKEN_LOCATION not in str(error):
                raise
            raise broken_redirect_error(
                str(request.url), str(error).partition(_BROKEN_LOCATION)[2]
            ) from error

    async def _read(self, response: httpx.Response, url: str) -> FetchedDocument:
        declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        require_readable(url, declared)
        body = await read_body(response, url, self._ways.max_bytes)
        return FetchedDocument(url, sniff_media_type(url, declared, body), response.charset_encoding, body)

    async def _wait_or_refuse(self, response: httpx.Response, url: str) -> None:
        """Wait once for a site that names a short time; else say what it answered."""
        status = response.status_code
        seconds = retry_after_seconds(response.headers) if status in _NOT_NOW else None
        if seconds is None or seconds > _WAITED_SECONDS or not self._may_wait:
            raise status_error(url, status, seconds)
        self._may_wait = False
        await self._ways.sleep(seconds)

    def _count_redirect(self, url: str) -> None:
        if self._redirects_left == 0:
            raise too_many_redirects_error(url)
        self._redirects_left -= 1


_WAITED_SECONDS = 10.0
_NOT_NOW = (429, 503)
# How httpx begins its words about a redirect.
_BROKEN_LOCATION = "Invalid URL in location header: "


def _redirected(response: httpx.Response, wanted: httpx.Request) -> httpx.Request:
    if "%" in wanted.url.host:  # so httpx writes what no host name contains
        raise broken_redirect_error(str(response.url), response.headers["location"])
    return wanted


def require_web_address(url: str) -> httpx.URL:
    """`url` taken apart.

    Raises:
        PermanentFetchError: it is not an http or https address of a host, or it carries a user name.
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise translate_fetch_error(url, error) from error
    if parts.scheme not in ("http", "https"):
        raise PermanentFetchError(f"{url} is not a web address; it must start with http:// or https://.")
    if not parts.host:
        raise PermanentFetchError(f"{url} names no host; write the whole address.")
    if parts.userinfo:
        raise PermanentFetchError(
            f"{parts.host}: an address with a user name in it is not fetched; leave it out."
        )
    return parts


_MAX_FRAMES = 6
_LOOKED_AT_BYTES = 64_000
_LEADS = re.compile(rb"http-equiv|<frameset", re.IGNORECASE)
_REFRESH = re.compile(r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.IGNORECASE)
_LONGEST_REFRESH = 4_000
# A page that renews itself later is read as it is.
_MAX_DELAY_SECONDS = 5


def find_markup_redirects(document: FetchedDocument) -> MarkupRedirects:
    """The leads at the beginning of `document`, where HTML wants them; blocks for milliseconds."""
    head = document.body[:_LOOKED_AT_BYTES]
    if document.media_type not in HTML or not _LEADS.search(head):
        return MarkupRedirects()
    page = parse_html(decode_text(head, document.charset))
    base = find_base_url(page, document.url)
    return MarkupRedirects(_refresh(page, document.url, base), tuple(_frames(page, base)))


def _refresh(page: "HtmlElement", url: str, base: str) -> str | None:
    kind = "translate(normalize-space(@http-equiv), 'REFSH', 'refsh')"
    for meta in page.xpath(f"//meta[{kind}='refresh'][not(ancestor::noscript)]")[:1]:
        match = _REFRESH.match(meta.get("content", "")[:_LONGEST_REFRESH])
        if match is None or not match[2].strip() or int(match[1] or 0) > _MAX_DELAY_SECONDS:
            return None
        target = resolve_url(base, match[2])
        return None if target is None or urldefrag(target)[0] == urldefrag(url)[0] else target
    return None


def _frames(page: "HtmlElement", base: str) -> list[str]:
    if page.find(".//frameset") is None:
        return []
    frames = islice((frame for frame in page.iter("frame") if "src" in frame.attrib), _MAX_FRAMES)
    return [target for frame in frames if (target := resolve_url(base, frame.attrib["src"]))]


_OVERHEAD_BYTES = 1_000
_VALIDATORS = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}


def _size(page: CachedPage) -> int:
    return len(page.document.body) + _OVERHEAD_BYTES


def _key(request: httpx.Request) -> str:
    return str(request.url.copy_with(fragment=None))


def _validators(headers: httpx.Headers) -> dict[str, str]:
    return {name: headers[source] for name, source in _VALIDATORS.items() if headers.get(source)}
