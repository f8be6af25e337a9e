"""The records of runs that no engine drives: how long they are stored."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.scope import registry as module
from maniple.scope.registry import RunScopeRegistry
from maniple.scope.run_scope import RunScope, run_scope
from tests.openai_server import SIMPLE
from tests.team import scripted_team

pytestmark = pytest.mark.anyio
TEXT = "words of the page " * 5


async def read(scope: RunScope, url: str) -> None:
    await scope.evidence.add(url, "A page", "page", TEXT)


async def urls_of(scopes: RunScopeRegistry, thread: str) -> list[str]:
    """Return what a follow-up on a thread can cite."""
    with scopes.enter(f"the next of {thread}", thread) as scope:
        return [source.url for source in await scope.evidence.sources()]


async def test_what_idle_runs_have_read_is_forgotten_when_it_is_too_much_the_oldest_first(monkeypatch):
    monkeypatch.setattr(module, "MAX_IDLE_CHARACTERS", 2 * len(TEXT))
    scopes = RunScopeRegistry()
    with scopes.enter("at work", "working") as scope:
        await read(scope, "https://a.test/working")
        for number in range(3):
            with scopes.enter(f"r{number}", f"t{number}") as idle:
                await read(idle, f"https://a.test/{number}")
        for number in range(5):  # the same thread again takes no more room
            with scopes.enter(f"r2-{number}", "t2") as idle:
                await read(idle, "https://a.test/2")
        assert await urls_of(scopes, "working") == ["https://a.test/working"]
        assert await urls_of(scopes, "t0") == []
        assert await urls_of(scopes, "t1") == ["https://a.test/1"]
        assert await urls_of(scopes, "t2") == ["https://a.test/2"]


async def test_the_calls_of_a_run_are_forgotten_when_it_ends_and_what_it_read_stays():
    ledgers, recorded = [], []

    @tool
    async def python_repl_tool(code: str) -> str:
        """Run Python."""
        scope = run_scope()
        await read(scope, "https://a.test/")
        ledgers.append(scope.ledger)
        recorded.append(len(await scope.ledger.list_by_run(scope.run_id)))
        return "4"

    async with scripted_team(SIMPLE, checkpointer=None, toolbox=Offer({"coder": [python_repl_tool]})) as it:
        await it.team.ainvoke({"messages": [HumanMessage("1+3=?")]}, {"configurable": {"thread_id": "t"}})
        assert recorded == [1]
        assert await ledgers[0].list_by_run("") == []
        assert await urls_of(it.team.scopes, "t") == ["https://a.test/"]
