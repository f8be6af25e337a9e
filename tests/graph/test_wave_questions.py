"""Runs are killed while steps ask, are answered and work: no answer is lost, and nothing is done twice."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from langgraph.types import Command

from maniple.agents import Task
from maniple.errors import StoreError
from maniple.graph import RunOptions
from maniple.graph.state import private_of, progress_of
from maniple.scope.context import SCOPE_KEY
from maniple.scope.inbox import Inbox, InputRefused
from maniple.scope.inputs import ReceivedInput, StepAnswer
from maniple.scope.run_scope import RunScope
from maniple.tools.questions import ask_user
from tests.graph.test_wave_kills import MortalSaver
from tests.graph.test_waves import Log, planned, team

pytestmark = pytest.mark.anyio
STEPS = planned("A"), planned("B", 1), planned("C"), planned("D"), planned("E", agent="coder")
ASKING = {"A": 2, "C": 1, "D": 1}
"""How many questions each step asks, one after the other."""
MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 80)]
MAX_MOMENTS = 30


class User:
    """Answers what is shown, at moments of its own; what it has answered is never asked again."""

    def __init__(self, saver: MortalSaver, random: Random) -> None:
        self.saver, self.random = saver, random
        self.stored: dict[str, str] = {}
        self.resumed: dict[str, str] = {}
        """The answers to what the paused run waited for, by interrupt id; `answered` holds its questions."""
        self.answered: set[str] = set()
        self.asked_again: list[str] = []
        self.inbox = Inbox()

    def begin_life(self) -> None:
        known = [ReceivedInput(key, StepAnswer(key, "", value)) for key, value in self.stored.items()]
        self.inbox = Inbox(known, self)

    async def write(self, added, settled) -> None:
        """Store answers, unless the process dies before that."""
        await asyncio.sleep(0)
        if self.saver.is_dead:
            raise StoreError("the process died")
        self.stored |= {one.content.question: one.content.answer for one in added}

    async def attend(self) -> None:
        """Answer open questions, some later than others, until the process ends."""
        while True:
            await asyncio.sleep(0)
            if self.random.random() < 0.2 and self.inbox.questions:
                question = self.random.choice(self.inbox.questions)
                try:
                    await self.inbox.answer(question, f"answer to {question.key}")
                except StoreError:
                    return
                except InputRefused:  # its step has stopped to wait meanwhile
                    continue
                self.saver.pass_moment()

    async def work(self, log: Log, task: Task) -> str:
        given = []
        for number in range(ASKING.get(task.title, 0)):
            key = f"{task.title}{number}"
            await self._pass_time()
            was_answered = key in self.stored
            given.append((await ask_user({"kind": "question", "question": key}, key)).value)
            if was_answered and self.inbox.answer_to(key) is None:
                self.asked_again.append(key)
        await self._pass_time()
        return ", ".join(given) or "done"

    async def _pass_time(self) -> None:
        self.saver.pass_moment()
        for _ in range(self.random.randrange(8)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", [0, *MANY])
async def test_a_run_killed_while_steps_ask_keeps_all_answers(seed):
    random = Random(seed)
    saver = MortalSaver()
    user, begun, repeated = User(saver, random), [], []

    async def work(log: Log, task: Task) -> str:
        name = f"step_{task.step}_0_1"
        begun.append(name)
        if name in saver.ended:
            repeated.append(name)
        return await user.work(log, task)

    lives = [*(random.randint(1, MAX_MOMENTS) for _ in range(6)), *[0] * 10]
    for last in lives:
        saver.begin_life(last)
        user.begin_life()
        ways = dict.fromkeys(["A", "B", "C", "D", "E", "Report"], work)
        async with team(*STEPS, ways=ways, checkpointer=saver) as (it, _):
            scope = RunScope("run", inbox=user.inbox)
            config = {"configurable": {"thread_id": "t", SCOPE_KEY: scope}}
            if await _executed(it, await _input(it, config, user), config, saver, user):
                break
    progress = progress_of(saver.get({"configurable": {"thread_id": "t"}})["channel_values"])
    assert progress is not None
    assert {one.status for one in progress.steps} == {"completed"}
    assert repeated == []
    assert user.asked_again == []
    results = {one.title: one.result for one in progress.steps}
    for title, number in ASKING.items():
        assert results[title].split(", ") == [f"answer to {title}{one}" for one in range(number)]


async def _executed(it, given, config, saver: MortalSaver, user: User) -> bool:
    """Execute the run as an engine does, until it has ended or the process dies; return whether it ended."""
    attending = asyncio.ensure_future(user.attend())
    death = asyncio.ensure_future(saver.death.wait())
    try:
        while not saver.is_dead:
            running = asyncio.ensure_future(
                it.team.ainvoke(given, config, context=RunOptions(), durability="sync")
            )
            await asyncio.wait({running, death}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.cancel()
                await asyncio.wait({running})
            with suppress(asyncio.CancelledError):
                running.result()
            given = None
            if saver.is_dead:
                return False
            values = saver.get(config)["channel_values"]
            if private_of(values).get("next") == "FINISH":
                return True
            if await user.inbox.seal_questions():
                return await _answer_the_rest(it, config, user)
        return False
    finally:
        for one in (attending, death):
            one.cancel()
        await asyncio.wait({attending, death})


async def _input(it, config, user: User):
    """Return what an engine gives the graph of a new, a paused or a killed run."""
    state = await it.team.aget_state(config)
    if not state.values:
        return {"messages": [("user", "Do it")]}
    answers = {one.id: user.resumed[one.id] for one in state.interrupts if one.id in user.resumed}
    return Command(resume=answers) if answers else None


async def _answer_the_rest(it, config, user: User) -> bool:
    """Answer what the run waits for, as a user does after a pause; the next execution continues."""
    for pause in (await it.team.aget_state(config)).interrupts:
        key = pause.value["question"]
        if key in user.stored or key in user.answered:
            user.asked_again.append(key)
        user.answered.add(key)
        user.resumed[pause.id] = f"answer to {key}"
    return False
