"""A team of one coder whose run pauses, dies and continues: each `open_team` continues from the last disk."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt

from maniple.agents.offers import Offer
from maniple.graph import RECURSION_LIMIT, RunOptions
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from tests.agents.memory_ledger import MemoryLedger
from tests.openai_server import OpenAIServer, call, reply
from tests.team import plan, scripted_team, step

_MARKS = re.compile(r"\A<data \w+>\n|\n</data \w+>\Z")
PLAN = plan(step("coder"), step("reporter"))


def script(*coder: dict[str, Any], **roles: Any) -> dict[str, Any]:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(PLAN))],
        "coder": list(coder),
        "reporter": [reply("# Report")],
        **roles,
    }


def calls(*each: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """One reply of several tool calls."""
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in each]}


@dataclass
class FakeTools:
    """Tools that record their calls; the record survives every simulated crash."""

    ran: list[str] = field(default_factory=list)
    stuck: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    sticks_at: str | None = None
    """The command that blocks until it is cancelled; "" for any."""

    def tools(self) -> list[BaseTool]:
        async def bash_tool(cmd: str, count: int = 1) -> str:
            """Run a command."""
            self.ran.append(cmd)
            if self.sticks_at in ("", cmd):
                self.stuck.release()
                await asyncio.Event().wait()
            if cmd == "fail":
                raise ValueError("it broke")
            return f"did {cmd}"

        async def look(what: str) -> str:
            """Look at something."""
            return await bash_tool(what)

        look_up = StructuredTool.from_function(coroutine=look, name="look", metadata={"idempotent": True})
        return [StructuredTool.from_function(coroutine=bash_tool, name="bash_tool"), look_up]


@dataclass
class TeamProcess:
    """The team in one process, from its start to its end."""

    team: CompiledStateGraph[Any, Any, Any, Any]
    server: OpenAIServer
    config: dict[str, Any]

    async def begin(self, text: str = "do it") -> list[Interrupt]:
        return await self._go({"messages": [HumanMessage(text)]})

    async def recover(self) -> list[Interrupt]:
        return await self._go(None)

    async def answer(self, *answers: Any) -> list[Interrupt]:
        """Answer the first of the questions that wait."""
        waiting = (await self.team.aget_state(self.config)).interrupts
        return await self._go(Command(resume={w.id: a for w, a in zip(waiting, answers, strict=False)}))

    async def answer_by_id(self, answers: dict[str, Any]) -> list[Interrupt]:
        return await self._go(Command(resume=answers))

    async def die(self, given: Any, machine: FakeTools, at: str = "", calls: int = 1) -> None:
        """Run until so many tool calls are stuck, then end."""
        machine.sticks_at, machine.stuck = at, asyncio.Semaphore(0)
        task = asyncio.create_task(self._go(given))
        for _ in range(calls):
            stuck = asyncio.create_task(machine.stuck.acquire())
            await asyncio.wait({task, stuck}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
            assert stuck.done(), task
        task.cancel()
        await asyncio.wait({task})
        machine.sticks_at = None

    async def _go(self, given: Any) -> list[Interrupt]:
        await self.team.ainvoke(given, self.config, context=RunOptions(), durability="sync")
        return list((await self.team.aget_state(self.config)).interrupts)

    def asked(self, role: str = "coder") -> int:
        """Return how often the model was asked for a role."""
        return self.server.stats["by_role"].get(role, 0)

    def tool_messages(self) -> list[dict[str, Any]]:
        """Return the tool messages that the coder's model was shown at last, without their marks."""
        shown = [r["messages"] for r in self.server.requests if "You are the coder" in str(r["messages"][0])]
        messages = [message for message in shown[-1] if message["role"] == "tool"]
        return [message | {"content": _MARKS.sub("", message["content"])} for message in messages]


@asynccontextmanager
async def open_team(
    folder: Path, script: dict[str, Any], machine: FakeTools, scope: RunScope | None, **options: Any
) -> AsyncIterator[TeamProcess]:
    toolbox = Offer({"coder": options.pop("tools", None) or machine.tools()})
    async with AsyncSqliteSaver.from_conn_string(str(copy_of_disk(folder) / "checkpoints.db")) as saver:
        async with scripted_team(script, checkpointer=saver, toolbox=toolbox, **options) as it:
            values: dict[str, Any] = {"thread_id": "t"} | ({SCOPE_KEY: scope} if scope else {})
            config = {"configurable": values, "recursion_limit": RECURSION_LIMIT}
            yield TeamProcess(it.team, it.server, config)


def copy_of_disk(folder: Path) -> Path:
    """Return a copy of the newest life's folder, as a killed process leaves it; an empty one at first.

    In this process, a cancelled write of the former life may hold its lock on the database for ever.
    """
    lives = len(list(folder.glob("life-*")))
    new = folder / f"life-{lives}"
    if not lives:
        new.mkdir()
        return new
    # The index of the write-ahead log belongs to the living; the next connection makes its own.
    return Path(copytree(folder / f"life-{lives - 1}", new, ignore=ignore_patterns("*-shm")))


def scope(book: MemoryLedger | None, *approval: str) -> RunScope:
    return RunScope(run_id="r", ledger=book, approval=frozenset(approval))
