"""Fetching pages from public addresses only."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from maniple.crawler.pace import CrawlPace
from maniple.crawler.page_frames import MAX_FRAME_DEPTH, DocumentFrames, find_document_frames
from maniple.crawler.robots import RobotsRules
from maniple.egress import AddressGuard, PermanentFetchError, translate_fetch_error
from maniple.egress.certificates import tls_context
from maniple.errors import FetchError
from maniple.reading import MAX_DOCUMENT_BYTES
from maniple.reading.encoding import decode_text
from maniple.reading.formats import is_binary_document
from maniple.reading.html import find_base_url, parse_html, resolve_url
from maniple.reading.loaders import DocumentLoaders
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
    """The redirects in a page's markup, as absolute addresses of any scheme; they are not checked yet."""

    refresh: str | None = None
    frames: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A document and the headers of a conditional request for it."""

    document: FetchedDocument
    validators: Mapping[str, str]


class PageCache:
    """The most recently used pages, up to a number of bytes.

    Each use of a cached page needs a conditional request, so that address checks and the site's answer still
    apply. Pages that depend on a cookie are not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._cache: LRUCache[str, CachedPage] = LRUCache(max_bytes, _size)

    def make_conditional(self, request: httpx.Request) -> CachedPage | None:
        """Make `request` conditional; return the cached page, which is used if the page has not changed."""
        for name in _VALIDATORS:
            request.headers.pop(name, None)  # the validators of the page that redirected here
        page = None if "cookie" in request.headers else self._cache.get(_key(request))
        request.headers.update(page.validators if page else {})
        return page

    def store(self, request: httpx.Request, response: httpx.Response, document: FetchedDocument) -> None:
        """Cache `document` if its response has validators and does not forbid caching."""
        headers = response.headers
        forbidden = "no-store" in headers.get("cache-control", "").lower() or "*" in headers.get("vary", "")
        page = CachedPage(document, _validators(headers))
        if forbidden or "cookie" in request.headers or not page.validators:
            self._cache.pop(_key(request), None)
        elif _size(page) <= self._cache.maxsize:
            self._cache[_key(request)] = page


@dataclass(frozen=True, slots=True)
class FetchContext:
    """What all visits share: rules, cache and limits."""

    robots: RobotsRules | None
    """None: robots.txt is ignored."""
    pages: PageCache
    max_bytes: int
    max_redirects: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    loaders: DocumentLoaders = field(default_factory=DocumentLoaders)
    """What they read is fetched whatever its type is."""
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    pace: CrawlPace = field(default_factory=CrawlPace)


class Fetcher:
    """Fetches http and https pages, with limits for addresses, redirects, time, size and type.

    Between fetches, only cached pages and robots.txt rules are retained, no cookies and no connections.
    """

    def __init__(
        self,
        settings: FetchSettings,
        guard: AddressGuard,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        loaders: DocumentLoaders | None = None,
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._tls: ssl.SSLContext | None = None
        self._headers: dict[str, str] = {}
        robots = RobotsRules(self._client) if settings.robots else None
        pages = PageCache(settings.cache_bytes)
        self._context = FetchContext(
            robots,
            pages,
            settings.max_bytes,
            settings.max_redirects,
            sleep,
            loaders or DocumentLoaders(),
            settings.max_document_bytes,
            CrawlPace(sleep=sleep),
        )

    async def fetch(self, url: str) -> FetchedDocument:
        """Return the page at `url`, after redirects.

        Raises:
            FetchError: the address is not a public web page, or there was no readable response in time.
        """
        require_web_address(url)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds) as limit:
                await self._prepare()
                async with self._client() as client:
                    return await PageVisit(client, self._context, limit).document(url)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            raise translate_fetch_error(url, error) from error

    async def require_allowed(self, url: str) -> None:
        """Check robots.txt for `url`, for callers that let another service fetch it.

        Raises:
            PermanentFetchError: the site forbids it.
        """
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._prepare()
                if self._context.robots is not None:
                    await self._context.robots.require_allowed(require_web_address(url))
        except PermanentFetchError:
            raise
        except (FetchError, httpx.HTTPError, TimeoutError):
            return  # robots.txt is unavailable, which does not forbid a fetch by another service

    async def _prepare(self) -> None:
        if self._tls is None:
            name = await asyncio.to_thread(user_agent, self._settings.contact)
            self._headers = {"user-agent": name, **_HEADERS}
            self._tls = await asyncio.to_thread(tls_context)

    def _client(self) -> httpx.AsyncClient:
        assert self._tls is not None, "_prepare comes first"
        return httpx.AsyncClient(
            transport=GuardedTransport(self._guard, self._tls),
            headers=self._headers,
            timeout=self._settings.timeout_seconds,
            max_redirects=self._settings.max_redirects,
            # The transport uses the environment's proxies itself, with the address check.
            trust_env=False,
        )


