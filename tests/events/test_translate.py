"""The translation from LangGraph's raw events, for any interleaving of them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.types import Interrupt

from maniple.events import Event, Translator
from maniple.events.views import ANSWER_BROKE_OFF
from tests.events.raw_events import AGENTS, Raw, Turn, foreign, mixed, nested
from tests.events.viewed import parsed, records, shown
from tests.grammar import Client


def translated(
    events: Sequence[Raw], status: str = "completed", error: Exception | None = None
) -> list[Event]:
    translator = Translator("run-1", "thread-1", [HumanMessage("hi")])
    told = [*translator.open()]
    for one in events:
        told += translator.feed(one)
    return [*told, *translator.close(status, error)]  # type: ignore[arg-type]


def frames(events: Sequence[Raw], status: str = "completed", error: Exception | None = None) -> list[Any]:
    """Return what the old client is shown."""
    return parsed(shown(records(translated(events, status, error)), run_id="run-1"))


def joined_text(told: Sequence[Any], key: str = "content") -> str:
    return "".join(data["delta"].get(key, "") for name, data in told if name == "message")


@st.composite
def turns(draw: st.DrawFn) -> list[Raw]:
    """One agent's turn with anything in it that a model, a tool or a crash may cause."""
    prefix = draw(st.sampled_from(["", "left:1|", "right:2|", "theirs:3|deeper:4|", "coder:5|"]))
    turn = Turn(draw(st.sampled_from(AGENTS)), draw(st.uuids()), prefix)
    events = [turn.start()]
    for kind in draw(
        st.lists(
            st.sampled_from(["say", "cut", "use", "lost", "error", "nested", "stray", "graph"]), max_size=6
        )
    ):
        match kind:
            case "say" | "cut":
                pieces = draw(st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=4))
                events += turn.say(*pieces, ended=kind == "say")
            case "use" | "lost" | "error":
                outcome = {"use": "result"}.get(kind, kind)
                events += turn.use("bash_tool", outcome=outcome, printed=draw(st.sampled_from(["", "12"])))
            case "nested":
                inside = [turn.step(1, "thinking"), turn.look(), *turn.say("x", "y"), turn.step(1, "acting")]
                outcome = draw(st.sampled_from(["result", "lost", "error"]))
                events += turn.use("browser", inside=inside, outcome=outcome)
            case "stray":
                events += turn.say("z")[1:]
            case "graph":
                events += nested(turn)
    if draw(st.booleans()):
        events.append(turn.end(AIMessage("done", name=turn.agent)))
    return events


FOREIGN = st.builds(
    foreign, st.sampled_from(AGENTS), st.uuids(), st.sampled_from(["", "left:1|", "theirs:3|"])
)


@given(
    st.lists(turns() | FOREIGN, max_size=5),
    st.randoms(use_true_random=False),
    st.sampled_from(["completed", "failed", "cancelled"]),
)
@settings(max_examples=400, deadline=None)
def test_any_interleaving_of_raw_events_keeps_the_grammar_of_the_client(lanes, random, status):
    error = RuntimeError("boom") if status == "failed" else None
    told = frames(mixed(lanes, random), status, error)
    Client().read(told)
    assert "theirs" not in str(told)


