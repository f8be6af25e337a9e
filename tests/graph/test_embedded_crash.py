"""A team in another graph whose process is killed: no call is made again without a question.

Each process is a real one; the first is killed with SIGKILL while a tool or a model works.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt

from maniple.graph import RunOptions, TeamRules
from tests.openai_server import call, reply
from tests.sizes import rest_is_slow
from tests.team import Offer, Scripted, plan, scripted_team, step

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
CONFIG = {"configurable": {"thread_id": "t"}}
QUESTION = {"messages": [HumanMessage("Do it")]}
HANG = reply("", hang=True)


def script(*coder: dict[str, Any], **roles: Any) -> dict[str, Any]:
    return {
        "by_history": True,
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("coder"), step("reporter"))))],
        "coder": list(coder),
        "reporter": [reply("# Report")],
        **roles,
    }


def calls(*each: dict[str, Any]) -> dict[str, Any]:
    """One reply of several tool calls."""
    return {"tool_calls": [one for reply in each for one in reply["tool_calls"]]}


@dataclass
class EffectTools:
    """Tools that write their effects into a file, and stop before or after one if they are told to."""

    folder: Path
    stops: str = ""
    """Where the tools stop: `before X` or `after X`, `X` being an effect; several with commas."""
    stopped: set[str] = field(default_factory=set[str])

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return sorted(path.read_text().split()) if path.exists() else []

    def tools(self) -> list[BaseTool]:
        async def add(effect: str) -> str:
            """Add an effect."""
            await self._reach(f"before {effect}")
            with (self.folder / "effects").open("a") as file:
                file.write(f"{effect}\n")
            await self._reach(f"after {effect}")
            return f"added {effect}"

        async def look(effect: str) -> str:
            """Look at something."""
            return await add(effect)

        idempotent = {"idempotent": True}
        return [
            StructuredTool.from_function(coroutine=add, name="add"),
            StructuredTool.from_function(coroutine=look, name="look", metadata=idempotent),
        ]

    async def _reach(self, place: str) -> None:
        places = set(self.stops.split(", "))
        if place in places:
            self.stopped.add(place)
            if self.stopped == places:
                print("stuck", flush=True)
            await asyncio.Event().wait()


def in_node(team: Any, saver: Any) -> Any:
    graph = StateGraph(MessagesState).add_node("team", team).add_edge(START, "team")
    return graph.compile(checkpointer=saver)


def in_function(team: Any, saver: Any) -> Any:
    async def ask(state: MessagesState) -> dict[str, Any]:
        done = await team.ainvoke({"messages": state["messages"]})
        return {"messages": done["messages"][-1:]}

    return in_node(ask, saver)


def in_graph_in_graph(team: Any, saver: Any) -> Any:
    return in_node(in_node(team, None), saver)


def alone(team: Any, saver: Any) -> Any:
    return team


WRAPS = {each.__name__: each for each in (in_node, in_function, in_graph_in_graph, alone)}


@dataclass
class Embedded:
    graph: Any
    it: Scripted
    options: dict[str, Any]

    async def go(self, given: Any) -> list[Interrupt]:
        done = await self.graph.ainvoke(given, CONFIG, context=RunOptions(), **self.options)
        return list(done.get("__interrupt__", ()))

    def tool_messages(self) -> list[str]:
        """Return the results that the coder's model was shown at last."""
        shown = [
            r["messages"] for r in self.it.server.requests if "You are the coder" in str(r["messages"][0])
        ]
        return [str(one["content"]) for one in shown[-1] if one["role"] == "tool"]


@asynccontextmanager
async def opened(
    folder: Path,
    replies: dict[str, Any],
    *,
    wrap: str = "in_node",
    stops: str = "",
    rules: TeamRules | None = None,
    **options: Any,
) -> AsyncIterator[Embedded]:
    toolbox = Offer(dict.fromkeys(("coder", "researcher"), EffectTools(folder, stops).tools()))
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        own = saver if wrap == "alone" else None
        async with scripted_team(replies, checkpointer=own, toolbox=toolbox, rules=rules) as it:
            yield Embedded(WRAPS[wrap](it.team, saver), it, options)


@dataclass
class ProcessOrder:
    """What a process does until it is killed."""

    replies: dict[str, Any]
    wrap: str = "in_node"
    stops: str = ""
    asked: int = 0
    """The number of requests for the coder after which it is killed, if no tool `stops`."""
    answer: Any = None
    """The answer with which it resumes the run; without one it begins a run."""
    durability: str = ""


