"""A call of the browser that waits for the user, is cut off, or is cancelled: with the real checkpointer."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from maniple.agents.scope import SCOPE_KEY, RunScope
from maniple.graph import RECURSION_LIMIT, RunOptions
from tests.agents.browsing.shop import HOME, Shop, done, shopping, told, use
from tests.agents.ledger import Book
from tests.openai_server import call

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def life(folder, script, shop: Shop, book: Book | None = None, **options: Any):
    """The team in one process, over the database and the records of the lives before."""
    scope = {SCOPE_KEY: RunScope(run_id="r", ledger=book)} if book else {}
    config = {"configurable": {"thread_id": "t", **scope}, "recursion_limit": RECURSION_LIMIT}
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        async with shopping(script, shop=shop, checkpointer=saver, **options) as (it, _):

            async def go(given: Any) -> list[Any]:
                await it.team.ainvoke(given, config, context=RunOptions(), durability="sync")
                return list((await it.team.aget_state(config)).interrupts)

            yield it, go


BEGIN = {"messages": [HumanMessage("Log in.")]}


def asking(*after: dict[str, Any]) -> dict[str, Any]:
    first = use("go_to_url", url=HOME), call("ask_human", inquire="Which code did you get?")
    return {**told(*first, *after), "by_history": True}


@pytest.mark.parametrize("with_ledger", [False, True])
async def test_a_question_pauses_the_run_and_its_answer_goes_on_where_it_was(tmp_path, with_ledger):
    book = Book() if with_ledger else None
    shop, script = Shop(), asking(use("input_text", index=1, text="4711"), done())
    async with life(tmp_path, script, shop, book) as (team, go):
        (question,) = await go(BEGIN)
        assert question.value == {"kind": "question", "question": "Which code did you get?", "options": []}
        assert await go(Command(resume={question.id: "4711"})) == []
    heard = [m["content"] for m in team.server.requests[-2]["messages"] if m["role"] == "tool"]
    assert heard[1] == "4711"
    assert [one["action"] for one in shop.only.done] == ["go_to_url", "input_text"]


async def test_the_answer_reaches_the_run_in_another_process(tmp_path):
    book, script = Book(), asking(use("click_element", index=0), done())
    async with life(tmp_path, script, Shop(), book) as (_, go):
        (question,) = await go(BEGIN)
    later = Shop()
    async with life(tmp_path, script, later, book) as (team, go):
        assert await go(Command(resume={question.id: "4711"})) == []
    assert "started anew" in str(team.server.requests[0]["messages"][-1])
    assert [one["action"] for one in later.only.done] == ["click_element"]


async def test_after_a_crash_the_loop_goes_on_with_what_it_had_done(tmp_path):
    book = Book()
    shop = Shop(hangs_at="click_element")
    script = {**told(use("go_to_url", url=HOME), use("click_element", index=0), done()), "by_history": True}
    async with life(tmp_path, script, shop, book) as (_, go):
        task = asyncio.create_task(go(BEGIN))
        async with asyncio.timeout(30):
            await shop.stuck.wait()
        task.cancel()
        await asyncio.wait({task})
    later = Shop()
    async with life(tmp_path, script, later, book) as (team, go):
        assert await go(None) == []
    # The click was decided on a page that died with the first process: it finds nothing, and harms nobody.
    assert [one["action"] for one in later.only.done] == ["click_element"]
    assert team.server.stats["by_role"]["browser"] == 1
    (asked, *_) = team.server.requests
    assert "Element with index 0 not found" in str(asked["messages"])