@given(st.lists(turns() | FOREIGN, min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_no_text_is_lost_or_mixed_when_agents_stream_concurrently(lanes, random):
    owners: dict[str, str] = {}
    turns_told: list[str] = []
    for name, data in frames(mixed(lanes, random)):
        if name == "start_of_agent":
            turns_told.append(data["agent_id"])
        if name == "message" and "content" in data["delta"]:
            assert owners.setdefault(data["message_id"], turns_told[-1]) == turns_told[-1]
    assert len(set(turns_told)) == len(turns_told)


@given(st.lists(FOREIGN, max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_a_parent_graphs_own_work_emits_nothing(lanes, random):
    assert frames(mixed(lanes, random)) == frames([])


def test_a_graph_inside_an_agent_is_a_part_of_its_turn():
    turn = Turn("coder", 1)
    told = frames([turn.start(), *nested(turn), turn.end(HumanMessage("done", name="coder"))])
    Client().read(told)
    assert [name for name, _ in told].count("start_of_agent") == 1
    assert joined_text(told) == "x"
    assert [message["content"] for message in told[-1][1]["messages"]] == ["hi", "done"]


class Thing:
    def __str__(self) -> str:
        return "a thing"


def test_values_without_a_json_form_are_sent_as_text():
    turn = Turn("coder", 1)
    started, ended = turn.use("bash_tool")
    circle: Raw = {}
    circle["self"] = circle
    for arguments, expected in (
        ({"state": Thing(), "n": float("nan")}, {"state": "a thing", "n": "NaN"}),
        ({("a", 1): 1, "text": "\ud83d"}, {"text": "\ufffd"}),
        (Thing(), {"input": "a thing"}),
        (circle, {"value": "{'self': {...}}"}),
    ):
        told = frames([turn.start(), {**started, "data": {"input": arguments}}, ended, turn.end()])
        assert [data["tool_input"] for name, data in told if name == "tool_call"] == [expected]
        json.dumps(told, allow_nan=False)


def test_output_is_reported_with_the_call_that_printed_it():
    turn = Turn("coder", 1)
    calls = [turn.use(name, printed=text) for name, text in (("python_repl_tool", "ab"), ("bash_tool", "cd"))]
    raw_events = [one for pair in zip(*calls, strict=True) for one in pair]
    told = frames([turn.start(), *turn.say("x"), *raw_events, turn.end()])
    Client().read(told)
    names = {data["tool_call_id"]: data["tool_name"] for name, data in told if name == "tool_call"}
    printed = [data for name, data in told if name == "tool_output"]
    assert [(names[one["tool_call_id"]], one["text"]) for one in printed] == [
        ("python_repl_tool", "a"),
        ("bash_tool", "c"),
        ("python_repl_tool", "b"),
        ("bash_tool", "d"),
    ]


def test_output_during_another_agents_turn_is_only_in_the_result():
    speaker, other = Turn("researcher", 1), Turn("coder", 1, "right:1|")
    started, *printed, ended = other.use("bash_tool", printed="ab")
    told = frames(
        [speaker.start(), other.start(), started, printed[0], speaker.end(), printed[1], ended, other.end()]
    )
    Client().read(told)
    assert [data["text"] for name, data in told if name == "tool_output"] == ["b"]


def test_a_parents_own_kind_of_pause_is_reported_as_a_question():
    pause = Interrupt({"kind": "their_kind", "who": Thing()}, id="p1")
    chunk = {
        "event": "on_chain_stream",
        "name": "x",
        "run_id": "1",
        "metadata": {},
        "data": {"chunk": {"__interrupt__": (pause,)}},
    }
    told = dict(frames([chunk]))
    assert told["run_status"]["status"] == "interrupted"
    assert (told["interrupt"]["kind"], told["interrupt"]["options"]) == ("question", [])
    assert told["interrupt"]["payload"] == {"kind": "their_kind", "who": "a thing"}


@pytest.mark.parametrize("before", [[], Turn("reporter", 1).use("crawl_tool")], ids=["alone", "after a tool"])
def test_a_report_that_no_model_wrote_is_shown_as_one_that_a_model_wrote(before):
    turn = Turn("reporter", 1)
    told = frames([turn.start(), *before, turn.end(HumanMessage("# Missing", name="reporter", id="m1"))])
    Client().read(told)
    inside = [name for name, _ in told if name not in ("run", "start_of_workflow", "run_status")]
    assert inside[-6:-2] == ["start_of_llm", "message", "end_of_llm", "end_of_agent"]
    assert joined_text(told) == "# Missing"


def test_a_report_that_a_model_wrote_is_shown_once():
    turn = Turn("reporter", 1)
    told = frames([turn.start(), *turn.say("# Report"), turn.end(HumanMessage("# Report", name="reporter"))])
    assert joined_text(told) == "# Report"
    assert [name for name, _ in told].count("start_of_llm") == 1


def test_the_conversation_is_what_the_state_of_the_outermost_graph_holds():
    turn = Turn("coordinator", 1)
    kept = [HumanMessage("before"), AIMessage("Hello!"), HumanMessage("hi")]
    begin = {**turn.start(), "data": {"input": {"messages": kept}}}
    told = frames([begin, *turn.say("Yes?"), turn.end(AIMessage("Yes?", id="coordinator1-llm1"))])
    contents = [message["content"] for message in told[-1][1]["messages"]]
    assert contents == ["before", "Hello!", "hi", "Yes?"]


def test_inside_a_parent_graph_the_conversation_is_the_one_that_was_given():
    turn = Turn("coordinator", 1, prefix="theirs:1|")
    begin = {**turn.start(), "data": {"input": {"messages": [HumanMessage("a part of it")]}}}
    told = frames([begin, *turn.say("Yes?"), turn.end(AIMessage("Yes?", id="coordinator1-llm1"))])
    assert [message["content"] for message in told[-1][1]["messages"]] == ["hi", "Yes?"]


def test_a_hand_off_is_never_shown_however_it_is_cut():
    turn = Turn("coordinator", 1)
    told = frames([turn.start(), *turn.say("ha", "ndoff_to", "_planner", "()"), turn.end()])
    assert joined_text(told) == ""


def test_a_reply_of_one_piece_is_shown_whole():
    turn = Turn("coordinator", 1)
    events = [turn.start(), *turn.say("Hello!"), turn.end(AIMessage("Hello!", id="coordinator1-llm1"))]
    assert joined_text(frames(events)) == "Hello!"


def test_a_planner_shows_only_the_plan_that_was_accepted():
    turn = Turn("planner", 1)
    events = [
        turn.start(),
        *turn.say("no json"),
        *turn.say('{"title"', ": 1}"),
        turn.end(HumanMessage('{"title":"P"}')),
    ]
    told = frames(events)
    assert joined_text(told) == '{"title":"P"}'
    assert [name for name, _ in told].count("start_of_llm") == 1


def test_a_broken_stream_goes_on_where_it_broke():
    turn = Turn("reporter", 1)
    events = [
        turn.start(),
        *turn.say("The answ", ended=False),
        *turn.say("The ", "answer", " is 4"),
        turn.end(),
    ]
    told = frames(events)
    assert joined_text(told) == "The answer is 4"
    assert [name for name, _ in told].count("start_of_llm") == 1
    assert len({data["message_id"] for name, data in told if name == "message"}) == 1


def test_a_broken_stream_that_goes_another_way_follows_whole():
    turn = Turn("reporter", 1)
    events = [turn.start(), *turn.say("The answ", ended=False), *turn.say("The", " sum is 4"), turn.end()]
    told = [(event.type, event.data()) for event in translated(events)]
    assert joined_text(told) == "The answ\n\nThe sum is 4"
    assert [data for name, data in told if name == "message_replaced"] == [
        {"message_id": "reporter1-llm1", "replaced_by": "reporter1-llm2"}
    ]


def test_the_old_client_sees_that_an_answer_broke_off_before_the_one_that_takes_its_place():
    turn = Turn("reporter", 1)
    events = [turn.start(), *turn.say("The answ", ended=False), *turn.say("The", " sum is 4"), turn.end()]
    told = frames(events)
    Client().read(told)
    texts: dict[str, str] = {}
    for name, data in told:
        if name == "message":
            texts[data["message_id"]] = texts.get(data["message_id"], "") + data["delta"]["content"]
    assert texts == {
        "reporter1-llm1": f"The answ\n\n{ANSWER_BROKE_OFF}",
        "reporter1-llm2": "\n\nThe sum is 4",
    }


def test_a_tool_that_raises_gives_its_words_as_the_result():
    turn = Turn("coder", 1)
    told = frames([turn.start(), *turn.say("x"), *turn.use("bash_tool", outcome="error"), turn.end()])
    assert [d["tool_result"] for name, d in told if name == "tool_call_result"] == ["ValueError: bad input"]


def test_models_inside_tools_are_not_shown():
    turn = Turn("browser", 1)
    inner = Turn("browser", 1).say("thinking")
    told = frames([turn.start(), *turn.say("go"), *turn.use("browser", inside=inner), turn.end()])
    assert joined_text(told) == "go"


def test_agents_are_found_in_a_parent_graph():
    turn = Turn("coder", 1, prefix="theirs:1|team:2|")
    told = frames([turn.start(), *turn.say("x"), turn.end()])
    assert ("start_of_agent", {"agent_name": "coder", "agent_id": "run-1_coder_3"}) in told
    assert joined_text(told) == "x"


def test_the_coordinators_reasoning_is_not_sent_to_the_old_client():
    turn = Turn("coordinator", 1)
    events = turn.say("Hi")
    thought = AIMessageChunk("", id="c", additional_kwargs={"reasoning_content": "hm"})
    events.insert(1, {**events[1], "data": {"chunk": thought}})
    told = frames([turn.start(), *events, turn.end(AIMessage("Hi", id="coordinator1-llm1"))])
    assert joined_text(told, "reasoning_content") == ""


def test_the_planners_reasoning_streams():
    turn = Turn("planner", 1)
    events = turn.say("{}")
    thought = AIMessageChunk("", id="c", additional_kwargs={"reasoning_content": "hm"})
    events.insert(1, {**events[1], "data": {"chunk": thought}})
    told = frames([turn.start(), *events, turn.end(HumanMessage("{}"))])
    assert joined_text(told, "reasoning_content") == "hm"


def test_a_failed_run_hands_back_the_conversation():
    turn = Turn("planner", 1)
    told = frames([turn.start(), *turn.say("{")], "failed", RuntimeError("boom"))
    assert [name for name, _ in told[-4:]] == [
        "error",
        "run_status",
        "end_of_workflow",
        "final_session_state",
    ]
    assert told[-1][1]["messages"] == [{"role": "user", "content": "hi"}]
    assert told[-4][1]["agent_name"] == "planner"


def test_the_steps_of_a_call_are_reported_under_it_without_its_text():
    turn = Turn("coder", 1)
    steps = [turn.step(1, "thinking"), *turn.say("secret"), turn.look(), turn.step(1, "completed")]
    told = frames([turn.start(), *turn.use("browser", inside=steps), turn.end(AIMessage("done"))])
    Client().read(told)
    names = [name for name, _ in told]
    called = names.index("tool_call")
    assert names[called : called + 6] == [
        *("tool_call", "browser_step", "usage", "browser_state", "browser_step", "tool_call_result")
    ]
    assert joined_text(told) == ""
    steps_told = [data for name, data in told if name == "browser_step"]
    assert [one["state"] for one in steps_told] == ["thinking", "completed"]
    assert {one["tool_call_id"] for one in steps_told} == {told[called][1]["tool_call_id"]}


def test_a_call_that_is_cut_off_ends_with_a_cancelled_step():
    turn = Turn("coder", 1)
    told = frames(
        [turn.start(), *turn.use("browser", inside=[turn.step(2, "acting")], outcome="lost")], "cancelled"
    )
    Client().read(told)
    steps = [data for name, data in told if name == "browser_step"]
    assert [(one["number"], one["state"]) for one in steps] == [(2, "acting"), (2, "cancelled")]


def test_steps_of_no_call_are_shown_to_no_one():
    turn = Turn("coder", 1)
    told = frames([turn.start(), turn.step(1, "thinking"), turn.end(AIMessage("done"))])
    assert "browser_step" not in [name for name, _ in told]


def test_a_run_that_is_cancelled_between_two_events_still_sends_those_that_close_its_turn():
    turn = Turn("coder", 1)
    raw_events = [turn.start(), *turn.say("x", ended=False), turn.end(HumanMessage("done"))]
    whole = translated(raw_events)
    translator = Translator("run-1", "thread-1", [HumanMessage("hi")])
    told = [*translator.open(), *(event for one in raw_events[:-1] for event in translator.feed(one))]
    told.append(next(iter(translator.feed(raw_events[-1]))))  # the caller is cancelled with it
    told += translator.close("cancelled")
    assert [event.type for event in told] == [event.type for event in whole]
    Client().read(parsed(shown(records(told), run_id="run-1")))


def test_an_answer_whose_stream_breaks_twice_is_shown_once():
    turn = Turn("reporter", 1)
    tries = [
        *turn.say("The answer", ended=False),
        *turn.say("The", ended=False),
        *turn.say("The answer is 4"),
    ]
    assert joined_text(frames([turn.start(), *tries, turn.end()])) == "The answer is 4"


def test_what_code_adds_to_a_report_is_shown_although_the_model_spoke_before_a_tool_call():
    turn = Turn("reporter", 1)
    report = [*turn.say("I look."), *turn.use("crawl_tool"), *turn.say("# Report")]
    answer = HumanMessage("# Report\n\nMissing: B", name="reporter")
    told = frames([turn.start(), *report, turn.end(answer)])
    assert joined_text(told).endswith("# Report\n\nMissing: B")