async def begin_run(folder: Path) -> None:
    """Do in a process what `order.json` says."""
    order = ProcessOrder(**json.loads((folder / "order.json").read_text()))
    options = {"durability": order.durability} if order.durability else {}
    given = Command(resume=order.answer) if order.answer else QUESTION
    async with opened(folder, order.replies, wrap=order.wrap, stops=order.stops, **options) as it:
        running = asyncio.create_task(it.go(given))
        if order.asked:
            await asyncio.to_thread(
                it.it.server.wait_for, lambda seen: seen["by_role"].get("coder", 0) >= order.asked
            )
            print("stuck", flush=True)
        await running


async def die(folder: Path, replies: dict[str, Any], **order: Any) -> None:
    """Run in a process, and kill it where its order says."""
    (folder / "order.json").write_text(json.dumps(asdict(ProcessOrder(replies, **order))))
    run = f"asyncio.run(begin_run(pathlib.Path({str(folder)!r})))"
    code = f"import asyncio, pathlib; from {__name__} import begin_run; {run}"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(60):
            assert await child.stdout.readline() == b"stuck\n"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()


TWO = script(call("add", effect="one"), call("add", effect="two"), reply("done"))


@pytest.mark.parametrize("wrap", rest_is_slow(WRAPS, 1))
@pytest.mark.parametrize(
    ("stops", "effects"), rest_is_slow([("after two", ["one", "two"]), ("before two", ["one"])], 1)
)
async def test_a_call_that_was_cut_off_is_asked_about_and_a_recorded_one_is_not_made_again(
    tmp_path, wrap, stops, effects
):
    machine = EffectTools(tmp_path)
    await die(tmp_path, TWO, wrap=wrap, stops=stops)
    assert machine.effects == effects
    async with opened(tmp_path, TWO, wrap=wrap) as it:
        (question,) = await it.go(None)
        assert question.value["kind"] == "tool_approval"
        assert question.value["reason"] == "unknown_result"
        assert (question.value["tool_name"], question.value["tool_input"]) == ("add", {"effect": "two"})
        assert machine.effects == effects
        assert await it.go(Command(resume="result: added before")) == []
        assert ["added one" in it.tool_messages()[0], "added before" in it.tool_messages()[1]] == [True, True]
    assert machine.effects == effects


@pytest.mark.slow
async def test_the_user_can_have_it_made_again(tmp_path):
    await die(tmp_path, TWO, stops="before two")
    async with opened(tmp_path, TWO) as it:
        await it.go(None)
        assert await it.go(Command(resume={"type": "run again"})) == []
    assert EffectTools(tmp_path).effects == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("durability", rest_is_slow(["", "async", "sync"], 1))
async def test_the_durability_of_the_graph_around_it_makes_no_difference(tmp_path, durability):
    await die(tmp_path, TWO, stops="after two", durability=durability)
    async with opened(tmp_path, TWO) as it:
        assert [one.value["reason"] for one in await it.go(None)] == ["unknown_result"]
    assert EffectTools(tmp_path).effects == ["one", "two"]


@pytest.mark.slow
async def test_a_call_that_may_be_repeated_is_repeated_without_a_question(tmp_path):
    replies = script(call("look", effect="one"), reply("done"))
    await die(tmp_path, replies, stops="after one")
    async with opened(tmp_path, replies) as it:
        assert await it.go(None) == []
    assert EffectTools(tmp_path).effects == ["one", "one"]


@pytest.mark.slow
@pytest.mark.parametrize("wrap", rest_is_slow(WRAPS, 1))
async def test_after_a_kill_in_the_model_call_no_call_is_made_again(tmp_path, wrap):
    await die(tmp_path, script(call("add", effect="one"), HANG), wrap=wrap, asked=2)
    async with opened(tmp_path, script(call("add", effect="one"), reply("done")), wrap=wrap) as it:
        assert await it.go(None) == []
        assert "added one" in it.tool_messages()[0]
    assert EffectTools(tmp_path).effects == ["one"]


@pytest.mark.slow
async def test_the_calls_of_one_answer_are_each_made_or_asked_about(tmp_path):
    """The first one is over but not in a checkpoint: the others of its answer are under way."""
    both = script(calls(call("add", effect="one"), call("add", effect="two")), reply("done"))
    await die(tmp_path, both, stops="after two")
    async with opened(tmp_path, both) as it:
        (question,) = await it.go(None)
        assert question.value["tool_input"] == {"effect": "two"}
        assert await it.go(Command(resume="skip")) == []
        assert "added one" in it.tool_messages()[0]
    assert EffectTools(tmp_path).effects == ["one", "two"]


