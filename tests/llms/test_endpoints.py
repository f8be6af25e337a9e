"""Models whose client is loaded when it is needed."""

import asyncio
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.config import ModelsSettings
from maniple.llms import ChatModels, ask, capabilities_of, open_chat_models
from maniple.llms.context_windows import DEFAULT_WINDOW_TOKENS, room_of, window_of
from maniple.llms.endpoints import DeferredModel
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("hi")]


@tool
def look_up(word: str) -> str:
    """Look up a word."""
    return word


def settings_of(base_url: str, **basic: Any) -> ModelsSettings:
    return ModelsSettings.model_validate(
        {"basic": {"model": "gpt-4o", "base_url": base_url, "max_retries": 0, **basic}}
    )


async def test_a_deferred_model_answers_like_one_that_is_loaded_at_once():
    with serving({"other": [reply("one two"), reply("three"), call("look_up", word="a")]}) as server:
        async with open_chat_models(settings_of(server.base_url), deferred=True) as models:
            await models.load()
            model = models.get("basic")
            pieces = [chunk.text async for chunk in model.astream(QUESTION)]
            whole = (await model.ainvoke(QUESTION)).text
            bound = model.bind_tools([look_up])
            called = await ask(bound, QUESTION)
            shared = capabilities_of(bound) is capabilities_of(model)
    assert isinstance(model, DeferredModel)
    assert ("".join(pieces), whole) == ("one two", "three")
    assert len(pieces) > 1
    assert ([one["name"] for one in called.tool_calls], shared) == (["look_up"], True)
    assert [one["function"]["name"] for one in server.requests[-1]["tools"]] == ["look_up"]


async def test_a_deferred_model_has_its_window_once_loaded():
    settings = settings_of("http://127.0.0.1:9/v1", max_output_tokens=1_000)
    async with (
        open_chat_models(settings, deferred=True) as deferred,
        open_chat_models(settings) as loaded,
    ):
        before = window_of(deferred.get("basic"))
        await deferred.load()
        after = [(window_of(one.get("basic")), room_of(one.get("basic"))) for one in (deferred, loaded)]
    assert before == DEFAULT_WINDOW_TOKENS
    assert after[0] == after[1] == (128_000, 127_000)


async def test_fallbacks_of_a_deferred_model_answer_in_its_place():
    with serving({"other": [{"status": 500}, reply("from the second")]}) as server:
        fallback = {"model": "second", "base_url": server.base_url}
        settings = settings_of(server.base_url, fallbacks=[fallback])
        async with open_chat_models(settings, deferred=True) as models:
            await models.load()
            answer = await models.get("basic").ainvoke(QUESTION)
    assert answer.text == "from the second"


async def test_a_cancelled_wait_does_not_stop_the_loading_for_others():
    may_load, loads = Event(), list[str]()
    async with open_chat_models(settings_of("http://127.0.0.1:9/v1"), deferred=True) as models:
        model = models.get("basic")
        assert isinstance(model, DeferredModel)
        open_client = model.open_client

        def open_later() -> Any:
            may_load.wait()
            loads.append("loaded")
            return open_client()

        model.open_client = open_later
        first, second = asyncio.create_task(models.load()), asyncio.create_task(models.load())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        may_load.set()
        await second
        await models.load()
    assert (first.cancelled(), loads) == (True, ["loaded"])


async def test_models_without_deferral_have_their_clients_at_once():
    async with open_chat_models(settings_of("http://127.0.0.1:9/v1")) as models:
        assert not isinstance(models.get("basic"), DeferredModel)
        await models.load()
    await ChatModels({}).load()
