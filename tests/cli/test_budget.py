"""`--budget` and `/budget`: what one question may use."""

from pathlib import Path

import pytest

from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.options import InvalidBudget, describe_budget, parse_budget
from maniple.config import ModelSettings, ModelsSettings
from maniple.scope.budget import Budget
from tests.cli.events import small_talk
from tests.cli.processes import PROMPT, environment, on_terminal, run
from tests.cli.runs import ScriptedRun
from tests.cli.test_commands import session_with
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
PRICED = ModelsSettings(basic=ModelSettings(model="big", price_input=1))


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("tokens=200k", Budget(tokens=200_000)),
        ("Tokens=1.5m, seconds=0.5", Budget(tokens=1_500_000, seconds=0.5)),
        ("model-calls=3,tool_calls=4,cost=0.25", Budget(model_calls=3, tool_calls=4, cost=0.25)),
    ],
)
def test_limits_are_read_by_their_names(text: str, budget: Budget) -> None:
    assert parse_budget(text, PRICED) == budget


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("money=3", "model_calls"),
        ("tokens", "above 0"),
        ("tokens=0", "above 0"),
        ("tokens=1.5", "whole number"),
        ("tokens=nan", "above 0"),
        ("seconds=inf", "above 0"),
        ("seconds=-3", "above 0"),
        (" , ", "at least one"),
    ],
)
def test_what_is_no_limit_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises(InvalidBudget, match=message):
        parse_budget(text, PRICED)


@pytest.mark.parametrize(
    "models",
    [ModelsSettings(), ModelsSettings(basic=ModelSettings(model="big"))],
    ids=["embedded", "unpriced"],
)
def test_a_cost_that_nothing_could_reach_is_refused(models: ModelsSettings) -> None:
    with pytest.raises(InvalidBudget, match="price_input"):
        parse_budget("cost=1", models)


def test_a_budget_is_described_by_its_limits_alone() -> None:
    assert describe_budget(Budget(tokens=200_000, tool_calls=3)) == "tokens 200,000, tool calls 3"
    assert describe_budget(Budget()) == ""


async def test_the_chosen_budget_is_that_of_the_next_question_until_it_is_taken_back() -> None:
    session, engine = session_with(ScriptedRun(small_talk()), ScriptedRun(small_talk()))
    assert "tokens 5,000" in await run_slash_command(session, "/budget tokens=5k")
    assert "above 0" in await run_slash_command(session, "/budget tokens=none")
    await session.ask("first")
    assert "No budget" in await run_slash_command(session, "/budget off")
    await session.ask("second")
    assert [one.budget for one in engine.requests] == [Budget(tokens=5_000), Budget()]


async def test_a_run_ends_when_the_budget_of_the_command_line_is_used_up(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("--budget", "model_calls=2", "1+3=?", folder=tmp_path, env=env)
        assert status in (1, 4) and "model calls" in notes
        assert sum(server.stats["by_role"].values()) <= 4
        status, _, notes = await run("--budget", "money=2", "1+3=?", folder=tmp_path, env=env)
        assert status == 2 and "--budget" in notes
        status, _, notes = await run("--continue", "--budget", "tokens=2k", folder=tmp_path, env=env)
        assert status == 2 and "--budget" in notes


async def test_the_budget_of_the_command_line_holds_in_a_conversation(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal("--budget", "tokens=300k", folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/budget", "may use: tokens 300,000")
            assert await terminal.leave() == 0
