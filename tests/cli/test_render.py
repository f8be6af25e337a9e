import io
import re
import time

import pytest
from rich.console import Console

from maniple.cli.render.run_text import SHOWN_REPLACEMENT_TEXTS, outage_line
from maniple.cli.render.terminal import TerminalDisplay
from maniple.events import BrowserStepChanged, Event, ModelUnreachable, RunWaiting, TurnMark
from tests.cli.events import (
    agent,
    at_once,
    decided,
    ending,
    failure,
    model,
    plan,
    printed,
    repeated_result,
    review,
    show_events,
    small_talk,
    started,
    tool,
    workflow,
)

pytestmark = pytest.mark.anyio


async def screen(events: list[Event], *, width: int = 80, height: int = 20) -> str:
    """What is on the screen at the end, by playing back what was written to the terminal."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, force_terminal=True, no_color=True)
    async with TerminalDisplay(console) as view:
        run = show_events(view, events)
    view.finish(run, 0.1)
    return re.sub(r"\d+\.\d s", "T", played(file.getvalue()))


def played(output: str) -> str:
    """Play the few sequences that rich writes for a live region: up, erase all below, carriage return."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", output):
        if token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token == "\r":
            column = 0
        elif token.endswith("A"):
            row -= int(token[2:-1] or 1)
        elif token == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif not token.startswith("\x1b"):
            line = lines[row].ljust(column)
            lines[row] = line[:column] + token + line[column + len(token) :]
            column += len(token)
    return "\n".join(line.rstrip() for line in lines).strip("\n")


async def test_a_run_leaves_its_plan_tools_and_report_on_the_screen_once_each() -> None:
    assert (await screen(workflow())).splitlines() == [
        "planner",
        "  Plan: 1 + 3",
        "",
        "coder  Compute",
        "  I compute it.",
        "  ⚙ 1 python_repl_tool  print(1+3)",
        "    ↳ T  4",
        "",
        "  1 + 3 = 4",
        "  ✔  1 coder     Compute",
        "",
        "reporter  Report",
        "Sum",
        "",
        "The answer is 4.",
        "",
        "✔ completed · T · 5 model calls · 550 tokens (500 in, 50 out)",
    ]


async def test_what_members_write_at_the_same_time_is_not_mixed() -> None:
    shown = await screen(at_once())
    assert "alpha beta" in shown
    assert "gamma delta" in shown
    lines = [line.strip() for line in shown.splitlines()]
    assert lines.index("researcher  First") < lines.index("alpha beta") < lines.index("researcher  Second")
    assert lines.index("researcher  Second") < lines.index("gamma delta")
    assert re.findall(r"⚙ (\d) tavily_search", shown) == ["1", "2"]


async def test_who_works_at_the_same_time_is_seen() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, height=20, force_terminal=True, no_color=True)
    async with TerminalDisplay(console) as view:
        show_events(view, at_once()[:-2])  # both calls are under way
        view.note("now")
        painted = played(file.getvalue())
    lines = [line for line in painted.splitlines() if "tavily_search is running" in line]
    assert ["First" in line for line in lines] == [True, False]
    assert ["Second" in line for line in lines] == [False, True]


async def test_small_talk_is_shown_under_the_coordinators_name() -> None:
    assert (await screen(small_talk("Hello there!"))).splitlines()[:2] == ["coordinator", "Hello there!"]


async def test_a_report_longer_than_the_screen_is_shown_once_and_whole() -> None:
    paragraphs = [f"Paragraph {n} of the report.\n\n" for n in range(60)]
    shown = await screen(
        workflow([piece for text in paragraphs for piece in text.partition(" of ")]), height=12
    )
    assert re.findall(r"Paragraph \d+ of the report\.", shown) == [text.strip() for text in paragraphs]


async def test_a_block_longer_than_the_screen_is_shown_once_and_whole() -> None:
    code = "```\n" + "".join(f"line {n}\n" for n in range(80)) + "```\n"
    shown = await screen(workflow([code[start : start + 5] for start in range(0, len(code), 5)]), height=12)
    assert re.findall(r"line (\d+)", shown) == [str(n) for n in range(80)]


async def test_the_planners_json_is_not_printed() -> None:
    assert '"steps"' not in await screen(workflow())


async def test_a_plan_that_is_being_written_is_shown_until_the_planner_has_ended() -> None:
    draft = plan("not_started", steps=[("coder", "Compute")]).model_copy(update={"draft": True})
    begun = [started(), *agent("planner", *model("planner", "{}"))]
    writing = [*begun[:-1], draft]
    file = io.StringIO()
    console = Console(file=file, width=80, height=20, force_terminal=True, no_color=True)
    async with TerminalDisplay(console) as view:
        run = show_events(view, writing)
        view.note("now")
        assert "☐  1 coder  Compute" in played(file.getvalue())
        assert run.plan is None
        show_events(view, begun[-1:], run)
        file.truncate(0)
        view.note("then")
        assert "Compute" not in played(file.getvalue())


