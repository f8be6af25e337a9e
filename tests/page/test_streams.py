"""The recorded streams that the page's own tests read are what the service tells today."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.page.streams import FOLDER, Event, told


def test_the_recorded_streams_are_what_the_service_tells(tmp_path):
    # In a thread of its own: Playwright's loop may be running in this one, for the browser of the package.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _compare(tmp_path)).result()


async def _compare(tmp_path: Path) -> None:
    found = [name async for name, stream in told(tmp_path) if _ordered(stream) != _ordered(_recorded(name))]
    assert found == [], "`python -m tests.page.record` writes them anew"


def _recorded(name: str) -> list[Event]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _ordered(stream: list[Event]) -> object:
    """What is the same each time: a file is told whenever it is stored, so of a run with one the kinds."""
    kinds = sorted(event["type"] for event in stream)
    return kinds if "artifact" in kinds else stream
