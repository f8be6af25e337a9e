"""What the page shows of a run."""

import json

import pytest

from maniple.run_page.page import add_call_times, duration, moment, parse_json_tree
from maniple.store import ToolCallRecord
from tests.run_page.run_records import BROWSED, CALL, JPEG, SHOT, history_of, page, run_record, step


def test_a_run_in_the_browser_is_shown_from_the_question_to_its_result():
    story = history_of(*BROWSED)
    assert (story.request, story.status) == ("Buy a hat", "completed")
    assert story.result.startswith("# Done")
    call, click = story.steps
    assert (call.action, call.observation) == ("browser", "Bought.")
    assert (click.within, click.action, click.thought) == ("browser", "click_element", "The button buys.")
    assert (click.observation, click.success, click.seconds) == (
        "Element with index 7 not found",
        False,
        0.25,
    )
    assert (click.url, click.screenshot) == ("https://shop.test/", "shot-1")
    (used,) = story.usage.values()
    assert (used.calls, used.input_tokens, used.output_tokens, used.seconds) == (2, 1_000, 100, 2.0)


def test_the_page_shows_all_of_it():
    html = page(*BROWSED)
    for words in (
        "Buy a hat",
        "<strong>hat</strong>",
        "click_element",
        "The button buys.",
        "250 ms",
        "failed",
        "1,000",
    ):
        assert words in html
    assert f'src="{JPEG}"' in html
    assert '<a href="https://shop.test/" rel="noopener noreferrer nofollow">' in html


def test_the_data_of_the_page_can_be_read_by_programs():
    data = json.loads(page(*BROWSED).partition('id="run">')[2].partition("</script>")[0])
    assert data["asked"] == "Buy a hat"
    assert data["metadata"]["success"] is True
    assert data["tools_used"][1] == {"name": "click_element", "duration_seconds": 0.25, "success": False}
    assert data["llm_usage"] == {"model_calls": 2, "input_tokens": 1_000, "output_tokens": 100, "cost": 0.0}


def test_a_look_before_the_thought_belongs_to_the_step_that_follows():
    place = {"url": "https://a.test/", "title": "A", "tabs": [], "screenshot": SHOT}
    story = history_of(("browser_state", place), step(1), step(2))
    assert [one.url for one in story.steps] == ["https://a.test/", ""]
    call = {"tool_call_id": "x", "tool_name": "browser_use", "tool_input": {"action": "wait"}}
    story = history_of(("browser_state", place), ("tool_call", call))
    assert story.steps[0].screenshot == "shot-1"


def test_the_reporters_text_is_there_once_as_the_result():
    last = history_of(*BROWSED[:9], *BROWSED[-5:]).steps[-1]
    assert (last.within, last.action, last.thought) == ("browser", "", "")


def test_a_run_that_was_cut_off_shows_how_far_it_came():
    html = page(*BROWSED[:11], run=run_record(status="running"))
    assert "still in progress" in html
    assert "The button buys." in html
    assert "There is none." in html


@pytest.mark.parametrize(
    ("status", "words"),
    [("failed", "The model is gone."), ("cancelled", "run was cancelled"), ("queued", "not started yet")],
)
def test_a_run_without_a_result_has_a_reason(status, words):
    request = json.dumps({"messages": [{"type": "human", "data": {"content": "Why?"}}]})
    error = "The model is gone." if status == "failed" else None
    html = page(run=run_record(status=status, error=error, request=request))
    assert words in html
    assert "<h1>Why?</h1>" in html


def test_a_question_that_is_waited_for_is_shown_until_it_is_answered():
    asked = [
        ("interrupt", {"kind": "question", "payload": {"question": "Which hat?"}}),
        ("run_status", {"status": "interrupted"}),
    ]
    assert "Which hat?" in page(*asked)
    assert "Which hat?" not in page(*asked, ("run", {}), ("run_status", {"status": "completed"}))


def test_the_answer_of_an_earlier_run_is_not_the_result_of_one_that_failed():
    messages = [{"role": "assistant", "content": "Earlier"}, {"role": "user", "content": "And now?"}]
    story = history_of(("run_status", {"status": "failed"}), ("final_session_state", {"messages": messages}))
    assert (story.request, story.result) == ("And now?", "")


