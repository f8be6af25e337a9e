"""`--model` and `/model`: which model answers, and another choice for this session."""

import re
from pathlib import Path

import pytest

from maniple.cli.chat.model_choice import UnknownModel, choose_models, describe_models
from maniple.cli.chat.prompt import run_slash_command
from maniple.config import ModelSettings, ModelsSettings, Settings
from tests.cli.processes import CTRL_C, PROMPT, environment, on_terminal, run
from tests.cli.test_commands import session_with
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
BASIC = ModelSettings(
    model="small", base_url="http://127.0.0.1:1/v1", price_input=1, context_tokens=9_000, max_retries=1
)
THINKER = ModelSettings(model="thinker", base_url="http://127.0.0.1:2/v1", price_input=5)
SETTINGS = Settings(models=ModelsSettings(basic=BASIC, reasoning=THINKER))


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the endpoint lists."""
    names = ["small", "large", "huge"]

    async def list_models(model: ModelSettings) -> list[str]:
        return names

    monkeypatch.setattr("maniple.llms.model_listing.list_models", list_models)
    return names


async def test_a_name_becomes_the_basic_model_of_the_same_endpoint_without_what_belongs_to_the_old_one() -> (
    None
):
    chosen = (await choose_models(SETTINGS, ["large"])).models
    assert chosen.basic == ModelSettings(model="large", base_url="http://127.0.0.1:1/v1", max_retries=1)
    assert chosen.reasoning == THINKER


async def test_a_model_that_is_configured_is_used_with_its_own_endpoint_and_price() -> None:
    assert (await choose_models(SETTINGS, ["thinker"])).models.basic == THINKER


async def test_types_get_models_and_roles_get_types() -> None:
    chosen = await choose_models(SETTINGS, ["vision=large", "coder=Reasoning", "file-manager=vision"])
    assert chosen.models.vision is not None and chosen.models.vision.model == "large"
    assert chosen.team.llms == {"coder": "reasoning", "file_manager": "vision"}
    everyone = (await choose_models(SETTINGS, ["reasoning"])).team.llms
    assert {"coordinator", "planner", "coder", "reporter"} <= everyone.keys()
    assert set(everyone.values()) == {"reasoning"}


@pytest.mark.parametrize(
    ("choice", "messages"),
    [
        ("larg", ["'larg'", "Did you mean large?", "small, thinker, large, huge"]),
        ("basic=", ["small, thinker"]),
        ("coder=big", ["type 'big'", "basic, reasoning, vision"]),
        ("codr=basic", ["'codr'", "Did you mean coder?"]),
    ],
)
async def test_a_wrong_name_is_answered_with_the_known_ones(choice: str, messages: list[str]) -> None:
    with pytest.raises(UnknownModel) as raised:
        await choose_models(SETTINGS, [choice])
    assert all(message in str(raised.value) for message in messages)


async def test_an_endpoint_that_lists_nothing_takes_any_name_and_that_is_said(listed: list[str]) -> None:
    listed.clear()
    chosen = await choose_models(SETTINGS, ["anything"])
    assert chosen.models.basic is not None and chosen.models.basic.model == "anything"
    assert "does not list" in await describe_models(SETTINGS, "")


async def test_without_an_endpoint_there_is_no_other_model_to_choose() -> None:
    for choice in ("large", "reasoning", "vision=large"):
        with pytest.raises(UnknownModel, match="BASIC_MODEL"):
            await choose_models(Settings(), [choice])
    assert "tiny" in await describe_models(Settings(), "tiny")


async def test_a_long_list_is_cut_and_the_number_of_the_others_is_said(listed: list[str]) -> None:
    listed += [f"model-{number}" for number in range(50)]
    assert re.search(r"… \(\d+ more\)", await describe_models(SETTINGS, ""))
    with pytest.raises(UnknownModel, match="more"):
        await choose_models(SETTINGS, ["?"])


async def test_the_table_names_role_type_model_and_endpoint() -> None:
    lines = (await describe_models(await choose_models(SETTINGS, ["coder=reasoning"]), "")).splitlines()
    assert ["coder", "reasoning", "thinker", "http://127.0.0.1:2/v1"] in [line.split() for line in lines]
    assert ["reporter", "basic", "small", "http://127.0.0.1:1/v1"] in [line.split() for line in lines]


async def test_a_team_that_a_program_gave_has_no_other_models() -> None:
    assert "cannot be changed" in await run_slash_command(session_with()[0], "/model large")


async def test_the_model_of_the_command_line_answers_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        thinker = {
            "REASONING_MODEL": "thinker",
            "REASONING_API_KEY": "k",
            "REASONING_BASE_URL": server.base_url,
        }
        env = environment(tmp_path, server.base_url, **thinker)
        status, _, notes = await run("-m", "thinker", "1+3=?", folder=tmp_path, env=env)
        assert status == 0 and "Using thinker at" in notes
        assert {request["model"] for request in server.requests} == {"thinker"}
        status, _, notes = await run("-m", "scriptd", "1+3=?", folder=tmp_path, env=env)
        assert status == 2 and "--model" in notes and "Did you mean scripted?" in notes


async def test_another_model_is_chosen_at_the_prompt_and_the_conversation_goes_on(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        thinker = {
            "REASONING_MODEL": "thinker",
            "REASONING_API_KEY": "k",
            "REASONING_BASE_URL": server.base_url,
        }
        env = environment(tmp_path, server.base_url, **thinker)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/model", r"coder +basic +scripted", "Known models: scripted, thinker")
            await terminal.enter("1+3=?", "✔ completed")
            await terminal.enter("/model scriptd", "Did you mean scripted")
            terminal.type("/model cod\t")
            await terminal.see("/model coder")
            terminal.type("=re\t")
            await terminal.see("=reasoning")
            terminal.type(CTRL_C)
            before = len(server.requests)
            await terminal.enter(
                "/model coder=reasoning", "variables of its Python", r"coder +reasoning +thinker"
            )
            await terminal.enter("and 1+4?", "Using scripted", "✔ completed")
            await terminal.enter("/cost", r"coder +thinker", "all 2 runs")
            assert await terminal.leave() == 0
    models = [request["model"] for request in server.requests]
    assert set(models[:before]) == {"scripted"} and set(models[before:]) == {"scripted", "thinker"}
