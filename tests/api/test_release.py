"""What a conversation's code has left at work ends when its run is cancelled, or it is deleted."""

import asyncio

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, call, reply, serving
from tests.sandbox.host import all_end, new_marker, watched

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("how", ["cancelled", "deleted"])
async def test_a_process_in_the_background_ends_with_the_run_or_the_conversation(tmp_path, how):
    marker = new_marker()
    # It works on while the model is asked what comes next, or after the run.
    works = f'python3 -c \'import time; open("up", "w"); time.sleep(1000)\' {marker} &'
    command = call("bash_tool", cmd=f"{works} until [ -e up ]; do sleep 0.01; done")
    coder = [command, {"hang": True} if how == "cancelled" else reply("Done.")]
    sandbox = {"backend": "bubblewrap"}
    with serving({**SIMPLE, "coder": coder}) as model:
        async with open_service(model.base_url, tmp_path, sandbox=sandbox) as it:
            run = await it.run()
            if how == "cancelled":
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 2, 100)
            else:
                await it.events_of(run["run_id"])
            with watched(marker) as living:
                assert living
                if how == "cancelled":
                    assert (await it.client.post(f"/api/runs/{run['run_id']}/cancel")).status_code == 200
                else:
                    assert (await it.client.delete(f"/api/threads/{run['thread_id']}")).status_code == 200
                assert all_end(living, within_seconds=2)