@pytest.mark.slow
async def test_steps_that_run_concurrently_are_each_asked_about(tmp_path):
    one, two = (
        {**step("researcher", title, f"Add #run={title}"), "needs": []} for title in ("first", "second")
    )
    last = {**step("reporter"), "needs": [1, 2]}
    replies = script(
        planner=[reply(json.dumps(plan(one, two, last)))],
        researcher=[call("add", effect="{run}"), reply("done")],
    )
    machine = EffectTools(tmp_path)
    await die(tmp_path, replies, stops="before first, after second")
    assert machine.effects == ["second"]
    async with opened(tmp_path, replies) as it:
        questions = await it.go(None)
        by_effect = {one.value["tool_input"]["effect"]: one for one in questions}
        assert {one.value["reason"] for one in questions} == {"unknown_result"}
        assert sorted(by_effect) == ["first", "second"]
        answers = {by_effect["first"].id: "run again", by_effect["second"].id: "result: added before"}
        assert await it.go(Command(resume=answers)) == []
    assert machine.effects == ["first", "second"]


@pytest.mark.slow
async def test_two_kills_in_a_row_ask_once(tmp_path):
    await die(tmp_path, TWO, stops="after two")
    async with opened(tmp_path, TWO) as it:
        assert len(await it.go(None)) == 1
    three = script(*TWO["coder"][:2], call("add", effect="three"), reply("done"))
    await die(tmp_path, three, stops="after three", answer="result: added before")
    async with opened(tmp_path, three) as it:
        (question,) = await it.go(None)
        assert question.value["tool_input"] == {"effect": "three"}
        assert await it.go(Command(resume="skip")) == []
        assert "added before" in it.tool_messages()[1]
    assert EffectTools(tmp_path).effects == ["one", "three", "two"]


async def test_an_answer_counts_after_a_restart(tmp_path):
    """The question was recorded by a process that is gone; its answer is not asked for twice."""
    rules = TeamRules(approval=frozenset({"add"}))
    replies = script(call("add", effect="one"), reply("done"))
    async with opened(tmp_path, replies, rules=rules) as it:
        assert [one.value["reason"] for one in await it.go(QUESTION)] == ["approval"]
    async with opened(tmp_path, replies, rules=rules) as it:
        assert await it.go(Command(resume="yes")) == []
    assert EffectTools(tmp_path).effects == ["one"]


class SlowSaver(InMemorySaver):
    """Stores checkpoints late, as one on another machine does."""

    async def aput(self, *args: Any, **options: Any) -> Any:
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().aput(*args, **options)


async def test_a_call_begins_when_the_answer_that_asks_for_it_is_in_a_checkpoint():
    saver, stored = SlowSaver(), list[bool]()

    @tool
    async def add(effect: str) -> str:
        """Add an effect."""
        values = [one.checkpoint["channel_values"] async for one in saver.alist(CONFIG)]
        written = [message for each in values for message in each.get("messages", ())]
        stored.append(any(effect in str(getattr(one, "tool_calls", "")) for one in written))
        return "added"

    async with scripted_team(TWO, checkpointer=None, toolbox=Offer({"coder": [add]})) as it:
        await in_node(it.team, saver).ainvoke(QUESTION, CONFIG)
    assert stored == [True, True]


@pytest.mark.slow
async def test_no_graph_reads_the_records_and_they_are_deleted_with_their_thread(tmp_path):
    await die(tmp_path, TWO, stops="after two")
    async with opened(tmp_path, TWO) as it:
        saver = it.graph.checkpointer
        places = [one.config["configurable"]["checkpoint_ns"] async for one in saver.alist(CONFIG)]
        assert len([one for one in places if one.startswith("maniple_calls")]) == 1
        history = [one async for one in it.graph.aget_state_history(CONFIG)]
        assert {one.config["configurable"]["checkpoint_ns"] for one in history} == {""}
        await saver.adelete_thread("t")
        assert [one async for one in saver.alist(CONFIG)] == []


async def test_the_records_of_one_question_are_not_those_of_the_next(tmp_path):
    """The model's server numbers the calls of each conversation alike."""
    replies = script(call("add", effect="one"), reply("done"))
    async with opened(tmp_path, replies) as it:
        await it.go(QUESTION)
        await it.go(QUESTION)
    assert EffectTools(tmp_path).effects == ["one", "one"]
