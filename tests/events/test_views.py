"""The views of a run's log: one agent at a time for the old client, the true order for others."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.errors import ToolFailure
from maniple.events import (
    VIEW_NAMES,
    VIEWS,
    ErrorOccurred,
    Event,
    RunGap,
    RunInterrupted,
    RunStatusChanged,
    RunView,
    StreamState,
    Translator,
    event_of,
)
from maniple.events.views import describe_failure, describe_gaps, describe_question
from maniple.store import EventRecord
from tests.events.raw_events import Raw, Turn, mixed
from tests.events.test_translate import joined_text, translated
from tests.events.viewed import parsed, records, shown
from tests.grammar import Client

Frames = list[tuple[str, dict[str, Any]]]


@st.composite
def steps_at_once(draw: st.DrawFn) -> list[Raw]:
    """Concurrent turns of members, in any order that keeps each turn's own."""
    members = draw(st.lists(st.sampled_from(["researcher", "coder", "reporter"]), min_size=2, max_size=4))
    lanes: list[list[Raw]] = []
    for number, member in enumerate(members):
        turn = Turn(member, number)
        lane = [turn.start()]
        for kind in draw(st.lists(st.sampled_from(["say", "again", "use", "lost"]), max_size=4)):
            match kind:
                case "say":
                    lane += turn.say("a", "b")
                case "again":
                    lane += [*turn.say("broken", ended=False), *turn.say("whole")]
                case _:
                    lane += turn.use("bash_tool", outcome="result" if kind == "use" else "lost", printed="12")
        lanes.append([*lane, turn.end()] if draw(st.booleans()) else lane)
    return mixed(lanes, draw(st.randoms(use_true_random=False)))


LOGS = st.builds(
    lambda raw_events, status: records(
        translated(raw_events, status, ToolFailure("no luck") if status == "failed" else None)
    ),
    steps_at_once(),
    st.sampled_from(["completed", "failed", "cancelled"]),
)


@given(LOGS)
@settings(max_examples=200, deadline=None)
def test_any_interleaving_of_steps_keeps_the_grammar_of_the_old_client(log):
    Client().read(parsed(shown(log)))


@given(LOGS)
@settings(max_examples=100, deadline=None)
def test_the_live_view_is_the_log_in_its_order_with_the_agent_of_each_event(log):
    frames = shown(log, "live")
    assert [(one.number, one.type, one.at) for one in frames] == [
        (one.number, one.type, one.at) for one in log
    ]
    at_work: set[str] = set()
    for name, data in parsed(frames):
        if name == "start_of_agent":
            at_work.add(data["agent_id"])
        elif "agent_id" in data:
            assert data["agent_id"] in at_work, "an event of a turn that has ended, or not begun"
        if name == "end_of_agent":
            at_work.remove(data["agent_id"])
    assert not at_work


@given(LOGS)
@settings(max_examples=100, deadline=None)
def test_the_turns_are_the_same_in_both_views(log):
    assert turns_of(parsed(shown(log, "live"))) == turns_of(old := parsed(shown(log))), old


def turns_of(frames: Frames) -> dict[str, list[tuple[str, str]]]:
    """Return the events of each turn, without those that one of the views leaves out or puts in words."""
    turns: dict[str, list[tuple[str, str]]] = {}
    current = ""
    for name, data in frames:
        current = data["agent_id"] if name == "start_of_agent" else current
        turn_id = data.pop("agent_id", current)
        data.pop("step_id", None)
        is_note = "notice" in turn_id or "broke off" in str(data) or "The run failed" in str(data)
        if name not in ("tool_output", "message_replaced") and not is_note:
            turns.setdefault(turn_id, []).append((name, json.dumps(data)))
        current = "" if name == "end_of_agent" else current
    turns.pop("", None)
    return turns


@given(LOGS, st.sampled_from(VIEW_NAMES))
@settings(max_examples=50, deadline=None)
def test_what_was_shown_of_a_log_stays_the_beginning_of_what_is_shown_of_a_longer_one(log, name):
    whole = shown(log, name)
    for length in range(len(log) + 1):
        frames = shown(log[:length], name)
        assert frames == whole[: len(frames)]


