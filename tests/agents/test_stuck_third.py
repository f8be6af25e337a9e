"""Stuck agents are recognised also with third-party tools."""

from typing import Any

import pytest
from langchain_core.tools import tool

from maniple.agents import StepFailed, Task
from maniple.agents.stuck import StuckDetector
from maniple.agents.tool_observations import ObservedCall
from tests.agents.endpoints import coder_with
from tests.agents.patterns import alone, did
from tests.agents.test_stuck_detector import findings_of
from tests.agents.test_stuck_held_out import ended, left_alone
from tests.agents.third_patterns import PROGRESS, STUCK
from tests.openai_server import call, reply

SAME = "The report is as it was when it was made: all rooms are in order, and nobody is missing from them."


def test_there_are_twenty_of_each():
    assert (len(STUCK), len(PROGRESS)) == (20, 20)


def test_at_most_one_who_is_stuck_is_missed():
    assert len(STUCK.keys() - ended(STUCK)) <= 1


def test_at_most_one_progressing_agent_is_judged_stuck():
    assert len(PROGRESS.keys() - left_alone(PROGRESS)) <= 1


def test_the_same_few_words_to_other_arguments_are_borne_for_longer_than_a_list_without_hits():
    short = findings_of(alone(*(did("look", "gibt es hier nirgends", at=f"{n}") for n in range(25))))
    empty = findings_of(alone(*(did("look", "[]", at=f"{n}") for n in range(25))))
    assert (empty.index("nudge"), short.index("nudge")) == (5, 15)
    assert (len(empty), len(short)) == (11, 23)


def test_a_link_that_the_task_names_is_no_guess():
    links = [f"https://old.test/{n}" for n in range(12)]
    answers = alone(*(did("fetch", "HTTP 404", True, url=link) for link in links))
    detector = StuckDetector([f"Which of these are dead? {', '.join(links)}."])
    assert [detector.observe(answer) for answer in answers] == [None] * 12
    assert findings_of(answers)[-1] == "end"


def test_the_read_only_hint_of_a_tool_overrides_its_name():
    reports = [ObservedCall("run_report", {"room": n}, SAME) for n in range(12)]
    assert left_alone({"acts": alone(*reports)})
    assert (
        findings_of(
            alone(*(ObservedCall(one.name, one.arguments, SAME, only_reads=True) for one in reports))
        )[-1]
        == "end"
    )


@pytest.mark.anyio
@pytest.mark.parametrize("only_reads", [False, True])
async def test_the_agent_follows_the_hints_of_a_tool(only_reads):
    @tool
    async def run_report(room: int) -> str:
        """Report on a room."""
        return SAME

    run_report.metadata = {"only_reads": only_reads}
    calls: list[Any] = [call("run_report", room=n) for n in range(12)]
    async with coder_with([run_report], *calls, reply("In order.")) as (coder, _):
        task = Task(request="look", title="Look", description="at all rooms")
        if only_reads:
            with pytest.raises(StepFailed, match="brought nothing that was"):
                await coder.work(task)
        else:
            assert await coder.work(task) == "In order."
