"""Asking a search engine over HTTP: bounded in size and time, with words for what goes wrong."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import httpx

from maniple.errors import SearchError
from maniple.retry_after import retry_after_seconds
from maniple.search.provider import SET_ASIDE_SECONDS, ProviderFailure, RateLimited

MAX_BYTES = 2_000_000
LONGEST_REST_SECONDS = 3_600.0


@dataclass(slots=True)
class Endpoint:
    """The API of the engine `name`; `remedies` say what to do about a status."""

    name: str
    timeout_seconds: float
    remedies: Mapping[int, str] = field(default_factory=dict)
    _client: httpx.AsyncClient | None = None

    async def json(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the object that a GET brings; raises `ProviderFailure`."""
        body = await self.get(url, params, headers)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self.garbled() from error
        if not isinstance(value, dict):
            raise self.garbled()
        return value

    async def get(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the body that a GET brings, at most `MAX_BYTES` long; raises `ProviderFailure`."""
        try:
            async with asyncio.timeout(self.timeout_seconds):
                client = await self._connected()
                async with client.stream("GET", url, params=params, headers=headers) as response:
                    self._check(response)
                    return await self._body(response)
        except TimeoutError as error:
            raise ProviderFailure(f"{self.name} took too long to answer.") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = str(error).partition("\n")[0] or type(error).__name__
            raise ProviderFailure(f"{self.name} could not be reached: {words}") from error

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def garbled(self) -> ProviderFailure:
        """Return the failure for an answer that is not what the engine's documentation promises."""
        return ProviderFailure(
            f"{self.name} sent an answer that cannot be read. {self.remedies.get(200, '')}".strip()
        )

    async def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            client = await asyncio.to_thread(new_client, timeout=self.timeout_seconds)
            self._client = self._client or client  # another request may have been faster
        return self._client

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        if status in (429, 503) and (rest := rest_asked_for(response.headers)) is not None:
            raise RateLimited(f"{self.name} wants fewer searches: none for {rest:.0f} s.", rest_seconds=rest)
        if status == 429:
            raise RateLimited(f"{self.name} wants fewer searches.")
        words = self.remedies.get(status, "")
        raise ProviderFailure(
            f"{self.name} answered HTTP {status}. {words}".strip(),
            rest_seconds=0 if status in (400, 414, 422) and not words else SET_ASIDE_SECONDS,
        )

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_BYTES:
                raise ProviderFailure(f"{self.name} sent more than {MAX_BYTES // 1_000_000} MB.")
        return bytes(body)


def new_client(**options: Any) -> httpx.AsyncClient:
    """Return a client that says who it is. Blocks: certificates are read from disk."""
    # https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy, and arXiv wants it, too.
    agent = f"maniple/{version('maniple')} (team of agents; httpx)"
    return httpx.AsyncClient(headers={"User-Agent": agent}, **options)


def rest_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` asks for, an hour at most; None when it says nothing."""
    seconds = retry_after_seconds(headers)
    return None if seconds is None else min(seconds, LONGEST_REST_SECONDS)


def asked_for(query: str, longest: int) -> str:
    """Return the query on one line, cut at a word to `longest`; raises `SearchError` when it is empty."""
    words = " ".join(query.split())
    if not words:
        raise SearchError("The search query is empty; say what to look for.")
    return words if len(words) <= longest else words[:longest].rpartition(" ")[0] or words[:longest]
