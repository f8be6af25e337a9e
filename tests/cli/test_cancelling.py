"""/cancel on a conversation whose run was cut off."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.belongings import Belongings
from maniple.cli.commands import obey
from maniple.cli.conversations import Conversations
from maniple.cli.plain import PlainView
from maniple.cli.session import Session
from maniple.runs import recover_run
from maniple.sandbox import Workspaces
from tests.openai_server import serving
from tests.runs.test_recovery import left_behind, process

pytestmark = pytest.mark.anyio


async def test_a_run_that_was_cut_off_asks_no_model_when_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({"coordinator": [{"hang": True}]}) as server:
        run_id = await left_behind(tmp_path, server, "coordinator")
        await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)
        server.reset()
        async with process(tmp_path, server, kind="chat") as (engine, store):
            get = store.runs.get

            async def slow(*arguments: Any) -> Any:
                # As slow as it takes the run to come to its model, or to its end.
                async with asyncio.timeout(10):
                    while engine.driven and not server.stats["calls"]:  # noqa: ASYNC110 - neither tells
                        await asyncio.sleep(0.001)
                return await get(*arguments)

            monkeypatch.setattr(store.runs, "get", slow)
            session = Session(
                engine,
                Conversations(store, lambda left: recover_run(engine, store, left)),
                (),
                lambda: PlainView(io.StringIO(), io.StringIO()),
                Belongings(Workspaces(Path("/proc/none"))),
            )
            [listed] = await session.conversations.list()
            assert listed.standing == "cut off"
            assert (await obey(session, f"/cancel {listed.thread_id}")).startswith('Cancelled: "1+3=?"')
            run = await store.runs.get(run_id)
        assert run and run.status == "cancelled"
        assert server.stats["calls"] == 0
