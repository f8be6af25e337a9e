import errno
import io
import json
import os
import re
import time
from typing import get_args

import pytest

from maniple.cli.render.plain import JsonDisplay, PlainDisplay
from maniple.cli.render.run_text import REPLACEMENT_TEXTS, outage_line
from maniple.events import BrowserStepChanged, Event, ModelUnreachable, RunContinued, RunWaiting, record_of
from maniple.service.progress import ProgressLines
from maniple.types import DecisionKind
from tests.cli.events import (
    agent,
    at_once,
    decided,
    ending,
    failure,
    model,
    plan,
    repeated_result,
    run_after,
    show_events,
    small_talk,
    started,
    tool,
    workflow,
)

pytestmark = pytest.mark.anyio


async def shown(events: list[Event]) -> tuple[str, str]:
    """What goes to the output and to the notes, every time as `T`."""
    output, notes = io.StringIO(), io.StringIO()
    async with PlainDisplay(output, notes) as view:
        run = show_events(view, events)
    view.finish(run, 0.1)
    return output.getvalue(), re.sub(r"\d+\.\d s", "T", notes.getvalue())


async def test_an_outage_of_the_model_is_one_line() -> None:
    tries = [ModelUnreachable(attempt=attempt, seconds=2, left_seconds=30) for attempt in (2, 3, 4)]
    _, notes = await shown([*agent("coder")[:1], *tries])
    assert notes.count(outage_line(tries[0])[:30]) == 1


async def test_that_a_run_waits_for_its_model_and_goes_on_is_a_line_each() -> None:
    now = time.time()
    waits = RunWaiting(waiting_for="model", reason="It is away.", since=now, until=now + 3_600)
    _, notes = await shown([*agent("coder")[:1], waits, RunContinued(waiting_for="model", seconds=90)])
    assert "waiting for the model" in notes
    assert "It is away." in notes
    assert notes.splitlines()[-2].endswith("goes on")


async def test_only_the_report_goes_to_the_output_and_the_way_to_it_to_the_notes() -> None:
    output, notes = await shown(workflow())

    assert output == "# Sum\n\nThe answer is **4**.\n"
    assert notes.splitlines() == [
        "coordinator",
        "planner",
        "Plan: 1 + 3",
        "  ☐  1 coder     Compute",
        "  ☐  2 reporter  Report",
        "  ▶  1 coder     Compute",
        "coder",
        "  python_repl_tool: print(1+3)",
        "  python_repl_tool (T): 4",
        "  ✔  1 coder     Compute",
        "  ▶  2 reporter  Report",
        "reporter",
        "  ✔  2 reporter  Report",
        "✔ completed · T · 5 model calls · 550 tokens (500 in, 50 out)",
    ]


async def test_small_talk_is_the_whole_output() -> None:
    output, notes = await shown(small_talk("Hi you"))
    assert output == "Hi you\n"
    assert notes == "coordinator\n✔ completed · T · 1 model call · 110 tokens (100 in, 10 out)\n"


async def test_a_failure_is_reported_as_it_is_and_nothing_goes_to_the_output() -> None:
    message = "The key is refused.\nPut a valid key into BASIC_API_KEY."
    begun = agent("reporter", *model("reporter", "Half a report"))
    output, notes = await shown([started(), *begun, *ending("failed", failure(message))])

    assert output == ""
    assert notes.splitlines()[1:3] == ["✘ The key is refused.", "Put a valid key into BASIC_API_KEY."]
    assert notes.splitlines()[-1].startswith("✘ failed")


async def test_escape_sequences_of_models_and_tools_reach_neither_output_nor_notes() -> None:
    bad = "\x1b[2J\x1b]0;t\x07x"
    events = [
        plan("not_started", "not_started", title=bad),
        *agent("coder", *tool("bash_tool", bad, cmd=bad)),
        *agent("reporter", *model("reporter", bad)),
        *ending("completed", failure(bad)),
    ]
    assert "\x1b" not in "".join(await shown(events))


async def test_long_arguments_and_results_take_one_line_each() -> None:
    code = "\n".join(f"print({n})" for n in range(1000))
    _, notes = await shown(agent("coder", *tool("python_repl_tool", "0\n\n1\n" * 1000, code=code)))

    call, result = notes.splitlines()[1:3]
    assert call.startswith("  python_repl_tool: print(0) ⏎ print(1) ⏎ ")
    assert result.startswith("  python_repl_tool (T): 0 ⏎ 1 ⏎ 0")
    assert len(call) < 200 and call.endswith("…")


