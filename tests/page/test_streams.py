"""The recorded streams of the page's own tests are equal to what the service sends."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.page.streams import FOLDER, Event, recorded_streams


@pytest.mark.slow
def test_the_recorded_streams_match_those_of_the_service(tmp_path):
    # In a thread of its own: Playwright's loop may be running in this one, for the browser of the package.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _compare(tmp_path)).result()


async def _compare(tmp_path: Path) -> None:
    found = [
        name
        async for name, stream in recorded_streams(tmp_path)
        if _ordered(stream) != _ordered(_recorded(name))
    ]
    assert found == [], "`python -m tests.page.record` writes them anew"


def _recorded(name: str) -> list[Event]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _ordered(stream: list[Event]) -> object:
    """Return what is the same each time: of events of files, which may come at any time, only the types."""
    whole = _joined(stream)
    kinds = sorted(event["type"] for event in whole)
    return kinds if "artifact" in kinds else whole


def _joined(stream: list[Event]) -> list[Event]:
    """Return a stream without drafts and numbers, each message in one piece: pieces arrive as they may."""
    joined: list[Event] = []
    for event in stream:
        if event.get("draft"):
            continue
        event = {key: one for key, one in event.items() if key != "id"}
        last = joined[-1] if joined else {}
        if (
            event["type"] == last.get("type") == "message"
            and event["message_id"] == last["message_id"]
            and event["delta"].keys() == last["delta"].keys()
        ):
            delta = {key: last["delta"][key] + text for key, text in event["delta"].items()}
            joined[-1] = {**last, "delta": delta}
        else:
            joined.append(event)
    return joined
