"""`--effort`: how much the models are to reason about one question."""

from pathlib import Path

import pytest

from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.store_admin import TERMINAL_OWNER, open_database
from maniple.config import load_settings
from maniple.schedules import read_request
from tests.cli.events import small_talk
from tests.cli.processes import environment, maniple, run
from tests.cli.runs import ScriptedRun
from tests.cli.test_commands import session_with
from tests.openai_server import SIMPLE, Json, serving

pytestmark = pytest.mark.anyio


async def test_the_effort_of_the_command_line_is_sent_and_one_that_is_refused_named(tmp_path: Path) -> None:
    def refuse(body: Json) -> str:
        return "Unknown parameter: 'reasoning_effort'." if body.get("reasoning_effort") == "high" else ""

    with serving(SIMPLE) as server:
        server.refuse = refuse
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("--effort", "low", "1+3=?", folder=tmp_path, env=env)
        assert (status, "--effort" in notes) == (0, False)
        assert {one["reasoning_effort"] for one in server.requests} == {"low"}
        status, _, notes = await run("--effort", "high", "1+3=?", folder=tmp_path, env=env)
        assert (status, notes.count("--effort high")) == (0, 1)


async def test_an_effort_without_a_question_is_refused(tmp_path: Path) -> None:
    env = environment(tmp_path, "http://127.0.0.1:9/v1")
    cases = (["huge", "1+3=?"], ["low", "--continue"], ["low", "--thread", "x", "--save", "r.md"])
    for effort, *others in cases:
        status, _, notes = await run("--effort", effort, *others, folder=tmp_path, env=env)
        assert status == 2 and "--effort" in notes


async def test_the_chosen_effort_is_that_of_the_next_question_until_it_is_taken_back() -> None:
    session, engine = session_with(ScriptedRun(small_talk()), ScriptedRun(small_talk()))
    assert "low" in await run_slash_command(session, "/effort LOW")
    assert "huge" in await run_slash_command(session, "/effort huge")
    await session.ask("first")
    assert "low" not in (await run_slash_command(session, "/effort off")).partition(".")[0]
    await session.ask("second")
    assert [one.options.effort for one in engine.requests] == ["low", ""]


async def test_the_items_of_a_batch_have_its_effort(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('"1+3=?"\n', encoding="utf-8")
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await maniple("batch", "tasks.jsonl", "--effort", "low", folder=tmp_path, env=env)
        assert status == 0, notes
        assert {one.get("reasoning_effort") for one in server.requests} == {"low"}


async def test_the_runs_of_a_schedule_have_its_effort(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    words = ("schedule", "add", "--cron", "0 8 * * 1", "--effort")
    status, _, _ = await maniple(*words, "high", "the", "news", folder=tmp_path, env=env)
    assert status == 0
    async with open_database(load_settings(environment=env)) as store:
        [schedule] = await store.schedules.list(TERMINAL_OWNER)
    assert read_request(schedule).options.effort == "high"
    status, _, notes = await maniple(*words, "huge", "the", "news", folder=tmp_path, env=env)
    assert (status, "--effort" in notes) == (2, True)
