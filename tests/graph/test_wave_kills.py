"""Runs are killed at any moment while several steps are under way, one of them failed and one of them new."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from maniple.agents import Task
from maniple.graph import RunOptions
from maniple.graph.state import private_of, progress_of
from maniple.scope.context import SCOPE_KEY
from maniple.scope.inputs import PlanChange
from maniple.scope.run_scope import RunScope
from tests.graph.test_waves import Log, decision, planned, team
from tests.inboxes import an_inbox, sent

pytestmark = pytest.mark.anyio
STEPS = planned("A"), planned("B", 1), planned("C"), planned("D", agent="coder"), planned("E", 3, 4)
NEW = {"title": "New", "description": "Do this.", "agent_name": "researcher", "needs": ()}
MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 60)]
MAX_MOMENTS = 20


class MortalSaver(InMemorySaver):
    """Stores what was written before the process died, and knows which calls those writes end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_dead = False
        self.moments = 0
        self.last = 0
        self.death = asyncio.Event()
        self.ended: list[str] = []

    def pass_moment(self) -> None:
        """Die at the last moment, which any write or step may be."""
        self.moments += 1
        if self.moments == self.last:
            self.is_dead = True
            self.death.set()

    def begin_life(self, last: int) -> None:
        self.is_dead, self.moments, self.last, self.death = False, 0, last, asyncio.Event()

    async def aput(self, *args, **options):
        self.pass_moment()
        if self.is_dead:
            return args[0]
        return await super().aput(*args, **options)

    async def aput_writes(self, config, writes, task_id, task_path=""):
        self.pass_moment()
        if not self.is_dead:
            await super().aput_writes(config, writes, task_id, task_path)
            self.ended += [
                value["name"] for _, value in writes if isinstance(value, dict) and "kind" in value
            ]


class Life:
    """What happened over all processes: each begin of a try, and which had been stored before."""

    def __init__(self, saver: MortalSaver, random: Random) -> None:
        self.saver, self.random = saver, random
        self.changes: list[PlanChange] = []
        self.inbox = an_inbox()
        self.begun: list[str] = []
        self.repeated: list[str] = []

    async def work(self, log: Log, task: Task) -> str:
        number = 2 if "An earlier try failed" in str(task.note) else 1
        name = f"step_{task.step}_0_{number}"
        self.begun.append(name)
        if name in self.saver.ended:
            self.repeated.append(name)
        self.saver.pass_moment()
        for _ in range(self.random.randrange(6)):
            await asyncio.sleep(0)
        if task.title == "C" and not self.changes:
            self.changes.append(PlanChange("add", after=1, **NEW))
            await self.inbox.put(sent(self.changes[0]))
        return "STEP FAILED: not yet" if (task.title, number) == ("A", 1) else f"{task.title} is done."


def lifetimes(random: Random) -> Iterator[int]:
    """Yield at which moment each process dies; the last one does not."""
    for _ in range(6):
        yield random.randint(1, MAX_MOMENTS)
    yield 0


@pytest.mark.parametrize("seed", [0, *MANY])
async def test_a_run_that_is_killed_repeats_and_decides_nothing_that_was_stored(seed):
    random = Random(seed)
    saver = MortalSaver()
    life = Life(saver, random)
    asked_again = 0
    for last in lifetimes(random):
        saver.begin_life(last)
        life.inbox = an_inbox(*life.changes)
        had_decided = "supervisor" in saver.ended
        ways = dict.fromkeys(["A", "B", "C", "D", "E", "New", "Report"], life.work)
        async with team(*STEPS, ways=ways, supervisor=[decision("retry")], checkpointer=saver) as (it, _):
            scope = RunScope("run", inbox=life.inbox)
            config = {"configurable": {"thread_id": "t", SCOPE_KEY: scope}}
            is_new = not await it.team.checkpointer.aget_tuple(config)
            given = {"messages": [("user", "Do it")]} if is_new else None
            running = asyncio.ensure_future(
                it.team.ainvoke(given, config, context=RunOptions(), durability="sync")
            )
            death = asyncio.ensure_future(saver.death.wait())
            await asyncio.wait({running, death}, return_when=asyncio.FIRST_COMPLETED)
            death.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait({running})
            with suppress(asyncio.CancelledError):
                running.result()
            asked_again += len(it.prompts("supervisor")) if had_decided else 0
    progress = progress_of(saver.get({"configurable": {"thread_id": "t"}})["channel_values"])
    assert progress is not None
    assert [one.title for one in progress.steps] == ["A", "New", "B", "C", "D", "E", "Report"]
    assert {one.status for one in progress.steps} == {"completed"}
    assert life.repeated == []
    assert asked_again == 0
    assert {name for name in life.begun if name.startswith("step_1_")} == {"step_1_0_1", "step_1_0_2"}
    values = saver.get({"configurable": {"thread_id": "t"}})["channel_values"]
    assert private_of(values).get("next") == "FINISH"
