"""A person who does what chance says on one thread: writes, decides, cancels, and pulls the plug."""

import asyncio
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.graph import RunOptions, Team, TeamRules
from maniple.runs import EngineConfig, InProcessEngine, RunRequest, open_engine
from maniple.runs.engine import (
    InvalidPlanEdit,
    NothingToRetry,
    PlanNotEditable,
    RunNotWaiting,
    RunNotWorking,
    ThreadBusy,
)
from maniple.runs.turn import thread_state
from maniple.scope.budget import Budget
from maniple.scope.inputs import PlanChange
from maniple.store import Store, open_store
from maniple.tools.interaction import ask_tools
from tests.openai_server import OpenAIServer, call, reply
from tests.team import plan, scripted_team, step

REFUSED = (InvalidPlanEdit, NothingToRetry, PlanNotEditable, RunNotWaiting, RunNotWorking, ThreadBusy)
THREAD = "t"
RULES = TeamRules(max_clarifications=2)
_HELLO = reply("Hello, that is all that I know about it at present.")
_HANDOFF = call("handoff_to_planner", locale="en-US")
_OPENING = "Number {number}: please compare what tea, coffee and cocoa cost in three towns, with the word"
_MAX_PAUSES = 60
_DOING = {
    "gated": [call("python_repl_tool", code="1"), reply("It is 4.")],
    "approved": [call("bash_tool", cmd="ls"), reply("Done.")],
    "asking": [call("ask_human", question="Which town?"), reply("Asked.")],
    "failing": [reply("STEP FAILED: There is none.")],
    "plain": [reply("It is 4.")],
}
_SLOW = reply("Found it in all of the shops of the three towns, and in some others.", delay_seconds=0.05)
_FINDINGS = [reply("Found."), _SLOW, reply("STEP FAILED: It is offline.")]


@dataclass
class Process:
    """One process on the data folder."""

    engine: InProcessEngine
    store: Store
    team: Team
    gate: asyncio.Event
    """Opens the coder's tool."""


@asynccontextmanager
async def process(folder: Path, server: OpenAIServer) -> AsyncIterator[Process]:
    gate = asyncio.Event()

    @tool
    async def python_repl_tool(code: str) -> str:
        """Run Python."""
        await gate.wait()
        return "4"

    @tool
    async def bash_tool(cmd: str) -> str:
        """Run a command."""
        return "a file"

    tools = Offer({"coder": [python_repl_tool, bash_tool, *ask_tools(9)]})
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        scripted_team({}, server=server, checkpointer=store.checkpointer, toolbox=tools, rules=RULES) as it,
        open_engine(
            it.team, store, kind="server", config=EngineConfig(approval=["bash_tool"], drain_seconds=0)
        ) as engine,
    ):
        yield Process(engine, store, it.team, gate)


def copy_data(folder: Path, to: Path) -> Path:
    """Copy a data folder as it is at one moment, which is what a killed process leaves."""
    to.mkdir(parents=True)
    with (
        closing(sqlite3.connect(folder / "maniple.db")) as old,
        closing(sqlite3.connect(to / "maniple.db")) as new,
    ):
        old.backup(new)
    return to


