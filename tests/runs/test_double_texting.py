"""A second run on a busy thread, repeatedly, at every stage of the first one."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import RunRequest, ThreadBusy, in_process, open_engine
from maniple.store import open_store
from tests.openai_server import BRIEF
from tests.runs.test_recovery import events_of
from tests.sizes import sizes
from tests.team import scripted_team

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]
ENDS = {
    "enqueue": {"completed"},
    "reject": {"completed"},
    "interrupt": {"cancelled", "completed"},
    "rollback": {"cancelled", "completed"},
}


@pytest.mark.parametrize("times", sizes(5, 75))
@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("policy", ENDS)
async def test_a_second_run_leaves_both_with_one_end_each(tmp_path, policy, pauses, times):
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team({**BRIEF, "by_history": True}, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server") as engine,
    ):
        for number in range(times // 3 if pauses else times):
            thread_id = f"t{number}"
            first = (await engine.submit(_request("first", thread_id, pauses=pauses))).run.run_id
            async for page in engine.events(first):
                if page[-1].number > number % 25 * 2:
                    break  # the second comes at another moment each time
            refused = False
            try:
                second = (await engine.submit(_request("second", thread_id, policy))).run.run_id
            except ThreadBusy:
                assert policy == "reject"
                second, refused = first, True
            await _answered(engine, first)
            async with asyncio.timeout(60):
                ends = [await events_of(engine, run_id) for run_id in (first, second)]
            stands = [(await engine.status(run_id)).status for run_id in (first, second)]
            assert [events[-3].status for events in ends] == stands
            assert stands[0] in ENDS[policy]
            assert stands[1] == "completed"
            said = [message.content for message in ends[1][-1].messages]
            assert ("first" in said) is not (policy == "rollback" and stands[0] == "cancelled")
            assert said.count("second") == (0 if refused else 1)
        runs = await store.runs.list("", limit=1_000)
    assert {run.status for run in runs} <= ENDS[policy]


@pytest.mark.parametrize("policy", ["interrupt", "rollback"])
async def test_a_run_that_pauses_before_it_can_be_ended_is_answered_by_the_message(
    tmp_path, policy, monkeypatch
):
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team({**BRIEF, "by_history": True}, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server") as engine,
    ):
        first = (await engine.submit(_request("first", "t", pauses=True))).run.run_id

        async def paused_meanwhile(*_):
            async with asyncio.timeout(60):
                await events_of(engine, first)

        monkeypatch.setattr(in_process, "refuse_other_process", paused_meanwhile)
        second = (await engine.submit(_request("accept", "t", policy))).run.run_id
        async with asyncio.timeout(60):
            await events_of(engine, second)
        assert second == first
        assert (await engine.status(first)).status == "completed"


async def _answered(engine, run_id):
    """Accept the plan of a run that pauses with it, each time that it does."""
    async with asyncio.timeout(60):
        await events_of(engine, run_id)
        while (await engine.status(run_id)).status == "interrupted":
            await engine.resume(run_id, "accept")
            await events_of(engine, run_id)


def _request(text: str, thread_id: str, policy="enqueue", *, pauses=False) -> RunRequest:
    options = RunOptions(auto_accepted_plan=not pauses)
    return RunRequest([HumanMessage(text)], thread_id, options, when_busy=policy)