async def test_the_reason_of_a_failed_step_is_below_it() -> None:
    begun, ended = plan("in_progress", "not_started"), plan("failed", "skipped", reasons=("a\x1b[2J\nb", ""))
    _, notes = await shown([begun, ended])
    assert "  ✘  1 coder     Compute\n    ↳ a ⏎ b\n  –  2 reporter  Report\n" in notes


async def test_a_blocked_step_is_reported_and_its_reason_once() -> None:
    failed = plan("failed", "not_started", reasons=("no price", ""))
    blocked = plan("blocked", "not_started", reasons=("no price", ""))
    _, notes = await shown([plan("in_progress", "not_started"), failed, blocked])
    assert "  ✘  1 coder     Compute\n    ↳ no price\n  !  1 coder     Compute\n" in notes
    assert notes.count("no price") == 1


async def test_a_broken_answer_is_marked_void_and_not_in_the_output() -> None:
    broken, right = model("reporter", "It is five."), model("reporter", "\n\nIt is four.")
    renamed = right[1].model_copy(update={"message_id": "again"})
    events = agent("reporter", *broken[:2], renamed, *right[2:])
    output, notes = await shown([started(), *events, *ending("completed")])
    assert output == "It is four.\n"
    assert f"  {REPLACEMENT_TEXTS['broken_off']}\n" in notes


class FullDisk(io.StringIO):
    """Has no room for anything."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_answer_for_which_the_disk_has_no_room_is_shown_instead() -> None:
    notes, run = io.StringIO(), run_after(small_talk("Four."))
    with pytest.raises(OSError, match="No space left"):
        PlainDisplay(FullDisk(), notes).finish(run, 0.1)
    assert notes.getvalue() == "Four.\n"


async def test_each_step_of_the_browser_is_a_line_of_the_notes() -> None:
    action = {"name": "click_element", "parameters": {"index": 7}}
    step = BrowserStepChanged(tool_call_id="c", number=2, state="acting", action=action)
    done = step.model_copy(update={"state": "observing", "observation": "Clicked\x1b[2J.", "seconds": 1.0})
    events = [started(), *agent("browser", *model("browser"), step, done), *ending("completed")]
    _, notes = await shown(events)
    assert [line for line in notes.split("\n") if "click_element" in line] == [
        "    2 click_element 7 (T): Clicked."
    ]


async def test_a_report_that_repeats_the_last_result_is_no_step() -> None:
    output, notes = await shown(repeated_result())
    assert output == "1 + 3 = 4\n"
    assert "reporter" not in notes
    assert "✔  1 coder  Compute" in notes


@pytest.mark.parametrize("decision", get_args(DecisionKind))
async def test_each_decision_of_the_lead_is_one_line(decision: str) -> None:
    _, notes = await shown(decided(decision, agent_name="researcher"))
    [line] = [line for line in notes.splitlines() if "→" in line]
    assert "step" in line


async def test_with_concurrent_agents_each_line_names_its_agent() -> None:
    _, notes = await shown(at_once())
    lines = [line for line in notes.splitlines() if "researcher" in line and "Plan" not in line]
    assert [line.strip() for line in lines if "tavily_search:" in line] == [
        "researcher (step 1): tavily_search:",
        "researcher (step 2): tavily_search:",
    ]


async def test_a_line_of_json_names_turn_and_step_of_its_event() -> None:
    output = io.StringIO()
    async with JsonDisplay(output, io.StringIO()) as view:
        show_events(view, at_once())
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [one["data"]["step_id"] for one in lines if one["event"] == "message"] == [1, 2, 1, 2]
    assert {one["data"]["agent_id"] for one in lines if one["event"] == "tool_call"} == {
        "researcher_1",
        "researcher_2",
    }


def test_progress_for_an_mcp_host_names_the_member_with_several_at_work() -> None:
    progress = ProgressLines()
    lines = [
        line for number, event in enumerate(at_once()) for line in progress.lines(record_of(event, number))
    ]
    assert lines[-2:] == ["researcher calls tavily_search"] * 2