@given(steps_at_once(), st.data())
@settings(max_examples=100, deadline=None)
def test_wherever_concurrent_steps_are_cut_off_the_old_client_can_follow_the_rest(raw_events, draw):
    whole = translated(raw_events)
    before = whole[: draw.draw(st.integers(1, len(whole) - 1))]
    state = StreamState.of(before)
    translator = Translator("run-1", "thread-1", [], state)
    rest = [] if state.has_ended else [*translator.open(), *translator.close("completed")]
    log = records([*before, *rest])
    Client().read([(n, d) for n, d in parsed(shown(log)) if n != "start_of_workflow" or d["input"]])
    assert not folded(log).turns


def folded(log: Sequence[EventRecord]) -> RunView:
    """Return what the reducer makes of records."""
    view = RunView()
    view.apply_records(log)
    return view


def two_researchers() -> list[EventRecord]:
    """Two members who speak and call tools at the same time."""
    first, second = Turn("researcher", 1), Turn("researcher", 2)
    one, other = first.say("I am the first"), second.say("I am the second")
    call, another = first.use("bash_tool"), second.use("bash_tool")
    events = [first.start(), second.start(), one[0], other[0], one[1], other[1], one[2], other[2]]
    return records(translated([*events, call[0], another[0], another[1], second.end(), call[1], first.end()]))


def test_the_reducer_keeps_calls_and_texts_of_concurrent_turns_apart():
    log = two_researchers()
    view = RunView()
    most = 0
    for record in log:
        view.apply(event_of(record))
        most = max(most, len(view.running_calls))
        if record.type == "end_of_agent":
            assert all(call.agent_id in view.turns for call in view.running_calls.values())
    assert most == 2
    assert (view.running_calls, view.turns) == ({}, {})


def test_a_log_of_an_earlier_version_is_shown_as_that_version_showed_it():
    events = translated(
        [*(turn := Turn("coder", 1)).say("x"), turn.start()], "failed", ToolFailure("no luck")
    )
    earlier = [EventRecord(one.number, one.type, one.data, one.at) for one in records(events)]
    for name in VIEW_NAMES:
        assert shown(earlier, name) == earlier


def failing(*turns: Turn) -> Frames:
    raw_events = [raw for turn in turns for raw in (turn.start(), *turn.say("so far"))]
    return parsed(shown(records(translated(raw_events, "failed", ToolFailure("No luck.")))))


def reports(frames: Frames) -> list[str]:
    """Return what the old client shows of the reporter: the first text of each of its turns."""
    texts: list[str] = []
    reporting = is_first = False
    for name, data in frames:
        if name == "start_of_agent":
            reporting, is_first = data["agent_name"] == "reporter", True
            texts += [""] if reporting else []
        elif name == "end_of_llm":
            is_first = False
        elif name == "message" and reporting and is_first:
            texts[-1] += data["delta"]["content"]
    return texts


def test_a_failed_runs_reason_follows_the_streamed_text_as_the_reporters():
    frames = failing(Turn("coder", 1))
    Client().read(frames)
    error = ErrorOccurred(code="x", message="No luck.", agent_name=None, retryable=ToolFailure.retryable)
    assert reports(frames) == [describe_failure(error)]
    assert [name for name, _ in frames][-4:] == [
        "error",
        "run_status",
        "end_of_workflow",
        "final_session_state",
    ]
    assert [one["content"] for one in frames[-1][1]["messages"]] == ["hi"], (
        "it is no part of the conversation"
    )


def test_a_failure_within_the_report_is_stated_at_its_end():
    frames = failing(Turn("coder", 1), Turn("reporter", 2))
    Client().read(frames)
    [report] = reports(frames)
    assert report.startswith("so far")
    assert "No luck." in report


