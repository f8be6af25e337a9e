"""Calls that a run lets wait while the endpoint of its model is away."""

import asyncio
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms import hide_call, open_chat_models
from maniple.types import JUDGE_SOURCE
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("hi")]
BUSY = {"status": 503, "error": "loading", "headers": {"retry-after": "0"}}


class Waiter(AsyncCallbackHandler):
    """Lets a call be sent again so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.waited: list[ModelError] = []
        self.ended = 0

    async def wait_out(self, call_id: UUID, endpoint: str, failure: ModelError) -> None:
        if not self.left:
            raise failure
        self.left -= 1
        self.waited.append(failure)

    async def end_wait(self, call_id: UUID) -> None:
        self.ended += 1


async def ask(waiter: Waiter, *replies: dict, streamed: bool = False, source: str = "", **options) -> str:
    with serving({"other": list(replies)}) as server:
        basic = {"model": "m", "base_url": server.base_url, "max_retries": 0, **options}
        async with open_chat_models(ModelsSettings(basic=ModelSettings.model_validate(basic))) as models:
            hidden: RunnableConfig = hide_call(source) if source else {}
            config: RunnableConfig = {**hidden, "callbacks": [waiter]}
            model = models.get("basic")
            if not streamed:
                return (await model.ainvoke(QUESTION, config)).text
            # LangChain gives no handlers to such a stream; it has those of the node around it.
            with set_config_context(config) as context:
                return await asyncio.create_task(_streamed(model), context=context)


async def _streamed(model) -> str:
    return "".join([chunk.text async for chunk in model.astream(QUESTION)])


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_call_is_sent_again_after_the_endpoint_was_away(streamed):
    waiter = Waiter(2)
    assert await ask(waiter, {**BUSY, "times": 2}, reply("fine"), streamed=streamed) == "fine"
    assert ([one.had_answered for one in waiter.waited], waiter.ended) == ([False, False], 1)


async def test_the_waiter_decides_when_it_has_been_too_long():
    waiter = Waiter(1)
    with pytest.raises(ModelError) as caught:
        await ask(waiter, {**BUSY, "times": 9})
    assert caught.value.code == "model_overloaded"
    assert len(waiter.waited) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 504])
async def test_an_endpoint_that_refuses_a_request_is_not_away(status):
    waiter = Waiter(3)
    with pytest.raises(ModelError):
        await ask(waiter, {**BUSY, "status": status, "times": 9})
    assert waiter.waited == []


async def test_an_answer_that_breaks_off_is_not_waited_for():
    waiter = Waiter(3)
    with pytest.raises(ModelError):
        await ask(waiter, {"text": "a b c d", "cut_after": 2, "times": 9}, streamed=True)
    assert waiter.waited == []


async def test_a_call_that_a_run_can_do_without_does_not_wait():
    waiter = Waiter(3)
    with pytest.raises(ModelError):
        await ask(waiter, {**BUSY, "times": 9}, source=JUDGE_SOURCE)
    assert waiter.waited == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_endpoint_and_its_fallbacks_are_away_together(streamed):
    with serving({"other": [{**BUSY, "times": 2}, reply("second")]}) as other:
        fallback = {"model": "n", "base_url": other.base_url, "max_retries": 0}
        waiter = Waiter(3)
        answer = await ask(waiter, {**BUSY, "times": 9}, streamed=streamed, fallbacks=[fallback])
    assert (answer, len(waiter.waited)) == ("second", 2)
    waiter = Waiter(3)
    with serving({"other": [{**BUSY, "status": 401, "times": 9}]}) as other, pytest.raises(ModelError):
        fallback = {"model": "n", "base_url": other.base_url, "max_retries": 0}
        await ask(waiter, {**BUSY, "times": 9}, streamed=streamed, fallbacks=[fallback])
    assert waiter.waited == []


async def test_an_address_where_nothing_listens_is_away():
    waiter = Waiter(1)
    with pytest.raises(ModelError) as caught:
        await ask(waiter, base_url="http://127.0.0.1:9/v1")
    assert (caught.value.code, caught.value.is_outage, len(waiter.waited)) == ("model_unreachable", True, 1)
