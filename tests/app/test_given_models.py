"""A team that works with a program's own chat models."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from maniple import open_team, stream_run
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.errors import ConfigError
from tests.openai_server import SIMPLE, serving
from tests.team import checked, data, joined_text

pytestmark = pytest.mark.anyio


def settings_in(folder, **models) -> Settings:
    return Settings(data_dir=folder / "data", cache_dir=folder / "cache", models=ModelsSettings(**models))


@pytest.mark.parametrize("by_type", [False, True])
async def test_the_team_answers_with_a_given_model(tmp_path, by_type):
    with serving(SIMPLE) as server:
        own = ChatOpenAI(
            model="scripted", base_url=server.base_url, api_key=SecretStr("k"), stream_usage=True
        )
        given = {"basic": own, "vision": own} if by_type else own
        # An endpoint of the settings is not asked.
        nowhere = ModelSettings(model="m", base_url="http://127.0.0.1:9/v1", max_retries=0)
        async with open_team(settings_in(tmp_path, basic=nowhere), models=given) as team:
            events = stream_run(team, [HumanMessage("1+3=?")], thread_id="t")
            frames = checked([event async for event in events])
        assert server.requests
    assert "4" in joined_text(frames)
    assert data(frames, "run_status")[-1]["status"] == "completed"
    assert data(frames, "tool_call")[0]["tool_name"] == "python_repl_tool"


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_the_typed_stream_of_a_team_with_a_given_model_has_its_events(tmp_path):
    with serving(SIMPLE) as server:
        own = ChatOpenAI(
            model="scripted", base_url=server.base_url, api_key=SecretStr("k"), stream_usage=True
        )
        async with open_team(settings_in(tmp_path), models=own) as team:
            question = {"messages": [HumanMessage("1+3=?")]}
            async with await team.astream_events(question, version="v3") as run:
                events = [event async for event in run.extensions["team_events"]]
    frames = checked(events)
    assert "4" in joined_text(frames)
    assert data(frames, "run_status")[-1]["status"] == "completed"


async def test_an_error_of_a_given_model_is_one_of_the_team(tmp_path):
    own = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key=SecretStr("k"), max_retries=0)
    async with open_team(settings_in(tmp_path), models=own) as team:
        events = stream_run(team, [HumanMessage("1+3=?")], thread_id="t")
        frames = [(event.type, event.data()) async for event in events]
    assert dict(frames)["error"]["code"] == "model_unreachable"


async def test_an_unknown_type_is_refused(tmp_path):
    own = ChatOpenAI(model="m", api_key=SecretStr("k"))
    with pytest.raises(ConfigError, match="fast"):
        async with open_team(settings_in(tmp_path), models={"basic": own, "fast": own}):  # type: ignore
            pass
