"""The stored times of events."""

import pytest

from maniple.store import EventRecord
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio


async def test_events_come_back_with_the_times_at_which_they_happened(store):
    run = await stored_run(store)
    times = [1795390512.347, 1795390511.0, None, 0.0]
    told = [EventRecord(n, "message", '{"delta": "1.5 word"}', at) for n, at in enumerate(times, start=1)]
    await store.events.append([(run.run_id, told)])
    assert await store.events.read(run.run_id) == told
    assert await store.events.last(run.run_id) == told[-1]


async def test_an_event_whose_name_would_be_read_as_a_time_is_not_stored(store):
    run = await stored_run(store)
    with pytest.raises(ValueError, match="cannot be stored"):
        await store.events.append([(run.run_id, [EventRecord(1, "1795390512.347", "{}")])])
    assert await store.events.read(run.run_id) == []


async def test_events_come_back_with_their_turns(store):
    run = await stored_run(store)
    turns = [
        ("", None),
        (f"{run.run_id}_coder_4", 2),
        (f"{run.run_id}_reporter_6", None),
        ("of another#1 run", 3),
    ]
    told = [
        EventRecord(number, "message", '{"delta": "@x 1"}', 1.5, agent_id, step_id)
        for number, (agent_id, step_id) in enumerate([*turns, (None, None)], start=1)
    ]
    await store.events.append([(run.run_id, told)])
    assert await store.events.read(run.run_id) == told
    assert await store.events.last(run.run_id) == told[-1]


async def test_an_event_whose_name_would_be_read_as_a_turn_is_not_stored(store):
    run = await stored_run(store)
    with pytest.raises(ValueError, match="cannot be stored"):
        await store.events.append([(run.run_id, [EventRecord(1, "@coder", "{}")])])
