"""Calls of one answer take effect in its order; those that only read work beside each other."""

import asyncio

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import StructuredTool, tool

from maniple.agents import Task
from maniple.agents.middleware.call_order import is_ordered, preserve_call_order
from maniple.errors import BudgetExhausted
from maniple.evidence import MemoryEvidence
from maniple.scope.budget import Budget, UsageMeter
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.tools.evidence import source_line
from maniple.workspace import Workspaces
from tests.agents.endpoints import coder_with, results_shown, run_events
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, calls, open_team, scope, script
from tests.openai_server import reply
from tests.tools.built import build_file_search, build_file_tools

pytestmark = pytest.mark.anyio
TASK = Task(request="do it", title="Do", description="do it")
DONE = reply("Done.")


class World:
    """What the calls did, in order, and how many were at it at once."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.at_once = self.most = 0

    async def act(self, what: str) -> str:
        """Do something; what comes first takes longest."""
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        for _ in range(200 if what == "first" else 1):
            await asyncio.sleep(0)
        self.at_once -= 1
        if what == "break":
            raise ValueError("broken")
        self.did.append(what)
        return f"did {what}"

    def tool(self, name: str, **metadata) -> StructuredTool:
        return StructuredTool.from_function(coroutine=self.act, name=name, metadata=metadata)


async def test_calls_with_effects_run_one_by_one_in_the_order_of_the_answer():
    world = World()
    tools = [world.tool("python"), world.tool("bash")]
    answer = calls(*[(name, {"what": what}) for name, what in (("bash", "first"), ("python", "second"))] * 3)
    async with coder_with(tools, answer, DONE) as (coder, server):
        await coder.work(TASK)
    assert world.did == ["first", "second"] * 3
    assert world.most == 1
    assert ["first" in one for one in results_shown(server)] == [True, False] * 3


async def test_calls_that_only_read_run_beside_all_others():
    world, both = World(), asyncio.Barrier(2)

    @tool
    async def search(query: str) -> str:
        """Search."""
        async with asyncio.timeout(60):
            await both.wait()
        return query

    async def act(what: str) -> str:
        """Do something."""
        async with asyncio.timeout(60):
            await both.wait()
        return await world.act(what)

    search.metadata = {"idempotent": True}
    answer = calls(("act", {"what": "first"}), ("search", {"query": "x"}))
    acts = StructuredTool.from_function(coroutine=act)
    async with coder_with([search, acts], answer, DONE) as (coder, server):
        await coder.work(TASK)
    assert not any("failed" in one for one in results_shown(server))


async def test_a_file_that_is_written_and_read_in_one_answer_is_read_as_written(tmp_path):
    text = "word " * 2_000
    answer = calls(
        ("write_file", {"path": "a.txt", "content": text}),
        ("read_file", {"path": "a.txt"}),
        ("search_files", {"pattern": "word"}),
    )
    workspaces = Workspaces(tmp_path)
    tools = [*build_file_tools(workspaces), build_file_search(workspaces)]
    async with coder_with(tools, answer, DONE) as (coder, server):
        work = RunnableLambda(coder.work)
        await work.ainvoke(TASK, {"configurable": {"thread_id": "t"}})
    wrote, read, found = results_shown(server)
    assert "Wrote 10000 bytes" in wrote
    assert text in read
    assert "a.txt" in found


async def test_sources_are_numbered_in_the_order_of_the_calls_whichever_page_is_read_first():
    second_is_read = asyncio.Event()

    @tool
    async def crawl(url: str) -> str:
        """Read a page."""
        if url == "https://a.test/":
            async with asyncio.timeout(60):
                await second_is_read.wait()
        else:
            second_is_read.set()
        if "gone" in url:
            raise ValueError("gone")
        return await source_line(url, "A title", "A text.")

    crawl.metadata = {"idempotent": True}
    urls = ("https://a.test/", "https://gone.test/", "https://b.test/")
    answer = calls(*(("crawl", {"url": url}) for url in urls))
    token = var_child_runnable_config.set({"configurable": {SCOPE_KEY: RunScope(evidence=MemoryEvidence())}})
    try:
        async with coder_with([crawl], answer, DONE) as (coder, server):
            await coder.work(TASK)
    finally:
        var_child_runnable_config.reset(token)
    first, failed, second = results_shown(server)
    assert "Source [1]: https://a.test/" in first
    assert "gone" in failed
    assert "Source [2]: https://b.test/" in second


async def test_one_that_fails_or_does_not_exist_delays_no_other():
    world = World()
    answer = calls(("act", {"what": "break"}), ("nothing", {}), ("act", {}), ("act", {"what": "last"}))
    async with coder_with([world.tool("act")], answer, DONE) as (coder, server):
        async with asyncio.timeout(60):
            await coder.work(TASK)
    assert world.did == ["last"]
    assert len(results_shown(server)) == 4


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, True),
        (None, True),
        ({"idempotent": True}, False),
        ({"idempotent": True, "mode": "ordered"}, True),
        ({"mode": "parallel"}, False),
    ],
)
def test_the_metadata_decide_which_calls_keep_their_order(metadata, expected):
    async def act() -> str:
        return ""

    acts = StructuredTool.from_function(coroutine=act, description="Act.", metadata=metadata)
    assert is_ordered(acts) is expected


@pytest.fixture(params=[True, False], ids=["ledger", "no ledger"])
def book(request):
    return MemoryLedger() if request.param else None


async def test_behind_a_call_that_waits_for_people_the_others_wait_too(tmp_path, book):
    world = World()
    tools = [world.tool("bash_tool"), world.tool("python")]
    answer = calls(
        ("python", {"what": "before"}), ("bash_tool", {"what": "first"}), ("python", {"what": "then"})
    )
    run = scope(book, "bash_tool")
    async with open_team(tmp_path, script(answer, DONE), FakeTools(), run, tools=tools) as it:
        (waiting,) = await it.begin()
        assert waiting.value["tool_input"] == {"what": "first"}
        assert world.did == ["before"]
    async with open_team(tmp_path, script(DONE), FakeTools(), run, tools=tools) as it:
        assert await it.answer("approve") == []
        assert [one["content"] for one in it.tool_messages()] == ["did before", "did first", "did then"]
    assert world.did == ["before", "first", "then"]


async def test_effects_keep_their_order_in_whatever_order_they_are_approved(tmp_path):
    world, book = World(), MemoryLedger()
    tools = [world.tool("bash_tool")]
    answer = calls(*[("bash_tool", {"what": what}) for what in ("first", "second", "third")])
    run = scope(book, "bash_tool")
    async with open_team(tmp_path, script(answer, DONE), FakeTools(), run, tools=tools) as it:
        waiting = {one.value["tool_input"]["what"]: one.id for one in await it.begin()}
    async with open_team(tmp_path, script(DONE), FakeTools(), run, tools=tools) as it:
        left = await it.answer_by_id({waiting["third"]: "approve"})
        assert sorted(one.value["tool_input"]["what"] for one in left) == ["first", "second"]
        left = await it.answer_by_id({waiting["second"]: "approve"})
        assert [one.value["tool_input"]["what"] for one in left] == ["first"]
        assert world.did == []
    async with open_team(tmp_path, script(DONE), FakeTools(), run, tools=tools) as it:
        assert await it.answer_by_id({waiting["first"]: "reject"}) == []
        shown = [one["content"] for one in it.tool_messages()]
        assert [one.startswith("did") for one in shown] == [False, True, True]
    assert world.did == ["second", "third"]


async def test_after_a_crash_what_had_not_ended_goes_on_in_order(tmp_path):
    machine, book = FakeTools(), MemoryLedger()
    each = calls(*[("bash_tool", {"cmd": cmd}) for cmd in ("one", "two", "three")])
    async with open_team(tmp_path, script(each, DONE), machine, scope(book)) as it:
        await it.die({"messages": [("user", "do it")]}, machine, at="two")
    assert machine.ran == ["one", "two"]
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        (waiting,) = await it.recover()
        assert waiting.value["reason"] == "unknown_result"
        assert machine.ran == ["one", "two"]
        assert await it.answer("run again") == []
    assert machine.ran == ["one", "two", "two", "three"]


async def test_a_call_that_ends_the_run_leaves_none_behind_it_waiting():
    world = World()
    answer = calls(("act", {"what": "first"}), ("act", {"what": "second"}), ("act", {"what": "third"}))
    meter = UsageMeter(Budget(tool_calls=1))
    async with coder_with([world.tool("act")], answer, DONE) as (coder, _):
        config = {"callbacks": meter.callbacks, "configurable": {SCOPE_KEY: RunScope("r", None, meter)}}
        with preserve_call_order():
            async with asyncio.timeout(60):
                _, error = await run_events(coder.graph, {"messages": coder._messages(TASK)}, config)
    assert world.did == ["first"]
    assert isinstance(error, BudgetExhausted)
