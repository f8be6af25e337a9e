"""Events are stored before they are sent, also when storing fails for a while."""

import asyncio

import pytest

from maniple.errors import StoreBusy, StoreCorrupt
from maniple.events import RunStarted, SessionState
from maniple.runs import event_log
from maniple.runs.event_log import RunEventLog, open_recorder

pytestmark = pytest.mark.anyio


class Table:
    """Keeps what is appended; `failures` are raised first, `refused` runs always."""

    def __init__(self, *failures: Exception, refused: str = "") -> None:
        self.failures, self.refused, self.kept = list(failures), refused, []

    async def append(self, batches):
        if self.failures:
            raise self.failures.pop(0)
        if any(run_id == self.refused for run_id, _ in batches):
            raise StoreCorrupt("this run cannot be stored")
        self.kept += [run_id for run_id, _ in batches]

    async def read(self, run_id, after=0, limit=1000, types=None):
        return []


async def numbers(log: RunEventLog) -> list[int]:
    return [record.number async for page in log.follow() for record in page]


async def test_what_another_process_held_up_is_stored_when_it_lets_go():
    table = Table(StoreBusy("held"), StoreBusy("held"))
    async with open_recorder(table) as recorder:
        log = RunEventLog("a", table)
        await recorder.add(log, RunStarted(run_id="a", thread_id="t"))
        await recorder.wait_until_stored()
        log.close()
        assert await numbers(log) == [1]
    assert log.failure is None


async def test_one_run_that_cannot_be_stored_harms_no_other():
    table = Table(refused="bad")
    async with open_recorder(table) as recorder:
        logs = [RunEventLog(name, table) for name in ("good", "bad")]
        for log in logs:
            await recorder.add(log, RunStarted(run_id=log.run_id, thread_id="t"))
        await recorder.wait_until_stored()
        logs[0].close()
        assert await numbers(logs[0]) == [1]
        with pytest.raises(StoreCorrupt):
            await numbers(logs[1])
        with pytest.raises(StoreCorrupt):
            await recorder.add(logs[1], RunStarted(run_id="bad", thread_id="t"))


async def test_the_end_of_a_run_does_not_wait_for_a_group(monkeypatch):
    monkeypatch.setattr(event_log, "GROUP_SECONDS", 3_600)
    table = Table()
    async with open_recorder(table) as recorder:
        log = RunEventLog("a", table)
        followed = aiter(log.follow())
        async with asyncio.timeout(60):
            for event in (RunStarted(run_id="a", thread_id="t"), SessionState(messages=[])):
                await recorder.add(log, event)
                assert len(await anext(followed)) == 1
