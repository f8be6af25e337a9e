"""`--effort`: how much the models are to reason about one question."""

from pathlib import Path

import pytest

from tests.cli.processes import environment, run
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
