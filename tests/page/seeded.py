"""Conversations that are there when the server starts: the recorded streams, in its store."""

import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from maniple.store import EventRecord, RunRecord, Store, Thread, open_store
from maniple.types import RunState
from maniple.workspace import Workspaces
from tests.page.streams import FOLDER, Event
from tests.page.worked import FOUND

BRANCH_NOTE = "The workspace is as it is now: its history from before the question is gone."
_PACE = 0.7
_BASKET = {"x": 700 / 1280, "y": 170 / 800, "width": 160 / 1280, "height": 56 / 800}
_LONG_AGO = (
    "Which heat pump fits an old house?",
    "Summarise the minutes of June",
    "Find a hall for 120 people in Ghent",
    "Why did sales fall in the north, and what did the other regions do about it?",
    "Translate the manual of the coffee machine",
    "Chart the rainfall of ten years",
)


@dataclass(frozen=True)
class Seed:
    """A conversation of one run: how much of which stream, and what became of it."""

    title: str
    stream: str
    status: RunState
    until: str = ""
    """The type of the event with which it ends for now; "" is the whole stream."""
    branch_of: str = ""
    """The conversation whose only question it asks in another way."""


SEEDS: Mapping[str, Seed] = {
    "report": Seed("How do swifts sleep?", "report", "completed"),
    "files": Seed("Make a table of the sums", "artifacts", "completed"),
    "browser": Seed("What do apples cost?", "browser", "completed"),
    "failed": Seed("Compare the three offers", "model-error-of-planner", "failed"),
    "cancelled": Seed("Read all of the archive", "cancelled", "cancelled"),
    "review": Seed("Plan a week in Porto", "plan-review", "interrupted", "final_session_state"),
    "approval": Seed("Tidy up the downloads", "tool-approval", "interrupted", "final_session_state"),
    "question": Seed("What is the sum?", "question", "interrupted", "final_session_state"),
    "branch": Seed("Make a table of the sums", "artifacts", "completed", branch_of="browser"),
    "running": Seed("How do swallows sleep?", "report", "running", "tool_call"),
}
"""By the id of the conversation."""


@asynccontextmanager
async def seeded(home: Path) -> AsyncIterator[Store]:
    """Fill the store of a server that is to start in `home`. Runs continue as long as this is open."""
    folder = home / "data"
    folder.mkdir(parents=True, exist_ok=True)
    async with open_store(folder / "maniple.db", folder / "artifacts", server=False) as store:
        now = time.time()
        for number in range(24):
            title, at = _LONG_AGO[number % len(_LONG_AGO)], now - 90_000 + number
            await store.threads.create(Thread(f"old-{number}", "", title, at, at))
        made = Workspaces(folder / "workspaces").open("files")
        (made.path / "sums.csv").write_text("a,b\n1,3\n")
        for number, (name, seed) in enumerate(SEEDS.items()):
            await _plant(store, name, seed, now - 100 + number)
        yield store


async def _plant(store: Store, name: str, seed: Seed, at: float) -> None:
    thread = await store.threads.create(_thread(name, seed, at))
    run_id = f"run-{name}"
    record = RunRecord(run_id, thread.thread_id, "", "server", store.process, seed.status, "{}", at, at)
    run = await store.runs.add(replace(record, ended_at=None if record.is_unfinished else at + 60))
    events = [await _rooted(store, run, event) for event in recorded(seed.stream, seed.until)]
    records = [
        EventRecord(event.pop("id"), event.pop("type"), json.dumps(event), at + number * _PACE)
        for number, event in enumerate(events)
    ]
    await store.events.append([(run_id, records)])
    if seed.stream == "report":
        for found in FOUND:
            await store.evidence(run_id).add(found["url"], found["title"], "page", found["content"])


def _thread(name: str, seed: Seed, at: float) -> Thread:
    thread = Thread(name, "", seed.title, at, at)
    if not seed.branch_of:
        return thread
    of = seed.branch_of
    return replace(thread, parent_id=of, branched_run=f"run-{of}", root_id=of, note=BRANCH_NOTE)


def recorded(stream: str, until: str = "") -> list[Event]:
    """Return a recorded stream, up to the first event of the type `until` if one is named."""
    events: list[Event] = json.loads((FOLDER / f"{stream}.json").read_text(encoding="utf-8"))
    if not until:
        return events
    return events[: 1 + next(at for at, event in enumerate(events) if event["type"] == until)]


async def _rooted(store: Store, run: RunRecord, event: Event) -> dict[str, Any]:
    """Return the event with an address behind which there is something."""
    if event["type"] == "artifact":
        kept = await store.artifacts.add(run, event["name"], event["media_type"], b"a,b\n1,3\n")
        return event | {"artifact_id": kept.artifact_id, "url": f"/api/artifacts/{kept.artifact_id}"}
    if event["type"] == "browser_state":
        kept = await store.artifacts.add(run, "screenshot.png", "image/png", picture(event["title"]))
        return event | {"screenshot": f"/api/artifacts/{kept.artifact_id}"}
    if event["type"] == "browser_step":
        # Without one of its own a step has the newest picture.
        told = {key: value for key, value in event.items() if key != "screenshot"}
        is_click = (event["action"] or {}).get("name") == "click_element"
        return told | {"mark": _BASKET, "element": "button Basket"} if is_click else told
    return event


def picture(words: str) -> bytes:
    """Return what a browser might show, as PNG."""
    image = Image.new("RGB", (1280, 800), "#f4f1ea")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 90), fill="#35506b")
    draw.text((60, 30), words, fill="white", font_size=32)
    for row in range(4):
        draw.rectangle((60, 150 + 150 * row, 560, 270 + 150 * row), fill="white", outline="#cfc8ba", width=2)
    draw.rounded_rectangle((700, 170, 860, 226), 10, fill="#c8553d")
    draw.text((735, 182), "Basket", fill="white", font_size=28)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
