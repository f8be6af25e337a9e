"""The effort of a run reaches its models, or the run says which of them work without it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from maniple.config import ModelSettings, ModelsSettings
from maniple.llms import open_chat_models
from maniple.llms.efforts import use_effort
from maniple.llms.models import _configured_features
from maniple.llms.refusals import find_refused
from tests.llms.provider_servers import Answer, provider_serving
from tests.llms.test_providers import PROVIDERS, opened
from tests.openai_server import Json, OpenAIServer, reply, serving

# google-genai's own use of aiohttp.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")]
REFUSALS = (
    "Unrecognized request argument supplied: reasoning_effort",
    "Unsupported value: 'reasoning_effort' does not support 'low' with this model.",
    "body.reasoning_effort: Extra inputs are not permitted",
    "This model does not support the effort parameter.",
    "Thinking level is not supported for this model.",
    '"gemma3" does not support thinking',
)


def _level_of(config: Json) -> str:
    """The API takes both spellings, and the versions of the package differ in it."""
    return (config.get("thinkingLevel") or config.get("thinking_level", "")).lower()


SENT: dict[str, Callable[[Json], Any]] = {
    "anthropic": lambda body: body.get("output_config", {}).get("effort"),
    "gemini": lambda body: _level_of(body["generationConfig"].get("thinkingConfig", {})),
    "ollama": lambda body: body["think"] if isinstance(body["think"], str) else "",
    "bedrock": lambda body: body.get("additionalModelRequestFields"),
}
"""Where the APIs have the effort."""


@asynccontextmanager
async def opened_endpoint(refuse: Callable[[Json], str]) -> AsyncIterator[tuple[Any, OpenAIServer]]:
    with serving({"other": [reply("Hello")]}) as server:
        server.refuse = refuse
        basic = ModelSettings.model_validate({"model": "m", "base_url": server.base_url, "max_retries": 0})
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            yield models.get("basic"), server


async def asked(model: Any, level: Any, times: int = 1, **options: Any) -> list[Any]:
    """Return what the events of a run say whose calls ask for an effort."""
    unused = set[str]()

    async def call(_: object) -> None:
        with use_effort(level, unused):
            for _ in range(times):
                assert (await model.ainvoke([HumanMessage("hi")], **options)).text.startswith("Hello")

    events = RunnableLambda(call).astream_events(None, version="v2")
    return [one["data"] async for one in events if one["event"] == "on_custom_event"]


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_effort_is_sent_and_without_one_nothing_is(streaming):
    async with opened_endpoint(lambda body: "") as (model, server):
        assert await asked(model, "high", stream=streaming) == []
        assert await asked(model, "", stream=streaming) == []
    assert [one.get("reasoning_effort") for one in server.requests] == ["high", None]


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_refused_effort_is_left_out_and_each_run_says_so_once(streaming):
    def refuse(body: Json) -> str:
        return REFUSALS[0] if "reasoning_effort" in body else ""

    async with opened_endpoint(refuse) as (model, server):
        first = await asked(model, "low", 2, stream=streaming)
        later = await asked(model, "low", 2, stream=streaming)
    assert first == later == [{"effort": "low", "model": "m"}]
    assert ["reasoning_effort" in one for one in server.requests] == [True, *[False] * 4]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_of_the_effort_is_known_by_its_words(text):
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert find_refused(text, {**body, "reasoning_effort": "low"}) == ("reasoning_effort", False)
    assert find_refused(text, body) is None


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_gets_the_effort_as_its_package_takes_it_or_the_run_says_so(provider):
    with provider_serving(Answer(("Hello.",))) as server:
        async with opened(provider, server) as model:
            said = await asked(model, "low")
    takes = provider != "bedrock"
    sent = SENT[provider](server.requests[-1])
    assert (sent.lower() if sent else sent) == ("low" if takes else None)
    assert said == ([] if takes else [{"effort": "low", "model": vars(model)["endpoint"].model}])


@pytest.mark.parametrize("provider", [one for one in PROVIDERS if one != "bedrock"])
async def test_an_effort_that_a_provider_refuses_is_left_out(provider):
    with provider_serving(Answer(("Hello.",)), refusals=((400, REFUSALS[3]),)) as server:
        async with opened(provider, server) as model:
            said = await asked(model, "low", 2)
    assert [bool(SENT[provider](one)) for one in server.requests] == [True, False, False]
    assert len(said) == 1


def test_a_class_of_a_program_takes_no_effort_unless_the_settings_say_so():
    named = {"model": "m", "provider": "package.module:Model"}
    assert _configured_features(ModelSettings.model_validate(named))["reasoning_effort"] is False
    set_true = {**named, "capabilities": {"reasoning_effort": True}}
    assert _configured_features(ModelSettings.model_validate(set_true))["reasoning_effort"] is True
