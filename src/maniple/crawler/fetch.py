"""Getting a page without reaching anything that is not public."""

import asyncio
import ssl
import zlib

import httpx

from maniple.config.settings import FetchSettings
from maniple.crawler.article import Document
from maniple.crawler.failures import fetch_error, status_error
from maniple.crawler.guard import AddressGuard
from maniple.crawler.transport import GuardedTransport
from maniple.errors import FetchError

# gzip alone: it can be inflated with a bound on what comes out, so a bomb costs no memory.
_HEADERS = {
    "user-agent": "Mozilla/5.0 (compatible; maniple/0.1; a research agent that reads for a person)",
    "accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1",
    "accept-encoding": "gzip",
    "accept-language": "*",
}
_READABLE = {"", "application/json", "application/xml", "application/xhtml+xml"}


class Fetcher:
    """GETs http and https pages; addresses, redirects, time, size and type are all bounded.

    Nothing is kept between two fetches: no cookie, no connection.
    """

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._guard = AddressGuard(settings)
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str) -> Document:
        """The page at `url`, redirects followed.

        Raises:
            FetchError: the address is not a public web page, or no readable answer came in time.
        """
        require_web_address(url)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return await self._get(url)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            raise fetch_error(url, error) from error

    async def _get(self, url: str) -> Document:
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        async with (
            httpx.AsyncClient(
                transport=GuardedTransport(self._guard, self._tls),
                headers=_HEADERS,
                timeout=self._settings.timeout_seconds,
                follow_redirects=True,
                max_redirects=self._settings.max_redirects,
                # A proxy or a password that the environment names would be used past the check.
                trust_env=False,
            ) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != 200:
                raise status_error(url, response.status_code)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if not _is_readable(media_type):
                raise FetchError(f"{url} is {media_type}, which cannot be read here; look for a web page.")
            return Document(
                url=str(response.url),
                media_type=media_type,
                charset=response.charset_encoding,
                body=await _read(response, url, self._settings.max_bytes),
            )


def require_web_address(url: str) -> httpx.URL:
    """`url` taken apart.

    Raises:
        FetchError: it is not an http or https address of a host, or it carries a user name.
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise fetch_error(url, error) from error
    if parts.scheme not in ("http", "https"):
        raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
    if not parts.host:
        raise FetchError(f"{url} names no host; write the whole address.")
    if parts.userinfo:
        raise FetchError(f"{parts.host}: an address with a user name in it is not fetched; leave it out.")
    return parts


def _is_readable(media_type: str) -> bool:
    return (
        media_type in _READABLE or media_type.startswith("text/") or media_type.endswith(("+json", "+xml"))
    ) and not media_type.startswith("image/")


async def _read(response: httpx.Response, url: str, max_bytes: int) -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise FetchError(
            f"{url} is compressed with {encoding}, which cannot be read here; use another source."
        )
    gunzip = zlib.decompressobj(31) if "gzip" in encoding else None  # 31: gzip header, largest window
    body = bytearray()
    async for chunk in response.aiter_raw():
        try:
            body += gunzip.decompress(chunk, max_bytes + 1 - len(body)) if gunzip else chunk
        except zlib.error as error:
            raise FetchError(f"{url} sent damaged data; try again or use another source.") from error
        if len(body) > max_bytes:
            raise FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")
    return bytes(body)
