"""The time between requests to a site whose robots.txt asks for it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
from cachetools import TTLCache

from maniple.egress import PermanentFetchError

MAX_WAIT_SECONDS = 15.0
"""A page whose turn comes later is refused."""
_MAX_DELAY_SECONDS = 3_600.0
"""Longer delays are treated as this one."""
_MAX_SITES = 10_000


class SitePace:
    """The turns of one site: only one request starts in each interval."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._next = -_MAX_DELAY_SECONDS

    def estimate_wait(self, delay_seconds: float) -> float:
        """Return the seconds until a request that joins the queue now may start."""
        return max(self._next - self._clock(), 0.0) + self._waiting * delay_seconds

    async def take_turn(self, delay_seconds: float) -> None:
        """Return when the caller may start its request; a caller that is cancelled leaves the queue."""
        self._waiting += 1
        try:
            async with self._lock:
                if (seconds := self._next - self._clock()) > 0:
                    await self._sleep(seconds)
                self._next = self._clock() + delay_seconds
        finally:
            self._waiting -= 1


class CrawlPace:
    """The turns of all sites that ask for a delay; those of the last hour are remembered, in this process."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sites: TTLCache[str, SitePace] = TTLCache(_MAX_SITES, _MAX_DELAY_SECONDS, clock)

    async def wait_turn(self, url: httpx.URL, delay_seconds: float, extend: Callable[[float], None]) -> float:
        """Wait until `url` may be requested; return the expected seconds of it.

        `extend` is called before the wait with its estimated length, for the caller's time limit.

        Raises:
            PermanentFetchError: the wait would be longer than `MAX_WAIT_SECONDS`.
        """
        if delay_seconds <= 0:
            return 0.0
        delay = min(delay_seconds, _MAX_DELAY_SECONDS)
        origin = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
        site = self._sites.get(origin) or SitePace(self._clock, self._sleep)
        self._sites[origin] = site  # its hour begins again
        expected = site.estimate_wait(delay)
        if expected > MAX_WAIT_SECONDS:
            raise PermanentFetchError(
                f"{url} was not read: the robots.txt of {url.host} asks for {delay:g} s between requests. "
                f"It can be read in {expected:.0f} s; use another source until then. "
                "(The operator can set fetch.robots: false.)"
            )
        extend(expected)
        await site.take_turn(delay)
        return expected
