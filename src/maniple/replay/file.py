"""The file: the player, and a run's events with what belongs to them, as data that only the player reads."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maniple.replay.enclosures import Enclosures
from maniple.replay.player import player
from maniple.replay.telling import LONGEST_TEXT, Telling, embedded
from maniple.run_page.lenient import mapping, parsed
from maniple.run_page.markup import image_targets
from maniple.run_page.pictures import Figure, FigureFinder
from maniple.run_page.story import last_words
from maniple.store import EventRecord, RunRecord, Store
from maniple.store.protocols import EVENT_PAGE_SIZE, read_event_pages

_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Replay:
    """A file in pieces; `title` is the first line of what was asked."""

    title: str
    pieces: AsyncIterator[bytes]


async def replay_of(store: Store, run: RunRecord, known: Mapping[str, Any], finder: FigureFinder) -> Replay:
    """Return the file that plays a run, however it ended; of one under way, what there is of it so far.

    It holds this run alone, whatever else was said on its thread; `known` is what the service says of how it
    stands, as far as the file is to tell it. Never more than a page of events or one
    picture is in memory.

    Raises:
        StoreError: the records cannot be read; also while the pieces are.
    """
    first = await store.events.read(run.run_id, 0, EVENT_PAGE_SIZE)
    question = await _question(store, run, first)
    title = (question.strip().splitlines() or [""])[0][:_LONGEST_TITLE].strip() or "maniple"
    await asyncio.to_thread(player)
    return Replay(title, _pieces(store, run, title, question, known, finder))


async def _pieces(
    store: Store,
    run: RunRecord,
    title: str,
    question: str,
    known: Mapping[str, Any],
    finder: FigureFinder,
) -> AsyncIterator[bytes]:
    yield player().begin(title)
    stands = {"run_id": run.run_id, "question": question, "status": run.status, "created_at": run.created_at}
    yield _block("run", stands)
    telling = Telling()
    yield b'<script type="application/x-ndjson" id="events">\n'
    async for events in read_event_pages(store.events, run.run_id):
        yield await asyncio.to_thread(telling.lines, events)
    yield b'</script>\n<script type="application/x-ndjson" id="enclosures">\n'
    enclosures = Enclosures(store, run, known, await _figures(store, run, finder))
    async for line in enclosures.lines():
        yield line
    yield b"</script>\n"
    yield _block("left-out", {"events": telling.left_out, "pictures": enclosures.left_out})
    yield player().end(sets_math=telling.has_math)


def _block(name: str, value: dict[str, Any]) -> bytes:
    content = embedded(json.dumps(value))
    return b'<script type="application/json" id="%s">%s</script>\n' % (name.encode(), content)


async def _figures(store: Store, run: RunRecord, finder: FigureFinder) -> Collection[Figure]:
    """Return the figures of the run's report; none while it has no report."""
    newest = await store.events.last(run.run_id)
    if newest is None or newest.type != "final_session_state":
        return ()
    report = last_words(mapping(parsed(newest.data)).get("messages"), "", LONGEST_TEXT)
    return (await finder.find_all(await asyncio.to_thread(image_targets, report))).values()


async def _question(store: Store, run: RunRecord, first: Sequence[EventRecord]) -> str:
    """Return what was asked. Small talk has no workflow: its question is told with its answer."""
    begun = next((one for one in first if one.type == "start_of_workflow"), None)
    if begun is not None:
        return last_words(mapping(parsed(begun.data)).get("input"), "user", LONGEST_TEXT)
    newest = await store.events.last(run.run_id)
    if newest is None or newest.type != "final_session_state":
        return ""
    return last_words(mapping(parsed(newest.data)).get("messages"), "user", LONGEST_TEXT)