async def test_a_plan_for_review_is_shown_as_a_list() -> None:
    events = [*agent("planner", *model("planner", "{}")), plan("not_started", "not_started"), review()]
    shown = await screen([started(), *events, *ending("interrupted")])
    assert "  ☐  1 coder     Compute\n  ☐  2 reporter  Report\n" in shown
    assert "? waiting" in shown


async def test_failed_and_skipped_steps_stay_on_the_screen() -> None:
    steps = [("researcher", "Find"), ("coder", "Compute"), ("reporter", "Report")]
    planned = plan("not_started", "not_started", "not_started", steps=steps)
    shown = await screen([planned, plan("failed", "skipped", "in_progress", steps=steps)])
    assert "✘  1 researcher  Find\n  –  2 coder       Compute" in shown


async def test_a_failed_step_shows_its_reason_in_one_safe_line() -> None:
    why = "Traceback (most recent call last):\n  x\nValueError: no\x1b[2J number"
    shown = await screen([plan("in_progress", "not_started"), plan("failed", "skipped", reasons=(why, ""))])
    assert "✘  1 coder     Compute\n    ↳ ValueError: no number\n  –  2 reporter  Report" in shown


async def test_a_blocked_step_stays_on_the_screen_with_its_reason_once() -> None:
    failed = plan("failed", "not_started", reasons=("NEEDS: the price", ""))
    blocked = plan("blocked", "not_started", reasons=("NEEDS: the price", ""))
    shown = await screen([plan("in_progress", "not_started"), failed, blocked])
    assert "✘  1 coder     Compute\n    ↳ NEEDS: the price\n  !  1 coder     Compute\n" in shown
    assert shown.count("NEEDS") == 1


async def test_an_agents_name_is_above_its_text_while_it_streams() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, height=20, force_terminal=True, no_color=True)
    first, second = agent("coder", *model("coder", "Done.")), agent("reporter", *model("reporter", "The sum"))
    async with TerminalDisplay(console) as view:
        run = show_events(view, [*first, *second[:2]])
        before = played(file.getvalue())
        show_events(view, second[2:3], run)
        view.note("now")
        after = played(file.getvalue())

    assert "reporter\n" not in before
    assert after.splitlines()[:5] == ["coder", "  Done.", "", "reporter", "The sum"]


async def test_text_of_an_answer_that_broke_off_is_marked_void() -> None:
    broken, right = model("reporter", "It is", " five."), model("reporter", "\n\nIt is", " four.")
    renamed = [event.model_copy(update={"message_id": "again"}) for event in right[1:3]]
    shown = await screen(agent("reporter", *broken[:3], *renamed, *right[3:]))
    assert [line.strip() for line in shown.splitlines() if line][:4] == [
        "reporter",
        "It is five.",
        SHOWN_REPLACEMENT_TEXTS["broken_off"],
        "It is four.",
    ]
    assert shown.count("broke off") == 1


async def test_an_error_is_reported_as_it_is_and_markup_in_it_is_text() -> None:
    message = "The key is refused [401].\n[red]Put a valid key[/red] into BASIC_API_KEY."
    shown = await screen([started(), *ending("failed", failure(message))])
    assert "✘ The key is refused [401].\n[red]Put a valid key[/red] into BASIC_API_KEY." in shown
    assert "✘ failed" in shown


@pytest.mark.parametrize("name", ["coder", "reporter", "coordinator"])
async def test_escape_sequences_and_markup_of_models_and_tools_do_nothing(name: str) -> None:
    bad = "\x1b]0;title\x07\x1b[5;5H[blink]x[/blink]\x9b2J"
    events = [*model(name, bad, reasoning=[bad]), *tool("bash_tool", bad, cmd=bad)]
    file = io.StringIO()
    view = TerminalDisplay(Console(file=file, width=60, force_terminal=True))
    async with view:
        show_events(view, agent(name, *events))

    assert not any(bad in file.getvalue() for bad in ("title", "\x1b[5;5H", "\x9b"))
    assert "[blink]x[/blink]" in file.getvalue()


async def test_the_live_line_shows_what_is_awaited_and_for_how_long() -> None:
    file = io.StringIO()
    view = TerminalDisplay(Console(file=file, width=80, force_terminal=True, no_color=True))
    async with view:
        show_events(view, agent("coder", *model("coder", "x")[:1])[:-1])
        view.note("Cancelling …")
    first, _, last = file.getvalue().partition("Cancelling …")
    assert re.search(r"starting · 0\.\d s.*run 0\.\d s · Ctrl-C cancels", first)
    assert re.search(r"coder waits for the model · 0\.\d s.*run 0\.\d s", last)
    assert "Ctrl-C cancels" not in last