def row(
    key: str, arguments: str, begun: float, result: str | None = '{"status": "success"}'
) -> ToolCallRecord:
    ended = begun + 2 if result else None
    return ToolCallRecord("r1", key, "bash_tool", arguments, result, begun, ended)


def test_time_and_success_of_a_tool_come_from_the_ledger_by_its_arguments_or_else_in_order():
    called = [
        ("tool_call", {"tool_call_id": str(n), "tool_name": "bash_tool", "tool_input": {"cmd": cmd}})
        for n, cmd in enumerate(["a", "edited", "b"])
    ]
    story = history_of(*called)
    rows = [
        row("t:3", '{"cmd": "b"}', 30.0, None),
        row("t:1", '{"cmd": "a"}', 10.0),
        row("t:2?approval1", '{"cmd": "edited"}', 15.0),
        row("t:2", '{"cmd": "other"}', 20.0, '{"status": "error"}'),
    ]
    add_call_times(story.calls, rows)
    assert [(one.started, one.seconds, one.success) for one in story.steps] == [
        (10.0, 2.0, True),
        (20.0, 2.0, False),
        (30.0, None, None),
    ]


def test_what_a_tool_printed_is_shown_until_its_result_is_there():
    call = ("tool_call", {"tool_call_id": CALL, "tool_name": "bash_tool", "tool_input": {"cmd": "ls"}})
    printed = ("tool_output", {"tool_call_id": CALL, "text": "half"})
    assert history_of(call, printed).steps[0].observation == "half"
    result = ("tool_call_result", {"tool_call_id": CALL, "tool_result": "whole"})
    assert history_of(call, printed, result).steps[0].observation == "whole"


def test_a_long_run_is_cut_and_marked():
    call = {"tool_call_id": "x", "tool_name": "wait", "tool_input": {}}
    assert "7 more are not shown." in page(*[("tool_call", call)] * 507)


def test_a_result_that_is_json_is_a_tree_that_can_be_folded():
    tree = parse_json_tree('```json\n{"hats": [{"price": 3}, null], "n": 1}\n```')
    assert tree is not None
    assert [child.label for child in tree.children] == ["hats", "n"]
    assert tree.children[0].children[0].children[0].shown == "3"
    assert (
        parse_json_tree("A [link](x)")
        is parse_json_tree("[1, 2")
        is parse_json_tree("{" * 9_999)
        is parse_json_tree('"text"')
        is None
    )


def test_a_tree_is_no_larger_than_a_person_looks_at():
    deep = parse_json_tree("[" * 50 + "]" * 50)
    depth = 0
    while deep and deep.children:
        deep, depth = deep.children[0], depth + 1
    assert depth == 13
    assert len(parse_json_tree(json.dumps([0] * 5_000)).children) == 201  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.25, "250 ms"),
        (0.9999, "1.0 s"),
        (4.21, "4.2 s"),
        (59.97, "1 min 00 s"),
        (185, "3 min 05 s"),
    ],
)
def test_a_time_is_written_in_milliseconds_seconds_or_minutes(seconds, words):
    assert duration(seconds) == words


def test_a_moment_that_is_none_is_not_known():
    assert moment(1_800_000_000.0) == "2027-01-15 08:00:00 UTC"
    assert moment(None) == moment(1e15) == "–"


def test_what_the_user_wrote_to_the_working_team_and_the_replies_are_steps_in_their_place():
    events = (
        ("user_answer", {"interrupt_id": "q", "answer": "Europe"}),
        ("user_answer", {"interrupt_id": "a", "answer": {"type": "reject", "message": "No need."}}),
        ("user_message", {"message_id": "m", "content": "Use <euros>."}),
        ("user_message_answer", {"message_id": "m", "disposition": "passed_on", "content": "Gladly."}),
        ("user_message_answer", {"message_id": "n", "disposition": "dropped", "content": ""}),
    )
    story = history_of(step(1), *events, step(2))
    assert [(one.agent, one.thought) for one in story.steps[1:5]] == [
        ("user", "Europe"),
        ("user", "reject\nNo need."),
        ("user", "Use <euros>."),
        ("lead", "Gladly."),
    ]
    assert len(story.steps) == 6
    html = page(step(1), *events)
    assert "Use &lt;euros&gt;." in html
    assert "Gladly." in html
