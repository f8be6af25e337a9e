"""The replay file: the player, and the run's events and their enclosures as embedded data."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from maniple.replay.event_lines import MAX_TEXT_LENGTH, EventLines, escape_for_script
from maniple.replay.lenient_parsing import as_mapping, as_mappings, as_text, parse_json
from maniple.replay.player import load_player, title_of
from maniple.run_files.markup import image_targets
from maniple.run_files.pictures import Figure, FigureFinder, figure_address, load_picture
from maniple.store import Artifact, EventRecord, RunRecord, Store
from maniple.store.protocols import EVENT_PAGE_SIZE, read_event_pages


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay file in pieces; `title` is the first line of the question.

    `policy` is the file's content security policy, for the header of a server that shows it.
    """

    title: str
    policy: str
    pieces: AsyncIterator[bytes]


async def build_replay(
    store: Store, run: RunRecord, known: Mapping[str, Any], finder: FigureFinder, report: str | None = None
) -> Replay:
    """Return the file that plays a run in any state; for a running one, its events so far.

    The file contains no other run of the thread. `known` is the part of the service's description of the run
    that the file may contain, and `report` its report as the HTML that the page shows. Besides the figures of
    the report, at most one page of events or one picture is in memory at a time.

    Raises:
        NotFound: the page has not been built in this clone.
        StoreError: the records cannot be read. Reading the pieces can raise it, too.
    """
    first = await store.events.read(run.run_id, 0, EVENT_PAGE_SIZE)
    question = await _question(store, run, first)
    title = title_of(question)
    player = await asyncio.to_thread(load_player)
    enclosures = Enclosures(store, run, known, await _figures(store, run, finder), report)
    return Replay(title, player.policy, _pieces(store, run, title, question, enclosures))


async def _pieces(
    store: Store, run: RunRecord, title: str, question: str, enclosures: Enclosures
) -> AsyncIterator[bytes]:
    yield load_player().begin(title)
    about = {
        "run_id": run.run_id,
        "question": question,
        "status": run.status,
        "error": run.error or "",
        "created_at": run.created_at,
    }
    yield _block("run", about)
    event_lines = EventLines()
    yield b'<script type="application/x-ndjson" id="events">\n'
    async for events in read_event_pages(store.events, run.run_id):
        yield await asyncio.to_thread(event_lines.lines, events)
    yield b'</script>\n<script type="application/x-ndjson" id="enclosures">\n'
    async for line in enclosures.lines():
        yield line
    yield b"</script>\n"
    yield _block("left-out", {"events": event_lines.left_out, "pictures": enclosures.left_out})
    yield load_player().end(sets_math=event_lines.has_math)


def _block(name: str, value: dict[str, Any]) -> bytes:
    content = escape_for_script(json.dumps(value))
    return b'<script type="application/json" id="%s">%s</script>\n' % (name.encode(), content)


async def _figures(store: Store, run: RunRecord, finder: FigureFinder) -> Collection[Figure]:
    """Return the figures of the run's report; empty if it has no report yet."""
    newest = await store.events.last(run.run_id)
    if newest is None or newest.type != "final_session_state":
        return ()
    report = _newest_text(as_mapping(parse_json(newest.data)).get("messages"), "", MAX_TEXT_LENGTH)
    return (await finder.find_all(await asyncio.to_thread(image_targets, report))).values()


async def _question(store: Store, run: RunRecord, first: Sequence[EventRecord]) -> str:
    """Return the question. Small talk starts no workflow; its question is in the last event."""
    start = next((one for one in first if one.type == "start_of_workflow"), None)
    if start is not None:
        return _newest_text(as_mapping(parse_json(start.data)).get("input"), "user", MAX_TEXT_LENGTH)
    newest = await store.events.last(run.run_id)
    if newest is None or newest.type != "final_session_state":
        return ""
    return _newest_text(as_mapping(parse_json(newest.data)).get("messages"), "user", MAX_TEXT_LENGTH)


def _newest_text(messages: object, role: str, longest: int) -> str:
    """Return the text of the newest message with a role ("" for any role) in the wire format."""
    for message in reversed(as_mappings(messages)):
        if not role or message.get("role") == role:
            content = message.get("content")
            if isinstance(content, list):
                content = "\n".join(as_text(part.get("text"), longest) for part in as_mappings(content))
            return as_text(content, longest)
    return ""


LARGEST_PICTURE = 1_000_000
"""Bytes."""
MAX_PICTURES = 20_000_000
"""Bytes of all pictures together."""
_SCREENSHOT = "screenshot.jpg"


class Enclosures:
    """What the page needs of the service about one run: `known`, report, sources, figures and pictures.

    `left_out` counts the pictures that did not fit.
    """

    def __init__(
        self,
        store: Store,
        run: RunRecord,
        known: Mapping[str, Any],
        figures: Collection[Figure] = (),
        report: str | None = None,
    ) -> None:
        self.left_out = 0
        self._store = store
        self._run = run
        self._known = known
        self._figures = figures
        self._report = report

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield a JSON line for each: its `path` at the service, and its content as a `data:` URL."""
        path = f"/api/runs/{self._run.run_id}"
        yield _line(path, _json(self._known))
        if self._report is not None:
            yield await asyncio.to_thread(_line, f"{path}/report/body", _data_url("text/html", self._report))
        evidence = self._store.evidence(self._run.run_id)
        sources = [asdict(source) for source in await evidence.sources()]
        unread = [asdict(page) for page in await evidence.unread()]
        findings = [asdict(one) for one in await evidence.findings()]
        yield _line(f"{path}/sources", _json({"sources": sources, "unread": unread, "findings": findings}))
        left = MAX_PICTURES
        for figure in self._figures:
            if len(figure.content) > left:
                self.left_out += 1
                continue
            left -= len(figure.content)
            yield await asyncio.to_thread(
                _line, figure_address(self._run.run_id, figure.path), figure.data_url
            )
        for one in _sort_pictures(await self._store.artifacts.list_by_run(self._run.run_id)):
            if one.size > min(left, LARGEST_PICTURE):
                self.left_out += 1
            elif picture := await load_picture(self._store, one):
                left -= one.size
                yield await asyncio.to_thread(_line, f"/api/artifacts/{one.artifact_id}", picture)


def _sort_pictures(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the pictures: first those that the team made, then screenshots, both newest first."""
    pictures = [one for one in reversed(artifacts) if one.media_type.startswith("image/")]
    return sorted(pictures, key=lambda one: one.name == _SCREENSHOT)


def _json(value: Mapping[str, Any]) -> str:
    return _data_url("application/json", json.dumps(value))


def _data_url(media_type: str, content: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content.encode()).decode()}"


def _line(path: str, content: str) -> bytes:
    return escape_for_script(json.dumps({"path": path, "content": content})) + b"\n"
