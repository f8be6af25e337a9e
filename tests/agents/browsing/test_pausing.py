"""A call of the browser that waits for the user, is cut off, or is cancelled: with the real checkpointer."""

import asyncio
import io
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from PIL import Image

from maniple.graph import RECURSION_LIMIT, RunOptions
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.types import BROWSER_STEP
from tests.agents.browsing.shop import HOME, Shop, done, shop_script, shopping, use
from tests.agents.browsing.test_recording import picture
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import copy_of_disk
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio


class Kept:
    """Keeps the recordings: how many frames each has."""

    def __init__(self) -> None:
        self.frames: list[int] = []

    async def __call__(self, name: str, media_type: str, content: bytes) -> str:
        if media_type == "image/gif":
            self.frames.append(getattr(Image.open(io.BytesIO(content)), "n_frames", 1))
        return f"{name}-{len(self.frames)}"


class Told(AsyncCallbackHandler):
    """Collect the emitted steps."""

    run_inline = True

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    async def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        if name == BROWSER_STEP:
            self.steps.append(data)

    def ended(self) -> list[tuple[Any, ...]]:
        """Number, thought, action and observation of what was observed."""
        return [
            (one["number"], one["thought"], one["action"]["name"], one["observation"])
            for one in self.steps
            if one["state"] == "observing"
        ]


@asynccontextmanager
async def open_team(
    folder,
    script,
    shop: Shop,
    book: MemoryLedger | None = None,
    told_to: Told | None = None,
    *,
    store_file: Any = None,
    **options: Any,
):
    """The team in one process, over the database and the records of the lives before."""
    scope = {SCOPE_KEY: RunScope(run_id="r", ledger=book, store_file=store_file)} if book else {}
    config = {
        "configurable": {"thread_id": "t", **scope},
        "recursion_limit": RECURSION_LIMIT,
        "callbacks": [told_to] if told_to else [],
    }
    async with AsyncSqliteSaver.from_conn_string(str(copy_of_disk(folder) / "checkpoints.db")) as saver:
        async with shopping(script, shop=shop, checkpointer=saver, **options) as (it, _):

            async def go(given: Any) -> list[Any]:
                await it.team.ainvoke(given, config, context=RunOptions(), durability="sync")
                return list((await it.team.aget_state(config)).interrupts)

            yield it, go


BEGIN = {"messages": [HumanMessage("Log in.")]}


def asking(*after: dict[str, Any]) -> dict[str, Any]:
    first = use("go_to_url", url=HOME), call("ask_human", inquire="Which code did you get?")
    return {**shop_script(*first, *after), "by_history": True}


@pytest.mark.parametrize("with_ledger", [False, True])
async def test_a_question_pauses_the_run_and_its_answer_goes_on_where_it_was(tmp_path, with_ledger):
    book = MemoryLedger() if with_ledger else None
    shop, script = Shop(), asking(use("input_text", index=1, text="4711"), done())
    async with open_team(tmp_path, script, shop, book) as (team, go):
        (question,) = await go(BEGIN)
        assert question.value == {"kind": "question", "question": "Which code did you get?", "options": []}
        assert await go(Command(resume={question.id: "4711"})) == []
    heard = [m["content"] for m in team.server.requests[-2]["messages"] if m["role"] == "tool"]
    assert heard[1] == "4711"
    assert [one["action"] for one in shop.only.done] == ["go_to_url", "input_text"]


async def test_the_answer_reaches_the_run_in_another_process(tmp_path):
    book, script = MemoryLedger(), asking(use("click_element", index=0), done())
    async with open_team(tmp_path, script, Shop(), book) as (_, go):
        (question,) = await go(BEGIN)
    later = Shop()
    async with open_team(tmp_path, script, later, book) as (team, go):
        assert await go(Command(resume={question.id: "4711"})) == []
    assert "restarted" in str(team.server.requests[0]["messages"][-1])
    assert [one["action"] for one in later.only.done] == ["click_element"]


