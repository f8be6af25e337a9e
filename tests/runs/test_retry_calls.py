"""A retry makes no recorded call again, whatever had ended the try before it."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.continuation import MAX_CHARACTERS, load_messages, save_messages
from maniple.agents.offers import Offer
from maniple.config import TeamSettings
from maniple.errors import ModelError
from maniple.graph import RunOptions, TeamRules
from maniple.runs import EngineConfig, open_engine
from maniple.scope.run_scope import run_scope
from maniple.store import open_store
from tests.agents.browsing.shop import HOME, done, shop_script, shopping, use
from tests.agents.test_compact import COMPACT
from tests.openai_server import call, reply
from tests.runs.test_retry import AWAY, ORDERS, RULES, Opened, Shop, opening, script
from tests.team import data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
__all__ = ["opening"]
ORDERED = reply("Ordered.")
HANG = {"hang": True}


@pytest.fixture
def opening_alone(tmp_path):
    @asynccontextmanager
    async def opened(script_, offer):
        settings = TeamSettings(members=("manus", "reporter"))
        async with (
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(script_, checkpointer=store.checkpointer, toolbox=offer, settings=settings) as it,
            open_engine(it.team, store, kind="server", config=EngineConfig(drain_seconds=0.1)) as engine,
        ):
            here = Opened(it, store, engine)

            async def ask():
                run = await here.ask(options=RunOptions(agent="manus"))
                await here.frames(run.run_id)
                return run.run_id

            yield it, ask, here.retried

    return opened


async def cancel_at(here, run, requests):
    """Retry a run, and cancel it when the researcher's model was asked so many times."""
    accepted = await here.engine.retry(run.run_id)
    await asyncio.to_thread(
        here.it.server.wait_for, lambda seen: seen["by_role"].get("researcher", 0) >= requests
    )
    await here.engine.cancel(run.run_id)
    return await here.frames(run.run_id, accepted.after)


async def test_a_retry_after_a_cancelled_retry_keeps_the_calls_of_both(opening):
    shop = Shop()
    async with opening(script(ORDERS[0], AWAY), shop.offer()) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        here.it.server.reset(script(ORDERS[1], HANG))
        [ended] = data(await cancel_at(here, run, 2), "run_status")
        assert ended["status"] == "cancelled"
        here.it.server.reset({**script(*ORDERS, ORDERED), "by_history": True})
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
    assert shop.orders == ["tea", "cups"]


async def test_a_retry_whose_program_stopped_keeps_the_calls_of_both(opening):
    shop = Shop()
    async with opening(script(ORDERS[0], AWAY), shop.offer()) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        here.it.server.reset(script(ORDERS[1], HANG))
        accepted = await here.engine.retry(run.run_id)
        await asyncio.to_thread(
            here.it.server.wait_for, lambda seen: seen["by_role"].get("researcher", 0) >= 2
        )
    async with opening({**script(*ORDERS, ORDERED), "by_history": True}, shop.offer()) as here:
        frames = await here.frames(run.run_id, accepted.after)
        assert data(frames, "run_status")[-1] == {"status": "completed"}
    assert shop.orders == ["tea", "cups"]


async def test_a_result_that_holds_more_than_plain_text_does_not_cost_the_calls(opening):
    orders = []

    async def order(item: str):
        """Order an item."""
        orders.append(item)
        return f"Ordered {item}.", b"receipt"

    tool = StructuredTool.from_function(coroutine=order, response_format="content_and_artifact")
    offer = Offer({"researcher": [tool]})
    async with opening({**script(*ORDERS, AWAY), "by_history": True}, offer) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        assert orders == ["tea", "cups"]
        here.it.server.reset({**script(*ORDERS, ORDERED), "by_history": True})
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
    assert orders == ["tea", "cups"]


async def test_a_step_with_very_long_results_continues_with_their_ends():
    error = ModelError("gone", code="model_overloaded")
    calls = [{"name": "read", "args": {}, "id": f"c{number}"} for number in range(5)]
    long = f"begin {'x' * MAX_CHARACTERS} end"
    results = [ToolMessage(long, tool_call_id=one["id"], name="read") for one in calls]
    save_messages(error, [AIMessage("", tool_calls=calls), *results])
    asked, *shown = await load_messages(error.continuation)
    assert [one["id"] for one in asked.tool_calls] == [one.tool_call_id for one in shown]
    assert all(one.text.startswith("begin") and one.text.endswith("end") for one in shown)


