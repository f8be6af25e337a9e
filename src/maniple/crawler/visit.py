"""One way to a page: the redirects on it, of every kind, and what is waited for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import httpx

from maniple.crawler.article import Document
from maniple.crawler.body import read_body
from maniple.crawler.failures import broken_redirect, status_error, too_many_redirects
from maniple.crawler.leads import leads_of
from maniple.crawler.media_types import require_readable, sniffed
from maniple.crawler.pages import Pages
from maniple.crawler.robots import Robots
from maniple.egress import PermanentFetchError, translate_fetch_error
from maniple.errors import FetchError
from maniple.retry_after import retry_after_seconds

_WAITED_SECONDS = 10.0
_NOT_NOW = (429, 503)
# How httpx begins its words about a redirect.
_BROKEN_LOCATION = "Invalid URL in location header: "


@dataclass(frozen=True, slots=True)
class Ways:
    """What every visit goes by."""

    robots: Robots | None
    """None: they are not asked."""
    pages: Pages
    max_bytes: int
    max_redirects: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Visit:
    """Gets one page; cookies, redirects and patience end with it.

    `client` follows no redirect by itself and connects to checked addresses only.
    """

    def __init__(self, client: httpx.AsyncClient, ways: Ways) -> None:
        self._client = client
        self._ways = ways
        self._redirects_left = ways.max_redirects
        self._may_wait = True

    async def document(self, url: str) -> Document:
        """The page to which `url` leads, with its frames.

        Raises:
            FetchError: the way is closed, too long or ends at something that cannot be read.
            httpx.HTTPError, httpx.InvalidURL, UnicodeError: there is no answer.
        """
        document = await self._answer(url)
        leads = await asyncio.to_thread(leads_of, document)
        while leads.refresh is not None:
            self._count_redirect(url)
            document = await self._answer(leads.refresh)
            leads = await asyncio.to_thread(leads_of, document)
        return replace(document, frames=tuple(await self._frames(leads.frames)))

    async def _frames(self, urls: Sequence[str]) -> list[Document]:
        """The frames that can be had, one after the other, no larger together than one page."""
        frames: list[Document] = []
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

    async def _answer(self, url: str) -> Document:
        require_web_address(url)
        answer = await self._ask(self._client.build_request("GET", url))
        while isinstance(answer, httpx.Request):
            self._count_redirect(url)
            require_web_address(str(answer.url))
            answer = await self._ask(answer)
        return answer

    async def _ask(self, request: httpx.Request) -> Document | httpx.Request:
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
            raise broken_redirect(str(request.url), str(error).partition(_BROKEN_LOCATION)[2]) from error

    async def _read(self, response: httpx.Response, url: str) -> Document:
        declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        require_readable(url, declared)
        body = await read_body(response, url, self._ways.max_bytes)
        return Document(url, sniffed(url, declared, body), response.charset_encoding, body)

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
            raise too_many_redirects(url)
        self._redirects_left -= 1


def _redirected(response: httpx.Response, wanted: httpx.Request) -> httpx.Request:
    if "%" in wanted.url.host:  # so httpx writes what no host name contains
        raise broken_redirect(str(response.url), response.headers["location"])
    return wanted


def require_web_address(url: str) -> httpx.URL:
    """`url` taken apart.

    Raises:
        FinalError: it is not an http or https address of a host, or it carries a user name.
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
        raise PermanentFetchError(f"{parts.host}: an address with a user name is not fetched; leave it out.")
    return parts