class PageVisit:
    """Fetches one page; cookies and the counts of redirects and waits belong to the visit.

    `client` follows no redirects by itself and connects only to checked addresses. `limit` is extended by the
    waits that robots.txt asks for.
    """

    def __init__(self, client: httpx.AsyncClient, context: FetchContext, limit: asyncio.Timeout) -> None:
        self._client = client
        self._context = context
        self._redirects_left = context.max_redirects
        self._may_wait = True
        self._limit = limit
        self._paced_seconds = 0.0
        self._notes: list[str] = []

    async def document(self, url: str) -> FetchedDocument:
        """Return the page to which `url` leads, with its frames.

        Raises:
            FetchError: an address is refused, there are too many redirects, or the page cannot be read.
            httpx.HTTPError, httpx.InvalidURL, UnicodeError: there is no response.
        """
        document = await self._follow_redirects(url)
        redirects = await asyncio.to_thread(find_markup_redirects, document)
        while redirects.refresh is not None:
            self._count_redirect(url)
            document = await self._follow_redirects(redirects.refresh)
            redirects = await asyncio.to_thread(find_markup_redirects, document)
        if redirects.frames:
            document = replace(document, frames=tuple(await self._frames(redirects.frames)))
        else:
            document = await self._find_shown(document)
        return replace(document, note=" ".join(filter(None, (*self._notes, self._describe_wait()))))

    async def _find_shown(self, document: FetchedDocument) -> FetchedDocument:
        """Return the document that `document` shows in a frame, with its own address, or `document`."""
        for _ in range(MAX_FRAME_DEPTH):
            found = await asyncio.to_thread(find_document_frames, document)
            shown = await self._fetch_shown(document, found) if found else []
            if len(shown) > 1:
                return replace(document, frames=tuple(shown))
            if not shown:
                break
            self._notes.append(f"{document.url} shows this document in a frame.")
            document = shown[0]
        return document

    async def _fetch_shown(self, document: FetchedDocument, found: DocumentFrames) -> list[FetchedDocument]:
        inline = [FetchedDocument(document.url, "text/html", "utf-8", one.encode()) for one in found.inline]
        try:
            fetched = await self._frames(found.addresses)
        except FetchError as error:
            self._notes.append(f"A frame of the page could not be read: {error}")
            fetched = []
        return await asyncio.to_thread(found.select, [*inline, *fetched])

    async def _frames(self, urls: Sequence[str]) -> list[FetchedDocument]:
        """Return the frames that can be fetched, together not larger than `max_bytes`."""
        frames: list[FetchedDocument] = []
        missed: FetchError | None = None
        unread = 0
        for url in urls:
            try:
                frame = await self._follow_redirects(url)
            except (FetchError, httpx.HTTPError) as error:
                missed = error if isinstance(error, FetchError) else translate_fetch_error(url, error)
                unread += 1
            else:
                frames.append(frame)
            if sum(len(one.body) for one in frames) > self._context.max_bytes:
                frames.pop()
                unread = len(urls) - len(frames)
                break
        if not frames and missed:
            raise missed
        if unread:
            self._notes.append(f"{unread} of {len(urls)} frames of the page could not be read.")
        return frames

    async def _follow_redirects(self, url: str) -> FetchedDocument:
        require_web_address(url)
        answer = await self._send_request(self._client.build_request("GET", url))
        while isinstance(answer, httpx.Request):
            self._count_redirect(url)
            require_web_address(str(answer.url))
            answer = await self._send_request(answer)
        return answer

    async def _send_request(self, request: httpx.Request) -> FetchedDocument | httpx.Request:
        """Return the page, or the request that a redirect leads to."""
        url = str(request.url)
        if self._context.robots is not None:
            await self._wait_turn(request.url, await self._context.robots.require_allowed(request.url))
        while True:
            cached = self._context.pages.make_conditional(request)
            response = await self._send(request)
            try:
                if response.next_request is not None:
                    return _check_redirect(response, response.next_request)
                if response.status_code == 304 and cached is not None:
                    return cached.document
                if response.status_code == 200:
                    document = await self._read(response, url)
                    self._context.pages.store(request, response, document)
                    return document
            finally:
                await response.aclose()
            await self._wait_or_refuse(response, url)

    async def _wait_turn(self, url: httpx.URL, delay_seconds: float) -> None:
        self._paced_seconds += await self._context.pace.wait_turn(url, delay_seconds, self._extend)

    def _extend(self, seconds: float) -> None:
        if (deadline := self._limit.when()) is not None:
            self._limit.reschedule(deadline + seconds)

    def _describe_wait(self) -> str:
        if self._paced_seconds < 1:
            return ""
        return f"Read {self._paced_seconds:.0f} s later, because robots.txt asks for pauses between requests."

    async def _send(self, request: httpx.Request) -> httpx.Response:
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
        is_loaded = self._context.loaders.find(url, declared) is not None
        if not is_loaded:
            require_readable(url, declared)
        is_document = is_binary_document(declared, url)
        limit = self._context.max_document_bytes if is_document else self._context.max_bytes
        body = await read_body(response, url, max(limit, self._context.max_bytes))
        media_type = declared if is_loaded else sniff_media_type(url, declared, body)
        return FetchedDocument(url, media_type, response.charset_encoding, body)

    async def _wait_or_refuse(self, response: httpx.Response, url: str) -> None:
        """Wait once if the site requests a short wait; else raise the error of the response."""
        status = response.status_code
        seconds = retry_after_seconds(response.headers) if status in _RETRYABLE_STATUSES else None
        if seconds is None or seconds > _MAX_WAIT_SECONDS or not self._may_wait:
            raise status_error(url, status, seconds)
        self._may_wait = False
        await self._context.sleep(seconds)

    def _count_redirect(self, url: str) -> None:
        if self._redirects_left == 0:
            raise too_many_redirects_error(url)
        self._redirects_left -= 1


