"""The times of events, live and on replay."""

import time

from maniple.events import (
    AgentEnded,
    BrowserStepChanged,
    Event,
    RunStarted,
    ToolCalled,
    ToolReturned,
    Translator,
)
from maniple.events.redactor import redacted_event
from maniple.events.turns import TurnOrder
from maniple.redaction import Redactor
from tests.events.raw_events import Raw, Turn


def test_buffered_events_keep_the_time_at_which_they_happened() -> None:
    translator, order = Translator("r", "t", []), TurnOrder[Event]()

    def feed(raw: Raw) -> list[Event]:
        return [one for event in translator.feed(raw) for one in order.feed(event)]

    first, second = Turn("researcher", 1), Turn("coder", 2)
    for raw in (first.start(), second.start(), *second.say("I"), *second.use("bash_tool")):
        assert not any(isinstance(event, ToolCalled) for event in feed(raw))
    called_before = time.time()
    assert not feed(second.end())
    told = feed(first.end())
    [call] = [event for event in told if isinstance(event, ToolCalled)]
    [result] = [event for event in told if isinstance(event, ToolReturned)]
    ends = {event.agent_name: event.at for event in told if isinstance(event, AgentEnded)}
    assert call.at <= result.at <= called_before <= ends["coder"] <= ends["researcher"]


def test_a_step_that_is_cut_off_was_cancelled_then_and_not_when_it_began() -> None:
    translator = Translator("r", "t", [])
    turn = Turn("coder", 1)
    cut_off = [turn.start(), *turn.use("browser", inside=[turn.step(1, "acting")], outcome="lost")]
    begun = [event for raw in cut_off for event in translator.feed(raw)][-1]
    between = time.time()
    [cancelled] = [event for event in translator.close("cancelled") if isinstance(event, BrowserStepChanged)]
    assert isinstance(begun, BrowserStepChanged)
    assert begun == cancelled.model_copy(update={"state": "acting"})
    assert begun.at <= between <= cancelled.at


def test_an_event_without_its_secrets_happened_when_it_did() -> None:
    result = ToolReturned(tool_call_id="c", tool_name="bash_tool", tool_result="it is hunter22")
    clean = redacted_event(result, Redactor(["hunter22"]))
    assert (clean.tool_result, clean.at) == ("it is ***", result.at)


def test_events_with_equal_fields_are_equal_at_different_times() -> None:
    first, second = (RunStarted(run_id="r", thread_id="t") for _ in range(2))
    assert first == second
    assert first != RunStarted(run_id="r", thread_id="other")
    assert "at" not in first.data()
