"""Runs wait while their model is away, and go on where they were."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import Event, RunWaiting, read_event
from maniple.runs import (
    EngineConfig,
    InProcessEngine,
    RunLimits,
    RunRequest,
    TooManyRuns,
    open_engine,
    outages,
)
from maniple.runs.outages import EndpointQueue
from maniple.store import Store, open_store
from tests.openai_server import SIMPLE
from tests.runs.leaving_endpoint import LeavingEndpoint
from tests.team import checked, data, names, scripted_team, status

pytestmark = pytest.mark.anyio
LOADING = {"status": 503, "error": "loading", "headers": {"retry-after": "0"}}
LEAVING = {**SIMPLE, "coder": [SIMPLE["coder"][0], LOADING]}
"""The endpoint goes away after the call of a tool."""
RULES = EngineConfig(drain_seconds=0.1, outage_seconds=60)


class Waiting:
    """An engine whose model comes and goes."""

    def __init__(self, endpoint: LeavingEndpoint, store: Store, engine: InProcessEngine) -> None:
        self.endpoint, self.store, self.engine = endpoint, store, engine

    async def ask(self, **request: Any) -> str:
        accepted = await self.engine.submit(RunRequest([HumanMessage("1+3=?")], **request))
        return accepted.run.run_id

    async def events(self, run_id: str, until: str = "", after: int = 0) -> list[Event]:
        """Return the events of a run up to the first one of a type, or all."""
        found: list[Event] = []
        async for page in self.engine.events(run_id, after):
            for record in page:
                found.append(read_event(record.type, record.data))
                if record.type == until:
                    return found
        assert not until, f"the run ended without {until}: {[one.type for one in found]}"
        return found

    async def until_waiting(self, run_id: str) -> RunWaiting:
        event = (await self.events(run_id, "run_waiting"))[-1]
        assert isinstance(event, RunWaiting)
        return event


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(outages, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(outages, "MAX_PAUSE_SECONDS", 0.2)

    @asynccontextmanager
    async def opened(
        script: dict[str, Any] = SIMPLE, rules: EngineConfig = RULES, kind: Any = "server"
    ) -> AsyncIterator[Waiting]:
        async with (
            LeavingEndpoint(script) as endpoint,
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(
                SIMPLE, checkpointer=store.checkpointer, models={"base_url": endpoint.base_url}
            ) as it,
            open_engine(it.team, store, kind=kind, config=rules) as engine,
        ):
            yield Waiting(endpoint, store, engine)

    return opened


async def test_a_run_waits_for_a_model_that_is_not_there_yet(waiting):
    async with waiting() as it:
        run_id = await it.ask()
        event = await it.until_waiting(run_id)
        record = await it.engine.status(run_id)
        assert (record.status, record.waiting_for, record.started_at is None) == ("queued", "model", False)
        assert (record.waiting_since, record.waiting_until) == (event.since, event.until)
        assert event.until == pytest.approx(event.since + 60)
        await it.endpoint.start()
        frames = checked(await it.events(run_id))
        record = await it.engine.status(run_id)
    assert status(frames) == record.status == "completed"
    assert record.waiting_for is record.waiting_since is record.waiting_until is None
    assert names(frames).count("run_waiting") == names(frames).count("run_continued") == 1


async def test_what_a_run_has_done_is_not_done_again(waiting):
    async with waiting(LEAVING) as it:
        await it.endpoint.start()
        run_id = await it.ask()
        await it.until_waiting(run_id)
        await it.endpoint.stop()
        server = await it.endpoint.start(SIMPLE)
        frames = checked(await it.events(run_id))
        calls = await it.store.ledger.list_by_run(run_id)
    assert status(frames) == "completed"
    assert [(one.tool_name, one.attempts) for one in calls] == [("python_repl_tool", 1)]
    assert set(server.stats["by_role"]) == {"coder", "reporter"}, "the plan was written once"


async def test_a_waiting_run_leaves_its_slot_to_others_and_keeps_its_thread(waiting):
    rules = EngineConfig(working=1, drain_seconds=0.1, outage_seconds=60)
    async with waiting(rules=rules) as it:
        first = await it.ask(thread_id="a")
        behind = await it.ask(thread_id="a")
        await it.until_waiting(first)
        other = await it.ask(thread_id="b")
        await it.until_waiting(other)
        assert (await it.engine.status(behind)).started_at is None
        await it.endpoint.start()
        for run_id in (first, behind, other):
            assert status(checked(await it.events(run_id))) == "completed"
        ends = [(await it.engine.status(run_id)).ended_at or 0 for run_id in (first, behind)]
        assert ends == sorted(ends)
        # The slots are as many as before: one run works at a time.
        assert status(checked(await it.events(await it.ask()))) == "completed"


async def test_a_run_whose_model_stays_away_fails_with_the_reason(waiting):
    async with waiting(rules=EngineConfig(drain_seconds=0.1, outage_seconds=0.3)) as it:
        run_id = await it.ask()
        frames = checked(await it.events(run_id))
        record = await it.engine.status(run_id)
    assert (record.status, record.error_code, record.waiting_for) == ("failed", "model_unreachable", None)
    assert "runs.outage_seconds" in (record.error or "")
    assert "run_waiting" in names(frames)


async def test_without_a_time_a_run_fails_as_its_model_does(waiting):
    async with waiting(rules=EngineConfig(drain_seconds=0.1, outage_seconds=0)) as it:
        run_id = await it.ask()
        frames = checked(await it.events(run_id))
    assert data(frames, "error")[0]["code"] == "model_unreachable"
    assert "run_waiting" not in names(frames)


async def test_a_chat_does_not_wait_for_an_endpoint_that_never_answered(waiting):
    async with waiting(kind="chat") as it:
        frames = checked(await it.events(await it.ask()))
    assert data(frames, "error")[0]["code"] == "model_unreachable"
    assert "run_waiting" not in names(frames)


async def test_a_chat_waits_for_an_endpoint_that_has_answered(waiting):
    async with waiting(LEAVING, kind="chat") as it:
        await it.endpoint.start()
        run_id = await it.ask()
        await it.until_waiting(run_id)
        await it.endpoint.stop()
        await it.endpoint.start(SIMPLE)
        assert status(checked(await it.events(run_id))) == "completed"


async def test_a_waiting_run_can_be_cancelled(waiting):
    async with waiting(rules=EngineConfig(working=1, drain_seconds=0.1)) as it:
        run_id = await it.ask()
        await it.until_waiting(run_id)
        begun = time.monotonic()
        record = await it.engine.cancel(run_id)
        assert time.monotonic() - begun < 2
        assert (record.status, record.waiting_for) == ("cancelled", None)
        checked(await it.events(run_id))
        await it.endpoint.start()
        assert status(checked(await it.events(await it.ask()))) == "completed"


async def test_the_thread_of_a_waiting_run_can_be_deleted(waiting):
    async with waiting() as it:
        run_id = await it.ask(thread_id="a")
        await it.until_waiting(run_id)
        await it.engine.delete_thread("a")
        assert await it.store.runs.get(run_id) is None


async def test_a_message_to_a_waiting_run_is_accepted_and_answered_later(waiting):
    async with waiting(LEAVING) as it:
        await it.endpoint.start()
        run_id = await it.ask()
        await it.until_waiting(run_id)
        await it.endpoint.stop()
        sent = await it.engine.send_message(run_id, "Say it in one word.")
        await it.endpoint.start(SIMPLE)
        frames = checked(await it.events(run_id))
    assert status(frames) == "completed"
    assert [one["message_id"] for one in data(frames, "user_message")] == [sent.message_id]


async def test_waiting_runs_count_towards_the_limit_of_runs(waiting):
    rules = EngineConfig(drain_seconds=0.1, outage_seconds=60, limits=RunLimits(under_way=1))
    async with waiting(rules=rules) as it:
        await it.until_waiting(await it.ask())
        with pytest.raises(TooManyRuns):
            await it.ask()


async def test_a_stopped_program_leaves_a_waiting_run_to_the_next_one(waiting):
    async with waiting() as it:
        run_id = await it.ask()
        since = (await it.until_waiting(run_id)).since
    async with waiting() as it:
        seen = len(await it.events(run_id, "run_waiting"))
        again = (await it.events(run_id, "run_waiting", after=seen))[-1]
        assert isinstance(again, RunWaiting)
        assert again.since == since, "the time counts from the beginning of the outage"
        record = await it.engine.status(run_id)
        assert (record.status, record.waiting_for, record.stalls) == ("queued", "model", 0)


async def test_one_call_at_a_time_tries_whether_an_endpoint_is_back(monkeypatch):
    monkeypatch.setattr(outages, "FIRST_PAUSE_SECONDS", 0.01)
    queue, tried = EndpointQueue(), list[int]()

    async def call(number: int) -> None:
        queue.report_failure()
        await queue.wait()
        tried.append(number)

    calls = [asyncio.create_task(call(number)) for number in range(5)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert tried == [0]
    queue.report_answer()
    await asyncio.wait_for(asyncio.gather(*calls), 10)
    assert tried == [0, 1, 2, 3, 4]
