"""Logs of events, and what the views make of them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from maniple.events import VIEWS, Event, ViewName, record_of
from maniple.store import EventRecord


def records(events: Iterable[Event]) -> list[EventRecord]:
    """Return the events as the log has them."""
    return [record_of(event, number) for number, event in enumerate(events, start=1)]


def shown(
    log: Sequence[EventRecord], view: ViewName = "langmanus", run_id: str = "run-1"
) -> list[EventRecord]:
    """Return the frames of a view, which are numbered without a gap."""
    it = VIEWS[view](run_id)
    frames = [frame for record in log for frame in it.feed(record)]
    assert [frame.number for frame in frames] == list(range(1, len(frames) + 1))
    return frames


def parsed(frames: Iterable[EventRecord]) -> list[tuple[str, dict[str, Any]]]:
    """Return frames by name and data."""
    return [(frame.type, json.loads(frame.data)) for frame in frames]