async def test_a_try_whose_messages_the_model_refuses_reads_what_the_first_one_did(opening):
    """With the same messages it would fail again; so it begins anew, and knows of the calls."""
    shop = Shop()
    refused = {"status": 400, "error": "this model does not support that"}
    async with opening(script(ORDERS[0], refused), shop.offer()) as here:
        run = await here.ask()
        await here.frames(run.run_id)
        here.it.server.reset(script(ORDERED))
        assert data(await here.retried(run.run_id), "run_status") == [{"status": "completed"}]
        assert "Order 1: tea." in here.it.prompts("researcher")[0]
    assert shop.orders == ["tea"]


async def test_the_next_try_of_the_browser_reads_what_the_first_one_did():
    replies = use("go_to_url", url=HOME), use("click_element", index=0), AWAY, done()
    retry = call("decide", decision="retry")
    async with shopping(shop_script(*replies, supervisor=[retry])) as (it, shop):
        await it.run()
        asked = [one["messages"] for one in it.server.requests]
        begun = [one for one in asked if HOME in json.dumps(one) and one[-1]["role"] == "user"]
    assert [one["action"] for one in shop.only.done] == ["go_to_url", "click_element"]
    assert any("An earlier try failed" in json.dumps(one) for one in begun)


async def test_a_small_models_doubtful_result_counts_when_the_model_is_gone():
    programs = []

    async def python(code: str) -> str:
        """Run Python."""
        programs.append(code)
        return "0"

    tool = StructuredTool.from_function(coroutine=python, name="python_repl_tool")
    replies = [reply(json.dumps({"kind": "coder"})), reply("```python\nprint(0)\n```"), AWAY, reply("0")]
    script_ = {"other": replies, "planner": [reply(json.dumps(plan(step("coder"))))]}
    rules = TeamRules(step_retries=1)
    async with scripted_team(script_, models=COMPACT, toolbox=Offer({"coder": [tool]}), rules=rules) as it:
        frames = await it.run("Compute 17 + 25.")
    assert programs == ["print(0)"]
    assert data(frames, "run_status") == [{"status": "completed"}]


async def test_the_general_agent_alone_continues_from_its_calls(opening_alone):
    shop = Shop()
    [order] = shop.offer().tools_of("researcher")
    offer = Offer({"manus": [order]})
    async with opening_alone({"manus": [ORDERS[0], AWAY]}, offer) as (it, ask, retry):
        run = await ask()
        it.server.reset({"manus": [ORDERS[1], ORDERED]})
        frames = await retry(run)
        assert data(frames, "run_status") == [{"status": "completed"}]
        [shown, *_] = [json.dumps(one["messages"]) for one in it.server.requests]
        assert "Order 1: tea." in shown
    assert shop.orders == ["tea", "cups"]


async def test_an_embedded_team_knows_the_calls_beside_the_one_that_was_cut_off():
    """Their results are in no message yet, only in the record of calls."""
    shop = Shop()
    [order] = shop.offer().tools_of("researcher")

    async def ask_expert(question: str) -> str:
        """Ask an expert."""
        for _ in range(1_000):
            rows = await run_scope().ledger.list_by_run(run_scope().run_id)
            if any(row.tool_name == "order" and row.result for row in rows):
                break
            await asyncio.sleep(0)
        raise ModelError("The expert has no model.", code="model_overloaded")

    expert = StructuredTool.from_function(coroutine=ask_expert)
    both = {
        "tool_calls": [
            {"name": "order", "arguments": {"item": "tea"}},
            {"name": "ask_expert", "arguments": {"question": "Which cups?"}},
        ]
    }
    config = {"configurable": {"thread_id": "t"}}
    async with scripted_team(
        script(both, ORDERED), toolbox=Offer({"researcher": [order, expert]}), rules=RULES
    ) as it:
        first = await it.team.ainvoke({"messages": [HumanMessage("Order.")]}, config)
        assert first["messages"][-1].response_metadata["gaps"]
        it.server.reset(script(ORDERED))
        second = await it.team.ainvoke(None, config)
        assert second["messages"][-1].response_metadata["gaps"] == []
        assert "Order 1: tea." in it.prompts("researcher")[0]
    assert shop.orders == ["tea"]
