"""The files that a step made are stored with it, whatever its member says about them."""

import pytest

from maniple.agents.offers import Offer
from maniple.graph.state import progress_of
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.graph.test_adaptation import decision, script
from tests.openai_server import call, reply
from tests.team import plan, scripted_team, step
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio
THREAD = {"configurable": {"thread_id": "t"}}
MAKES = [call("write_file", path="out/new.csv", content="a"), call("write_file", path="old.txt", content="b")]
SAYS = "I wrote more.csv, and old.txt is better now."


async def outcomes(tmp_path, coder, supervisor=()):
    """Return the outcomes of the coder's step, and what the lead was shown."""
    workspaces = Workspaces(tmp_path)
    workspaces.open("t").write("old.txt", b"first")
    workspaces.open("t").write("same.txt", b"same")
    only, lead = plan(step("coder"), step("reporter")), [*supervisor] or [decision("continue_without")]
    tools = Offer({"coder": build_file_tools(workspaces)})
    answers = script(only, coder=coder, supervisor=lead)
    async with scripted_team(answers, toolbox=tools, items=ThreadItems(workspaces)) as it:
        await it.run(thread_id="t")
        progress = progress_of((await it.team.aget_state(THREAD)).values)
        assert progress is not None
        return progress.steps[0].outcome, it.prompts("supervisor")


async def test_a_step_has_the_files_that_it_made_or_changed(tmp_path):
    outcome, _ = await outcomes(tmp_path, [*MAKES, reply(SAYS)])
    assert outcome.files == ["old.txt", "out/new.csv"]


@pytest.mark.parametrize("ending", ["STEP FAILED: no data", "PARTIAL: May\n\nApril: 3."])
async def test_the_lead_is_shown_them_after_a_failure_and_a_partial_result(tmp_path, ending):
    outcome, [asked] = await outcomes(tmp_path, [*MAKES, reply(ending)])
    assert outcome.files == ["old.txt", "out/new.csv"]
    assert "old.txt, out/new.csv" in asked


async def test_a_further_try_adds_its_files(tmp_path):
    second = [call("write_file", path="last.md", content="c"), reply("It is done.")]
    coder = [*MAKES, reply("STEP FAILED: no data"), *second]
    outcome, _ = await outcomes(tmp_path, coder, [decision("retry", hint="again")])
    assert outcome.status == "done" and outcome.files == ["old.txt", "out/new.csv", "last.md"]


async def test_a_step_that_made_none_has_none(tmp_path):
    outcome, _ = await outcomes(tmp_path, [reply("It is in same.txt.")])
    assert outcome.files == []
