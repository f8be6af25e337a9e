"""What a person said and decided on a thread is known in its next turn, whatever happened before."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import RunRequest
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.runs.histories import THREAD, History, Process, process
from tests.sizes import rest_is_slow
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
SEEDS = range(60)
OF_CALLS = frozenset({"answer to tool_approval", "answer to a step"})
"""What is, or may be, said to a call that waits for approval."""
_MARK = re.compile(r"data [0-9a-f]{8}")
NEXT = {
    "coordinator": [call("handoff_to_planner", locale="en-US")],
    "planner": [{"chunks": [json.dumps(plan(step("coder"), step("reporter")))]}],
    "coder": [reply("It is 4.")],
    "reporter": [reply("# Report")],
    "supervisor": [reply("none")],
}


async def prompts_of_next(it: Process, server: OpenAIServer) -> dict[str, Any]:
    """Ask one more question; return what each member was shown after its system prompt."""
    server.reset(NEXT)
    run = (await it.engine.submit(RunRequest([HumanMessage("And now?")], THREAD, RunOptions()))).run
    async for _ in it.engine.events(run.run_id):
        pass
    assert (await it.engine.status(run.run_id)).status == "completed"
    # The marks of untrusted data differ between processes.
    asked = [json.loads(_MARK.sub("data", json.dumps(one["messages"]))) for one in server.requests]
    return {
        role: next(messages[1:] for messages in asked if f"You are the {role}" in str(messages[0]["content"]))
        for role in ("coordinator", "planner", "coder")
    }


def text_of(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(str(one["content"]) for one in messages)


@pytest.mark.parametrize("seed", rest_is_slow(SEEDS, 4))
async def test_the_next_turn_knows_what_was_said_live_and_after_a_restart(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with serving(NEXT) as server:
        async with History(tmp_path, server, chance) as history:
            for _ in range(chance.randint(1, 3)):
                await history.turn()
            disk = history.copy("restarted")
            live = await prompts_of_next(history.it, server)
        async with process(disk, server) as restarted:
            after = await prompts_of_next(restarted, server)
    assert live == after
    known = {word: what for word, what in history.said.items() if word not in history.undone}
    for role in ("coder", "coordinator"):
        text = text_of(live[role])
        counts = {word: (what, text.count(word)) for word, what in known.items()}
        # What the user said to a call is also the reason of the step and the gap that it leaves.
        wrong = {word: one for word, one in counts.items() if one[1] != 1 and one[0] not in OF_CALLS}
        assert wrong == {}, (role, text)
        assert all(count for _, count in counts.values()), (role, text)
        assert not [word for word in history.undone if word in text], role
    assert [word for word in known if word not in text_of(live["planner"])] == []
