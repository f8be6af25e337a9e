"""/cancel on a conversation whose run was cut off."""

import io
from functools import partial
from pathlib import Path

import pytest

from maniple.cli.chat.attachments import Attachments
from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.chat.session import ChatSession, Conversations
from maniple.cli.render.plain import PlainDisplay
from maniple.runs import recover_run
from maniple.workspace import Workspaces
from tests.cli.runs import team_of
from tests.openai_server import serving
from tests.runs.test_recovery import cut_off

pytestmark = pytest.mark.anyio


async def test_cancelling_an_interrupted_run_calls_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({"coordinator": [{"hang": True}]}) as server:
        async with cut_off(tmp_path, server, monkeypatch) as (run_id, engine, store):
            session = ChatSession(
                team_of(engine, ()),
                Conversations(store, partial(recover_run, engine.tasks)),
                lambda: PlainDisplay(io.StringIO(), io.StringIO()),
                Attachments(Workspaces(Path("/proc/none"))),
            )
            [listed] = await session.conversations.list()
            assert listed.state == "cut off"
            assert (await run_slash_command(session, f"/cancel {listed.thread_id}")).startswith(
                'Cancelled: "1+3=?"'
            )
            run = await store.runs.get(run_id)
        assert run and run.status == "cancelled"
        assert server.stats["calls"] == 0
