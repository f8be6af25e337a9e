"""A second run on a busy thread, again and again, at whatever moment the first one is."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import RunRequest, ThreadBusy, open_engine
from maniple.store import open_store
from tests.openai_server import SIMPLE
from tests.runs.test_recovery import told
from tests.team import checked, scripted_team, status

pytestmark = pytest.mark.anyio
TIMES = 100
ENDS = {
    "enqueue": {"completed"},
    "reject": {"completed"},
    "interrupt": {"cancelled", "completed"},
    "rollback": {"cancelled", "completed"},
}


@pytest.mark.parametrize("policy", ENDS)
async def test_a_second_run_leaves_both_with_one_end_each(tmp_path, policy):
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team({**SIMPLE, "by_history": True}, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server") as engine,
    ):
        for number in range(TIMES // len(ENDS)):
            thread_id = f"t{number}"
            first = (await engine.submit(_request("first", thread_id))).run.run_id
            async for page in engine.events(first):
                if page[-1].number > number * 2:
                    break  # the second comes at another moment each time
            try:
                second = (await engine.submit(_request("second", thread_id, policy))).run.run_id
            except ThreadBusy:
                assert policy == "reject"
                second = first
            async with asyncio.timeout(20):
                ends = [await told(engine, run_id) for run_id in (first, second)]
            assert status(checked(ends[1])) == "completed"
            assert status(checked(ends[0])) in ENDS[policy]
            said = [message.content for message in ends[1][-1].messages]
            was_cancelled = (await engine.status(first)).status == "cancelled"
            assert ("first" in said) is not (policy == "rollback" and was_cancelled)
            assert said.count("second") == (second != first)
        runs = await store.runs.list("", limit=1_000)
    assert {run.status for run in runs} <= ENDS[policy]


def _request(text: str, thread_id: str, policy="enqueue") -> RunRequest:
    return RunRequest([HumanMessage(text)], thread_id=thread_id, when_busy=policy)
