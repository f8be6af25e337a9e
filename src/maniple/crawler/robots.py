"""The rules of sites for robots: robots.txt (RFC 9309)."""

import asyncio
import re
import time
from collections.abc import Callable
from weakref import WeakValueDictionary

import httpx
from cachetools import TTLCache

from maniple.crawler.http_client import ROBOTS_TOKEN, read_body, status_error
from maniple.egress import PermanentFetchError

_PARSED_BYTES = 500 * 1024  # the minimum that the RFC requires to be read
_CACHE_BYTES = 5_000_000
_CACHE_SECONDS = 3_600.0
_TIMEOUT_SECONDS = 10.0
_AGENT_LINE = re.compile(r"^\s*user[- ]?agent\b\s*:?(.*)$", re.IGNORECASE)

OpenClient = Callable[[], httpx.AsyncClient]


class RobotsRules:
    """The rules of the requested sites, cached for an hour.

    `open_client` returns a client that connects only to checked addresses.
    """

    def __init__(self, open_client: OpenClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._open_client = open_client
        self._rules: TTLCache[str, str] = TTLCache(_CACHE_BYTES, _CACHE_SECONDS, clock, _size)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def require_allowed(self, url: httpx.URL) -> float:
        """Return if this agent may read `url`: the seconds that its site asks for between requests, or 0.

        Raises:
            PermanentFetchError: the site forbids it.
            FetchError: the site's robots.txt is unavailable, which forbids everything (2.3.1.4).
            httpx.HTTPError, TimeoutError: the request failed.
        """
        rules = await self._rules_of(url.copy_with(raw_path=b"/robots.txt", fragment=None))
        allowed, delay = await asyncio.to_thread(_apply_rules, rules, str(url)) if rules else (True, 0.0)
        if not allowed:
            raise PermanentFetchError(
                f"{url} is closed to robots by its site's robots.txt; use another source. "
                "(The operator can set fetch.robots: false.)"
            )
        return delay

    async def _rules_of(self, location: httpx.URL) -> str:
        """Return the text at `location`; concurrent callers share one request."""
        key = str(location)
        async with self._locks.setdefault(key, asyncio.Lock()):
            rules = self._rules.get(key)
            if rules is None:
                rules = self._rules[key] = _merge_other_agents(await self._fetch(key))
        return rules

    async def _fetch(self, location: str) -> str:
        async with (
            asyncio.timeout(_TIMEOUT_SECONDS),
            self._open_client() as client,
        ):
            try:
                async with client.stream("GET", location, follow_redirects=True) as response:
                    status = response.status_code
                    if status == 429 or status >= 500:
                        raise status_error(location, status)
                    body = (
                        await read_body(response, location, _PARSED_BYTES, cut=True) if status == 200 else b""
                    )
            except httpx.TooManyRedirects:
                return ""
        return body.decode("utf-8-sig", "replace")


def _size(rules: str) -> int:
    return len(rules) + 100


def _apply_rules(rules: str, url: str) -> tuple[bool, float]:
    """Return whether `url` may be read, and the seconds between requests (`Crawl-delay`, `Request-rate`)."""
    from protego import Protego

    parsed = Protego.parse(rules)
    rate = parsed.request_rate(ROBOTS_TOKEN)
    # A rate of certain hours is obeyed at all hours: its time zone is not defined.
    interval = rate.seconds / rate.requests if rate else 0.0
    return parsed.can_fetch(url, ROBOTS_TOKEN), max(parsed.crawl_delay(ROBOTS_TOKEN) or 0.0, interval)


def _merge_other_agents(text: str) -> str:
    """Return `text` with one common name for all agents except this one and `*`.

    Protego stores every rule of a group once for each of its agents: 500 kB could take minutes and gigabytes
    (1,000 agents with 1,000 rules, 30 kB, took 3.6 s).
    """
    return "\n".join(_AGENT_LINE.sub(_rename_agent, line) for line in text.splitlines())


def _rename_agent(line: re.Match[str]) -> str:
    name = line[1].partition("#")[0].partition("/")[0].strip().lower()
    return f"User-agent: {name if name in ('*', ROBOTS_TOKEN) else 'another'}"
