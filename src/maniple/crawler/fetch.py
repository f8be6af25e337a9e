"""Getting a page without reaching anything that is not public."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import httpx

from maniple.config.fetch_settings import FetchSettings
from maniple.crawler.agent import agent_name
from maniple.crawler.article import Document
from maniple.crawler.body import ENCODINGS
from maniple.crawler.pages import Pages
from maniple.crawler.robots import Robots
from maniple.crawler.transport import GuardedTransport
from maniple.crawler.visit import Visit, Ways, require_web_address
from maniple.egress import AddressGuard, PermanentFetchError, translate_fetch_error
from maniple.errors import FetchError

_HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1",
    "accept-encoding": ENCODINGS,
    "accept-language": "*",
}


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
        robots = Robots(self._client) if settings.robots else None
        pages = Pages(settings.cache_bytes)
        self._ways = Ways(robots, pages, settings.max_bytes, settings.max_redirects, sleep)

    async def fetch(self, url: str) -> Document:
        """The page at `url`, redirects followed.

        Raises:
            FetchError: the address is not a public web page, or no readable answer came in time.
        """
        require_web_address(url)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._prepare()
                async with self._client() as client:
                    return await Visit(client, self._ways).document(url)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            raise translate_fetch_error(url, error) from error

    async def require_allowed(self, url: str) -> None:
        """Return unless the site is known to close `url` to programs; for those who let others fetch it.

        Raises:
            FinalError: it does.
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
            name = await asyncio.to_thread(agent_name, self._settings.contact)
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