def test_a_cancelled_run_adds_no_text():
    frames = parsed(
        shown(records(translated([(turn := Turn("coder", 1)).start(), *turn.say("x")], "cancelled")))
    )
    assert reports(frames) == []


@pytest.mark.parametrize("last", ["reporter", "coder"])
def test_missing_parts_are_stated_at_the_end_of_the_report(last):
    turn = Turn(last, 1)
    events = translated([turn.start(), *turn.say("# Report"), turn.end()])
    gaps = [RunGap(step="Ask the moon", reason="It does not answer.")]
    told = [RunStatusChanged(status="completed", gaps=gaps) if is_status(one) else one for one in events]
    frames = parsed(shown(records(told)))
    Client().read(frames)
    text = describe_gaps(gaps)
    assert reports(frames) == [f"# Report\n\n{text}" if last == "reporter" else text]


def is_status(event: Event) -> bool:
    return isinstance(event, RunStatusChanged)


def test_the_end_of_a_report_is_as_it_was_when_nothing_is_missing():
    turn = Turn("reporter", 1)
    log = records(translated([turn.start(), *turn.say("# Report"), turn.end()]))
    assert [(one.type, one.data) for one in shown(log)] == [(one.type, one.data) for one in log]


PAUSES = [
    RunInterrupted(
        interrupt_id="1", kind="question", payload={"question": "Which moon?"}, options=["Io", "Europa"]
    ),
    RunInterrupted(
        interrupt_id="2",
        kind="tool_approval",
        payload={"reason": "approval", "tool_name": "bash_tool", "tool_input": {"cmd": "rm -r moons"}},
        options=["approve", "edit", "reject"],
    ),
    RunInterrupted(
        interrupt_id="3",
        kind="tool_approval",
        payload={"reason": "unknown_result", "tool_name": "bash_tool", "tool_input": {}},
        options=["run_again", "skip"],
    ),
]


@pytest.mark.parametrize("pause", PAUSES, ids=["question", "approval", "unknown result"])
def test_a_question_is_a_text_of_the_coordinator_with_its_options_and_in_the_conversation(pause):
    turn = Turn("coder", 1)
    events: list[Event] = []
    for event in translated([turn.start(), *turn.say("x")], "completed"):
        events += [pause, RunStatusChanged(status="interrupted")] if is_status(event) else [event]
    frames = parsed(shown(records(events)))
    Client().read(frames)
    text = describe_question(pause)
    assert [data["agent_name"] for name, data in frames if name == "start_of_agent"][-1] == "coordinator"
    assert joined_text(frames).endswith(text)
    for name in ("end_of_workflow", "final_session_state"):
        assert dict(frames)[name]["messages"][-1] == {"role": "assistant", "content": text}
    live = parsed(shown(records(events), "live"))
    assert text not in str(live)


def test_a_question_shows_what_can_be_answered():
    question, approval, unknown = map(describe_question, PAUSES)
    assert all(word in question for word in ("Which moon?", "1. Io", "2. Europa"))
    assert all(word in approval for word in ("bash_tool", "rm -r moons", "`approve`", "`yes`", "`no`"))
    assert all(word in unknown for word in ("bash_tool", "`run again`", "`skip`", "`result:`"))


def test_a_plan_for_review_needs_no_words():
    pause = RunInterrupted(interrupt_id="1", kind="plan_review", payload={"plan": {}}, options=["accept"])
    assert describe_question(pause) == ""


@pytest.mark.parametrize("name", VIEW_NAMES)
def test_a_stream_that_ends_before_its_run_closes_what_was_shown(name):
    log = two_researchers()
    reason = ErrorOccurred(code="stopping", message="The service stops.", agent_name=None, retryable=True)
    for length in range(1, len(log) - 3):
        view, sent = VIEWS[name]("run-1"), RunView()
        for record in log[:length]:
            sent.apply_records(view.feed(record))
        closing = list(view.closing_frames(sent.stream, reason))
        assert {one.number for one in closing} == {0}
        sent.apply_records(closing)
        assert (sent.turns, sent.running_calls) == ({}, {})