async def test_after_a_crash_the_loop_goes_on_with_what_it_had_done(tmp_path):
    book = MemoryLedger()
    shop = Shop(hangs_at="click_element")
    script = {
        **shop_script(use("go_to_url", url=HOME), use("click_element", index=0), done()),
        "by_history": True,
    }
    async with open_team(tmp_path, script, shop, book) as (_, go):
        task = asyncio.create_task(go(BEGIN))
        async with asyncio.timeout(60):
            await shop.stuck.wait()
        task.cancel()
        await asyncio.wait({task})
    later = Shop()
    async with open_team(tmp_path, script, later, book) as (team, go):
        assert await go(None) == []
    # The click was decided on a page that died with the first process: it finds nothing, and harms nobody.
    assert [one["action"] for one in later.only.done] == ["click_element"]
    assert team.server.stats["by_role"]["browser"] == 1
    (asked, *_) = team.server.requests
    assert "index 0 not found" in str(asked["messages"])


async def test_the_step_that_waited_is_observed_in_another_process_with_its_number_and_its_thought(tmp_path):
    book, told_to = MemoryLedger(), Told()
    script = asking(use("wait", seconds=0), done())
    script["browser"][1]["text"] = "There must be a code."
    async with open_team(tmp_path, script, Shop(), book, told_to) as (_, go):
        (question,) = await go(BEGIN)
        assert told_to.ended() == [(1, "", "go_to_url", f"Navigated to {HOME}")]
    async with open_team(tmp_path, script, Shop(), book, told_to) as (_, go):
        await go(Command(resume={question.id: "4711"}))
    assert told_to.ended()[1:] == [
        (2, "There must be a code.", "ask_human", "4711"),
        (3, "", "wait", "Waited for 0 seconds"),
        (4, "", "terminate", "It costs 3.50 EUR."),
    ]


async def test_what_was_extracted_before_a_pause_is_shown_after_the_conversation_was_shortened(tmp_path):
    book, long = MemoryLedger(), {**use("wait", seconds=0), "text": "word " * 3_000}
    before = (use("go_to_url", url=HOME), use("extract_content", goal="price"), long, long, long)
    found = [reply("Apples: 3.50 EUR"), reply("Summary: nothing.")]
    options = {"models": {"context_tokens": 8_000}}
    script = shop_script(*before, call("ask_human", inquire="Go on?"), other=found)
    async with open_team(tmp_path, script, Shop(), book, **options) as (_, go):
        (question,) = await go(BEGIN)
    async with open_team(tmp_path, shop_script(done()), Shop(), book, **options) as (team, go):
        assert await go(Command(resume={question.id: "yes"})) == []
        asked = json.dumps(team.server.requests[0]["messages"])
    assert "Summary: nothing." in asked
    assert "What you extracted earlier" in asked and "Apples: 3.50 EUR" in asked


FILMED = {"recording": "always"}


async def test_a_pause_keeps_the_recording_so_far_and_the_rest_becomes_another(tmp_path):
    kept, shop, script = Kept(), Shop(picture=picture()), asking(use("click_element", index=0), done())
    async with open_team(tmp_path, script, shop, MemoryLedger(), store_file=kept, browsing=FILMED) as (_, go):
        (question,) = await go(BEGIN)
        assert kept.frames == [1]
        await go(Command(resume={question.id: "4711"}))
    assert kept.frames == [1, 2]


async def test_a_cancelled_call_is_reported_and_its_recording_stored(tmp_path):
    kept, told_to, shop = Kept(), Told(), Shop(picture=picture(), hangs_at="click_element")
    script = shop_script(use("go_to_url", url=HOME), use("click_element", index=0))
    async with open_team(
        tmp_path, script, shop, MemoryLedger(), told_to, store_file=kept, browsing=FILMED
    ) as (_, go):
        task = asyncio.create_task(go(BEGIN))
        async with asyncio.timeout(60):
            await shop.stuck.wait()
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    assert kept.frames == [1]
    last = told_to.steps[-1]
    assert (last["number"], last["state"], last["action"]["name"]) == (2, "cancelled", "click_element")


async def test_a_call_that_its_model_fails_keeps_its_recording(tmp_path):
    kept, told_to, shop = Kept(), Told(), Shop(picture=picture())
    script = shop_script(use("go_to_url", url=HOME), use("click_element", index=0), {"status": 400})
    async with open_team(
        tmp_path, script, shop, MemoryLedger(), told_to, store_file=kept, browsing=FILMED
    ) as (_, go):
        await go(BEGIN)
    assert kept.frames == [1]
    assert told_to.steps[-1]["state"] == "failed"
