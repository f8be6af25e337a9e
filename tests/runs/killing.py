"""A server that is killed and started again, and a site that counts who comes."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from tests.openai_server import SIMPLE, call, reply
from tests.serving import ServerProcess, server_process
from tests.team import plan, step

T = TypeVar("T")


class Mortal:
    """A server process on one data directory; `kill` is SIGKILL, `start` starts another on the same data."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        self._env, self._cwd = env, cwd
        self._stack = ExitStack()
        self._server: ServerProcess | None = None
        self.up = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._stack.close)

    async def start(self) -> None:
        """Start it; it listens when this returns."""
        process = server_process(self._env, self._cwd)
        self._server = await asyncio.to_thread(self._stack.enter_context, process)
        self.up.set()

    async def kill(self) -> None:
        """Kill it as the kernel does when memory is gone."""
        self.up.clear()
        assert self._server is not None
        self._server.process.kill()
        await asyncio.to_thread(self._stack.close)

    def client(self) -> httpx.AsyncClient:
        """Return a client of the process that runs now; how long it waits, the test's own limit says."""
        assert self._server is not None
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self._server.url, timeout=None, limits=limits)


class EventCounter:
    """Counts the events that all followers of runs have received."""

    def __init__(self) -> None:
        self.count = 0
        self._has_ended = False
        self._changed = asyncio.Condition()

    async def increment(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()

    async def end(self) -> None:
        """No more events come: who still waits, waits in vain."""
        async with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    async def wait_for(self, number: int) -> None:
        """Wait until `number` events were received."""
        await self.wait_until(lambda: self.count >= number)

    async def wait_until(self, on: Callable[[], bool]) -> None:
        """Wait until a condition on the received events holds."""
        async with self._changed:
            await self._changed.wait_for(lambda: on() or self._has_ended)
        assert on(), f"the followers ended after {self.count} events"


_MADE_UP = re.compile(r"/[0-9a-f]{24}(?:\.\w+)?\Z")


class Site:
    """Pages that answer every address but that of robots.txt, and how often each was asked for.

    Addresses of which a fetcher only asks whether the site answers anything are not counted.
    """

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.url = ""
        self._changed = asyncio.Condition()

    async def visited(self, times: int) -> None:
        """Wait until there were so many visits."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.hits.total() >= times)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
            if path == "/robots.txt" or _MADE_UP.search(path):
                writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                return await writer.drain()
            async with self._changed:
                self.hits[path] += 1
                self._changed.notify_all()
            body = (
                b"<html><body><p>A page about nothing in particular, with some words on it.</p></body></html>"
            )
            length = b"Content-Length: %d\r\n" % len(body)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n" + length + b"\r\n"
            )
            writer.write(body)
            await writer.drain()
        except (OSError, EOFError):
            pass  # killed in the middle of its question
        finally:
            writer.close()


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    site = Site()
    async with await asyncio.start_server(site.answer, "127.0.0.1", 0, backlog=512) as server:
        site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield site


def crawling(site: Site) -> dict[str, Any]:
    """Return a script by which the researcher reads one page there, named like the conversation."""
    return {
        **SIMPLE,
        "by_history": True,
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [call("crawl_tool", url=f"{site.url}/{{run}}"), reply("found")],
    }


async def together(each: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all at once; when one fails the others are ended, so that what they use can be closed."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in each]
    return [task.result() for task in tasks]