@dataclass
class History:
    """The thread, and what was said on it: each time with a word that occurs nowhere else."""

    folder: Path
    server: OpenAIServer
    chance: random.Random
    it: Process = field(init=False)
    said: dict[str, str] = field(default_factory=dict)
    """What the person said, by its word."""
    undone: set[str] = field(default_factory=set)
    """The words of runs that were rolled back; one that was retried has no state to return to."""
    refused: dict[str, str] = field(default_factory=dict)
    """The reasons of what was refused, by its word."""
    lives: int = 0
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _words: int = 0
    _retried: set[str] = field(default_factory=set)
    _run_words: dict[str, list[str]] = field(default_factory=dict)
    """The words of each run."""

    async def __aenter__(self) -> "History":
        await self._open(self.folder / "life-0")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.it.gate.set()
        await self._stack.aclose()

    async def _open(self, folder: Path) -> None:
        await asyncio.to_thread(folder.mkdir, exist_ok=True)
        self.it = await self._stack.enter_async_context(process(folder, self.server))

    def copy(self, name: str) -> Path:
        return copy_data(self.folder / f"life-{self.lives}", self.folder / name)

    async def kill(self) -> None:
        """Go on with what is on the disk at this moment, and forget the process."""
        await asyncio.to_thread(self.copy, f"life-{self.lives + 1}")
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self.lives += 1
        await self._open(self.folder / f"life-{self.lives}")

    def new_word(self) -> str:
        self._words += 1
        return f"w{self._words}x"

    async def _say(self, run_id: str, what: str, word: str, sent: Awaitable[Any]) -> Any:
        """Send something that has a word; it counts if it is not refused."""
        try:
            result = await sent
        except REFUSED as error:
            self.refused[word] = str(error)
            return None
        self.said[word] = what
        self._run_words.setdefault(run_id, []).append(word)
        return result

    # What the models answer.

    def script(self) -> dict[str, Any]:
        steps = [step("coder", "Sum"), step("researcher", "Find"), step("reporter", "Report")]
        doing = self.chance.choices([*_DOING], weights=[5, 3, 3, 1, 1])[0]
        asks_meanwhile = doing in ("approved", "asking") and self.chance.random() < 0.7
        if asks_meanwhile or self.chance.random() < 0.5:
            steps = [{**one, "needs": []} for one in steps[:2]] + steps[2:]
        beginning = {
            "work": [_HANDOFF],
            "clarify": [call("ask_user", question="Which year?"), _HANDOFF],
            "chat": [_HELLO],
            "broken": [{"status": 401}],
        }
        kinds = self.chance.choices([*beginning], weights=[8, 2, 1, 1])
        planner: list[Any] = [reply(json.dumps(plan(*steps)))]
        return {
            "coordinator": beginning[kinds[0]],
            "planner": planner if self.chance.random() < 0.9 else [{"status": 401}],
            "coder": _DOING[doing],
            "researcher": [_SLOW if asks_meanwhile else self.chance.choice(_FINDINGS)],
            "supervisor": [reply(json.dumps(self._decision())) for _ in range(6)],
            "reporter": [reply("# Report") if self.chance.random() < 0.9 else {"status": 401}],
        }

    def _decision(self) -> dict[str, Any]:
        kind = self.chance.choice(["answer", "answer", "pass_on", "change_plan", "next_run", "replan"])
        changes = [{"action": "skip", "step_id": 2}] if kind == "change_plan" else []
        return {"decision": kind, "reply": "Gladly.", "changes": changes, "steps": []}

    # What the person does.

    async def turn(self, most: int = 4) -> None:
        """One request, and at most so many other things, until all runs have ended."""
        self.server.reset(self.script())
        self.it.gate.clear()
        run_id = await self.ask()
        doing: list[Callable[[str], Awaitable[str]]] = [
            *(self.message, self.message, self.edit, self.skip, self.add, self.kill_it),
            *(self.answer, self.answer),
            *(self.queue_and_cancel, self.queue, self.interrupt, self.roll_back, self.cancel, self.retry),
        ]
        for _ in range(self.chance.randint(0, most)):
            await self._some_events(run_id)
            run_id = await self.chance.choice(doing)(run_id)
            if self.chance.random() < 0.2:
                self.it.gate.set()
        self.it.gate.set()
        await self.finish()

    async def ask(self, **options: Any) -> str:
        word = self.new_word()
        text = f"{_OPENING.format(number=self._words)} {word}"
        few = self.chance.random() < 0.1
        request = RunRequest(
            [HumanMessage(text)],
            THREAD,
            RunOptions(auto_accepted_plan=self.chance.random() < 0.8),
            budget=Budget(model_calls=2) if few else Budget(),
            **options,
        )
        run = (await self.it.engine.submit(request)).run
        self.said[word] = "request"
        self._run_words.setdefault(run.run_id, []).append(word)
        return run.run_id

    async def _some_events(self, run_id: str) -> None:
        """Wait until the run has a number of events by chance, or does nothing more by itself."""
        number = self.chance.randint(0, 25)

        async def follow() -> None:
            async for page in self.it.engine.events(run_id):
                if page[-1].number >= number:
                    return

        following = asyncio.create_task(follow())
        await asyncio.wait({following}, timeout=0.3)
        following.cancel()
        await asyncio.wait({following})

    async def message(self, run_id: str) -> str:
        word = self.new_word()
        await self._say(
            run_id,
            "message",
            word,
            self.it.engine.send_message(
                run_id,
                f"Of the shops in these towns, please show only those whose names contain the word {word}.",
            ),
        )
        return run_id

    async def _change(self, run_id: str, change: PlanChange, word: str) -> str:
        await self._say(run_id, change.action, word, self.it.engine.change_plan(run_id, change))
        return run_id

    async def edit(self, run_id: str) -> str:
        word = self.new_word()
        step_id = self.chance.randint(1, 3)
        return await self._change(run_id, PlanChange("edit", step_id, description=f"Find {word}."), word)

    async def skip(self, run_id: str) -> str:
        with suppress(REFUSED):
            await self.it.engine.change_plan(run_id, PlanChange("skip", self.chance.randint(1, 2)))
        return run_id

    async def add(self, run_id: str) -> str:
        word = self.new_word()
        new = PlanChange("add", 0, "Look", f"Look for {word}.", "researcher", after=1)
        return await self._change(run_id, new, word)

    async def kill_it(self, run_id: str) -> str:
        await self.kill()
        return run_id

    async def cancel(self, run_id: str) -> str:
        await self.it.engine.cancel(run_id)
        return run_id

    async def retry(self, run_id: str) -> str:
        try:
            await self.it.engine.retry(run_id)
            self._retried.add(run_id)
        except REFUSED:
            pass
        return run_id

    async def queue(self, run_id: str) -> str:
        if not await self._waits():
            await self.ask()
        return run_id

    async def queue_and_cancel(self, run_id: str) -> str:
        if not await self._waits():
            await self.it.engine.cancel(await self.ask())
        return run_id

    async def interrupt(self, run_id: str) -> str:
        return run_id if await self._waits() else await self.ask(when_busy="interrupt")

    async def roll_back(self, run_id: str) -> str:
        if await self._waits():
            return run_id
        busy = [one.run_id for one in await self.unfinished()]
        new = await self.ask(when_busy="rollback")
        for one in busy:
            is_cancelled = (await self.it.engine.status(one)).status == "cancelled"
            if is_cancelled and one not in self._retried:
                self.undone.update(self._run_words.get(one, ()))
        return new

    async def answer(self, run_id: str) -> str:
        """Answer what the run asks: while it waits, or one of its steps while the others go on."""
        if run_id and not await self._waits():
            word = self.new_word()
            sent = self.it.engine.resume(run_id, f"No, that of {word}")
            await self._say(run_id, "answer to a step", word, sent)
        elif (asked := await self._asked()) is not None:
            answer, word = self._answer_to(asked)
            waiting = [one for one in await self.unfinished() if one.status == "interrupted"]
            for one in waiting[:1]:
                sent = self.it.engine.resume(one.run_id, answer)
                await self._say(one.run_id, f"answer to {asked.get('kind')}", word, sent)
        return run_id

    def _answer_to(self, asked: dict[str, Any]) -> tuple[Any, str]:
        word = self.new_word()
        by_kind: dict[str, list[Any]] = {
            "question": [f"That of {word}"],
            "tool_approval": [
                f"No, there is no backup of {word}",
                {"type": "edit", "args": {"cmd": f"ls {word}"}},
                {"type": "reject", "message": f"Never {word}"},
            ],
            "plan_review": [f"Rather the prices of {word}, please.", self._edited(asked, word)],
        }
        if asked.get("reason") == "unknown_result":
            return f"result: it printed {word}", word
        return self.chance.choice(by_kind[asked["kind"]]), word

    def _edited(self, asked: dict[str, Any], word: str) -> Any:
        edited = json.loads(json.dumps(asked.get("plan") or {}))
        for one in edited.get("steps", [])[:1]:
            one["description"] = f"Find what {word} is."
        return edited if self.chance.random() < 0.5 else json.dumps(edited)

    async def _asked(self) -> dict[str, Any] | None:
        if not any(one.status == "interrupted" for one in await self.unfinished()):
            return None
        state = await thread_state(self.it.team, THREAD)
        return state.interrupts[0].value if state.interrupts else None

    async def _waits(self) -> bool:
        """Whether the next message on the thread would be an answer."""
        return any(one.status == "interrupted" for one in await self.unfinished())

    async def unfinished(self) -> list[Any]:
        """Return the runs that have not ended, oldest first."""
        runs = await self.it.store.runs.list_by_thread(THREAD)
        return [one for one in reversed(runs) if one.ended_at is None]

    async def finish(self) -> None:
        """Let all runs end, with an answer to each question."""
        for _ in range(_MAX_PAUSES):
            runs = await self.unfinished()
            waiting = [one for one in runs if one.status == "interrupted"]
            if not runs:
                return
            if not waiting:  # else the others wait for it
                async for _page in self.it.engine.events(runs[0].run_id):
                    pass
            elif (await self._asked() or {}).get("kind") == "plan_review":
                # Otherwise there would be one review after another.
                await self.it.engine.resume(waiting[0].run_id, "accept")
            else:
                await self.answer("")
        raise AssertionError(f"the runs do not end: {await self.unfinished()}")