async def test_an_outage_of_the_model_is_seen_until_it_answers() -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, height=20, force_terminal=True, no_color=True)
    turn = TurnMark("coder_1", 1)
    begun, *answer, _ = (one.in_turn(turn) for one in agent("coder", *model("coder", "4")))
    lead = ModelUnreachable(attempt=2, seconds=2, left_seconds=30)
    coder = ModelUnreachable(attempt=3, seconds=2, left_seconds=28).in_turn(turn)
    async with TerminalDisplay(console) as view:
        run = show_events(view, [lead])
        view.note("first")
        assert "lead: the model" in played(file.getvalue())
        run = show_events(view, [begun, answer[0], coder], run)
        view.note("then")
        painted = played(file.getvalue())
        assert f"coder: {outage_line(coder)}"[:60] in painted
        assert "lead: the model" not in painted
        show_events(view, answer[1:2], run)
        view.note("last")
    assert "the model endpoint" not in played(file.getvalue())


async def test_that_a_run_waits_for_its_model_is_seen_while_an_agent_writes() -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, height=20, force_terminal=True, no_color=True)
    begun, *answer = (one.in_turn(TurnMark("coder_1", 1)) for one in agent("coder", *model("coder", "4")))
    now = time.time()
    waits = RunWaiting(waiting_for="model", reason="It is away.", since=now, until=now + 3_600)
    async with TerminalDisplay(console) as view:
        show_events(view, [begun, *answer[:2], waits])
        view.note("then")
        assert "waiting for the model" in played(file.getvalue())


async def test_what_a_call_prints_is_seen_in_its_last_lines_until_the_result_is_there() -> None:
    file = io.StringIO()
    console = Console(file=file, width=60, height=20, force_terminal=True, no_color=True)
    called, returned = tool("bash_tool", "the result", cmd="make")
    lines = "".join(f"line {number}\n" for number in range(9))
    texts = [f"\x1b]0;title\x07{lines}", "10 %\r\x1b[2J20 %", "\r" + 80 * "x"]
    async with TerminalDisplay(console) as view:
        run = show_events(view, [*agent("coder")[:1], called, *(printed(called, text) for text in texts)])
        view.note("now")
        during = [line.strip() for line in played(file.getvalue()).splitlines()]
        show_events(view, [returned], run)
        view.note("then")
        after = played(file.getvalue())
    shown = during[during.index("now") :]
    assert shown[2:-2] == ["line 7", "line 8", "10 %", "20 %", 53 * "x" + "…"]
    assert not any(bad in file.getvalue() for bad in ("title", "\x1b[2J"))
    assert "line 8" not in after
    assert "the result" in after


async def test_parallel_tool_results_name_their_agent() -> None:
    first, second = (
        tool("crawl_tool", "page", url="https://a.example"),
        tool("tavily_search", "hits", query="b"),
    )
    shown = await screen(agent("researcher", first[0], second[0], first[1], second[1]))
    assert "↳ crawl_tool T  page" in shown
    assert "↳ T  hits" in shown


async def test_each_step_of_the_browser_stays_on_the_screen_as_a_line() -> None:
    action = {"name": "click_element", "parameters": {"index": 7}}
    step = BrowserStepChanged(tool_call_id="c", number=2, state="acting", action=action)
    done = step.model_copy(update={"state": "observing", "observation": "Clicked\x1b[2J.", "seconds": 1.0})
    events = [started(), *agent("browser", *model("browser"), step, done), *ending("completed")]
    assert (await screen(events)).count("2 click_element 7 (T): Clicked.") == 1


async def test_a_report_that_repeats_the_last_result_is_neither_a_step_nor_shown_again() -> None:
    shown = await screen(repeated_result())
    assert "reporter" not in shown
    assert shown.count("1 + 3 = 4") == 1
    assert "✔  1 coder  Compute" in shown


async def test_a_repeated_result_that_the_citation_check_has_changed_is_the_answer() -> None:
    shown = (await screen(repeated_result("1 + 3 = 4 [unverified]"))).splitlines()
    assert shown[shown.index("answer") + 1] == "1 + 3 = 4 [unverified]"


async def test_what_the_lead_decides_after_a_failed_step_is_shown_below_it() -> None:
    lines = (await screen(decided("reassign", agent_name="researcher", hint="Look it up."))).splitlines()
    failed = next(at for at, line in enumerate(lines) if "✘  1 coder" in line)
    assert re.search("→ .*step 1.*researcher.*Look it up", lines[failed + 2])