_MAX_WAIT_SECONDS = 10.0
_RETRYABLE_STATUSES = (429, 503)
# The beginning of httpx's message about an invalid redirect.
_BROKEN_LOCATION = "Invalid URL in location header: "


def _check_redirect(response: httpx.Response, wanted: httpx.Request) -> httpx.Request:
    if "%" in wanted.url.host:  # httpx escapes characters that a host name cannot contain
        raise broken_redirect_error(str(response.url), response.headers["location"])
    return wanted


def require_web_address(url: str) -> httpx.URL:
    """Return the parsed `url`.

    Raises:
        PermanentFetchError: it is not an http or https address of a host, or it contains a user name.
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise translate_fetch_error(url, error) from error
    if parts.scheme not in ("http", "https"):
        raise PermanentFetchError(f"{url} is not a web address; it must start with http:// or https://.")
    if not parts.host:
        raise PermanentFetchError(f"{url} has no host; use the full address.")
    if parts.userinfo:
        raise PermanentFetchError(f"{parts.host}: addresses with a user name are not fetched; remove it.")
    return parts


_MAX_FRAMES = 6
_LOOKED_AT_BYTES = 64_000
_REDIRECT_MARKUP = re.compile(rb"http-equiv|<frameset", re.IGNORECASE)
_REFRESH = re.compile(r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.IGNORECASE)
_MAX_REFRESH_LENGTH = 4_000
# A page that refreshes itself later is read without following the refresh.
_MAX_DELAY_SECONDS = 5


def find_markup_redirects(document: FetchedDocument) -> MarkupRedirects:
    """Return the redirects in the head of an HTML document; blocks for milliseconds."""
    head = document.body[:_LOOKED_AT_BYTES]
    if document.media_type not in HTML or not _REDIRECT_MARKUP.search(head):
        return MarkupRedirects()
    page = parse_html(decode_text(head, document.charset))
    base = find_base_url(page, document.url)
    return MarkupRedirects(_refresh(page, document.url, base), tuple(_frames(page, base)))


def _refresh(page: "HtmlElement", url: str, base: str) -> str | None:
    kind = "translate(normalize-space(@http-equiv), 'REFSH', 'refsh')"
    for meta in page.xpath(f"//meta[{kind}='refresh'][not(ancestor::noscript)]")[:1]:
        match = _REFRESH.match(meta.get("content", "")[:_MAX_REFRESH_LENGTH])
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
