"""The recorded streams that the page's own tests read are what the service tells today."""

import json

import pytest

from tests.page.streams import FOLDER, Event, told

pytestmark = pytest.mark.anyio


async def test_the_recorded_streams_are_what_the_service_tells(tmp_path):
    found = [name async for name, stream in told(tmp_path) if _ordered(stream) != _ordered(_recorded(name))]
    assert found == [], "`python -m tests.page.record` writes them anew"


def _recorded(name: str) -> list[Event]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _ordered(stream: list[Event]) -> object:
    """What is the same each time: a file is told whenever it is stored, so of a run with one the kinds."""
    kinds = sorted(event["type"] for event in stream)
    return kinds if "artifact" in kinds else stream
