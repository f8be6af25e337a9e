"""Jina's reader, a service that fetches and renders pages and returns their HTML (https://jina.ai/reader)."""

import asyncio
import ssl
from typing import Any

import httpx

from maniple.config.web_settings import FetchSettings
from maniple.crawler.document import FetchedDocument
from maniple.crawler.fetcher import require_web_address
from maniple.crawler.http_client import ACCEPTED_ENCODINGS, read_body
from maniple.egress import AddressGuard, translate_fetch_error
from maniple.egress.certificates import tls_context
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.errors import FetchError

_ADVICE = {
    401: "the operator should check JINA_API_KEY",
    402: "its account is used up; the operator should check JINA_API_KEY",
    429: "it limits requests; try again later",
}


class JinaReader:
    """Fetches pages through the service in `fetch.jina_base_url`, for public addresses only."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        # Without `allow_private`: private addresses that this program may read must not be sent to a service.
        self._public = AddressGuard(FetchSettings())
        self._tls: ssl.SSLContext | None = None

    async def is_allowed(self, url: str) -> bool:
        """Return whether `url` may be sent to the service: every address of its host is public."""
        parts = require_web_address(url)
        try:
            await self._public.resolve(parts.host, parts.port or (443 if parts.scheme == "https" else 80))
        except FetchError:
            return False
        return True

    async def fetch(self, url: str) -> FetchedDocument:
        """Return the page at `url` as the service renders it; `is_allowed` must have returned True.

        Raises:
            FetchError: the service did not return a page in time.
        """
        service_url = self._settings.jina_base_url
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return await self._ask(service_url, url)
        except (httpx.HTTPError, TimeoutError) as error:
            raise FetchError(str(translate_fetch_error(f"Jina's reader, asked for {url},", error))) from error

    async def _ask(self, service_url: str, url: str) -> FetchedDocument:
        if self._tls is None:
            self._tls = await asyncio.to_thread(tls_context)
        transport: Any = EnvironmentTransport(httpx, self._tls)
        async with (
            httpx.AsyncClient(transport=transport, timeout=self._settings.timeout_seconds) as client,
            client.stream("POST", service_url, json={"url": url}, headers=self._headers()) as response,
        ):
            if response.status_code != 200:
                advice = _ADVICE.get(response.status_code, "try again or use another source")
                raise FetchError(f"Jina's reader answered {response.status_code} for {url}: {advice}.")
            body = await read_body(response, url, self._settings.max_bytes)
            return FetchedDocument(url, "text/html", response.charset_encoding or "utf-8", body)

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "text/html", "accept-encoding": ACCEPTED_ENCODINGS, "x-return-format": "html"}
        if self._settings.jina_api_key is not None:
            headers["authorization"] = f"Bearer {self._settings.jina_api_key.get_secret_value()}"
        return headers
