"""The small model's prompts fit its window, however long the question and the results are."""

import pytest
from langchain_core.tools import tool

from maniple.agents import StepResult, Task
from maniple.agents.compact import CompactCoder, CompactReporter
from maniple.agents.offers import Offer
from maniple.errors import ModelError
from tests.agents.endpoints import model_at, narrow
from tests.agents.test_compact import COMPACT, small, sort
from tests.openai_server import reply
from tests.team import data, scripted_team, status

pytestmark = pytest.mark.anyio
WINDOW = 4_096
CHARACTERS = 4 * WINDOW
LONG = "FIRST WORDS " + "blah " * 8_000 + "LAST WORDS"
RESULTS = tuple(StepResult("coder", f"{n}", f"RESULT {n}: " + "x" * 9_000 + f" END {n}") for n in range(3))


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python."""
    return "4"


def prompts(server):
    return [[message["content"] for message in body["messages"]] for body in server.requests]


async def test_a_whole_run_with_a_question_longer_than_the_window_is_never_refused():
    script = small(sort("coder"), reply("```python\nprint(4)\n```"), reply("Four."))
    models = {**COMPACT, "context_tokens": WINDOW}
    with narrow(script, CHARACTERS) as server:
        toolbox = Offer({"coder": [python_repl_tool]})
        async with scripted_team(script, models=models, toolbox=toolbox, server=server) as it:
            frames = await it.run(LONG)
        assert server.refused == 0
        assert len(server.requests) == 4
        for shown in prompts(server):
            assert "FIRST WORDS" in shown[-1]
            assert "LAST WORDS" in shown[-1]
            assert "characters left out" in shown[-1]
    assert status(frames) == "completed"
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"


async def test_a_long_question_leaves_the_results_and_the_language_in_the_report_s_prompt():
    with narrow({"other": [reply("# Report")]}, CHARACTERS) as server:
        async with model_at(server, window=WINDOW) as model:
            task = Task(LONG, "Report", "Report it", results=RESULTS, locale="German")
            assert await CompactReporter(model).work(task) == "# Report"
        ((system, material),) = prompts(server)
    assert "in German" in system
    assert material.startswith("Request: FIRST WORDS")
    assert material.endswith("Answer in German.")
    for number in range(3):
        assert f"RESULT {number}: " in material
        assert f"END {number}" in material
    assert len(material) > CHARACTERS // 2, "no more is cut than must be"


async def test_a_report_that_fits_is_shown_as_it_was():
    with narrow({"other": [reply("# Report")]}, CHARACTERS) as server:
        async with model_at(server, window=WINDOW) as model:
            task = Task(
                "1+3=?", "Report", "Report it", results=[StepResult("coder", "c", "4")], locale="German"
            )
            await CompactReporter(model).work(task)
        assert prompts(server)[0][1] == "Request: 1+3=?\n4\nAnswer in German."


@pytest.mark.parametrize("results", [RESULTS, ()])
async def test_a_window_that_is_unknown_is_heeded_when_it_is_refused(results):
    with narrow({"other": [reply("# Report")]}, 6_000) as server:
        async with model_at(server) as model:
            text = await CompactReporter(model).work(Task(LONG, "Report", "Report it", results=results))
        assert text.startswith("# Report")
        assert server.refused == 1
        assert "LAST WORDS" in prompts(server)[1][1]


async def test_a_program_is_requested_again_with_less_text_if_the_window_is_small():
    with narrow({"other": [reply("print(4)")]}, 6_000) as server:
        async with model_at(server) as model:
            text = await CompactCoder(model, python_repl_tool).work(Task(LONG, "Code", "Code it"))
        assert text.endswith("Output: 4")
        assert server.refused == 1
        assert prompts(server)[1][0].startswith("Reply with one short")
        assert "LAST WORDS" in prompts(server)[1][-1]


async def test_in_the_smallest_window_the_worked_examples_go_and_the_question_stays():
    with narrow({"other": [reply("print(4)")]}, 1_100) as server:
        async with model_at(server, window=320) as model:
            await CompactCoder(model, python_repl_tool).work(Task(LONG, "Code", "Code it"))
        system, *_, question = prompts(server)[-1]
        assert server.refused == 0
    assert system.startswith("Reply with one short")
    assert "What is 12*9?" not in str(prompts(server)[-1])
    assert "LAST WORDS" in question


async def test_a_second_refusal_is_reported_in_plain_text():
    with narrow({"other": []}, 10) as server:
        async with model_at(server) as model:
            with pytest.raises(ModelError, match="does not fit into the window"):
                await CompactReporter(model).work(Task(LONG, "Report", "Report it"))
        assert server.refused == 2
