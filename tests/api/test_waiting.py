import pytest

from maniple.events import Event, RunInterrupted, RunStarted, RunStatusChanged, SessionState, as_json
from maniple.service.views import PAGE_EVENTS, read_interrupts
from maniple.store import EventRecord, RunRecord, Store, open_store
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio


def pause(name: str) -> RunInterrupted:
    return RunInterrupted(interrupt_id=name, kind="question", payload={}, options=["answer"])


async def record_parts(store: Store, run: RunRecord, *parts: Event | int) -> None:
    """Store events, and for a number so many words."""
    for part in parts:
        newest = await store.events.last(run.run_id)
        number = newest.number + 1 if newest else 1
        if isinstance(part, int):
            records = some_events(number, number + part - 1)
        else:
            records = [EventRecord(number, part.type, as_json(part))]
        await store.events.append([(run.run_id, records)])


@pytest.mark.parametrize("behind", [0, 3 * PAGE_EVENTS])
async def test_all_interrupts_of_the_newest_stretch_are_found_from_the_end(tmp_path, behind):
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store, status="interrupted")
        begin = RunStarted(run_id=run.run_id, thread_id=run.thread_id)
        end = RunStatusChanged(status="interrupted")
        await record_parts(store, run, begin, 5, pause("old"), end, begin, 2_000)
        assert await read_interrupts(store, run) == []
        # So many pauses that they do not fit into what is read first.
        pauses = [pause(str(number)) for number in range(PAGE_EVENTS + 3)]
        await record_parts(store, run, *pauses, end, SessionState(messages=[]), *([behind] if behind else []))
        found = await read_interrupts(store, run)
    assert [one.interrupt_id for one in found] == [one.interrupt_id for one in pauses]


async def test_only_the_end_of_a_long_log_is_read(tmp_path, monkeypatch):
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store, status="interrupted")
        begin = RunStarted(run_id=run.run_id, thread_id=run.thread_id)
        await record_parts(store, run, begin, 20_000, pause("one"), RunStatusChanged(status="interrupted"))
        read, reading = 0, store.events.read

        async def counted(run_id: str, after: int = 0, limit: int = 1_000) -> list[EventRecord]:
            nonlocal read
            records = await reading(run_id, after, limit)
            read += len(records)
            return records

        monkeypatch.setattr(store.events, "read", counted)
        assert [one.interrupt_id for one in await read_interrupts(store, run)] == ["one"]
    assert read <= PAGE_EVENTS
