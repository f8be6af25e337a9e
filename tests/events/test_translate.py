"""The translation from LangGraph's raw events, for any interleaving of them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.types import Command

from maniple.events import Translator
from maniple.types import AGENTS as ALL
from tests.grammar import Client

Raw = dict[str, Any]
AGENTS = ("coordinator", "planner", "supervisor", "researcher", "coder", "reporter")


def _agent_in(ns: str) -> str:
    """The mark that a node of ours leaves in all its events."""
    return [one.split(":")[0] for one in ns.split("|") if one.split(":")[0] in ALL][-1]


def raw(event: str, name: str, ns: str, run_id: str, *, data: Raw | None = None, **more: Any) -> Raw:
    return {
        "event": event,
        "name": name,
        "run_id": run_id,
        "tags": more.get("tags", []),
        "parent_ids": more.get("parents", []),
        "metadata": {"langgraph_checkpoint_ns": ns, "langgraph_step": 3, "maniple_agent": _agent_in(ns)},
        "data": data or {},
    }


class Turn:
    """The raw events of one agent's turn, as LangGraph would send them."""

    def __init__(self, agent: str, number: object, prefix: str = "") -> None:
        self.agent, self.ns = agent, f"{prefix}{agent}:{number}"
        self.id = f"{agent}{number}"
        self.calls = 0

    def start(self) -> Raw:
        return raw("on_chain_start", self.agent, self.ns, self.id, tags=["graph:step:3"])

    def end(self, *messages: Any, **update: Any) -> Raw:
        output = Command(update={"messages": list(messages), **update})
        return raw(
            "on_chain_end", self.agent, self.ns, self.id, tags=["graph:step:3"], data={"output": output}
        )

    def say(self, *pieces: str, ended: bool = True, parents: Sequence[str] = ()) -> list[Raw]:
        self.calls += 1
        call, ns = f"{self.id}-llm{self.calls}", f"{self.ns}|model:1"
        chunks = [AIMessageChunk(piece, id=call) for piece in pieces]
        events = [raw("on_chat_model_start", "M", ns, call, parents=parents)]
        events += [
            raw("on_chat_model_stream", "M", ns, call, parents=parents, data={"chunk": c}) for c in chunks
        ]
        if ended:
            output = AIMessage("".join(pieces), id=call)
            events.append(raw("on_chat_model_end", "M", ns, call, parents=parents, data={"output": output}))
        return events

    def use(self, tool: str, *, outcome: str = "result", inside: Sequence[Raw] = ()) -> list[Raw]:
        self.calls += 1
        call, ns = f"{self.id}-tool{self.calls}", f"{self.ns}|tools:1"
        events = [raw("on_tool_start", tool, ns, call, data={"input": {"code": "1"}})]
        events += [{**one, "parent_ids": [call]} for one in inside]
        if outcome == "result":
            output = ToolMessage("4", tool_call_id="x")
            events.append(raw("on_tool_end", tool, ns, call, data={"output": output}))
        elif outcome == "error":
            events.append(raw("on_tool_error", tool, ns, call, data={"error": ValueError("bad input")}))
        return events


def frames(events: Sequence[Raw], status: str = "completed", error: Exception | None = None) -> list[Any]:
    translator = Translator("run-1", "thread-1", [HumanMessage("hi")])
    told = [*translator.open()]
    for one in events:
        told += translator.feed(one)
    told += translator.close(status, error)  # type: ignore[arg-type]
    return [(event.type, event.data()) for event in told]


def said(told: Sequence[Any], key: str = "content") -> str:
    return "".join(data["delta"].get(key, "") for name, data in told if name == "message")


@st.composite
def turns(draw: st.DrawFn) -> list[Raw]:
    """One agent's turn with anything in it that a model, a tool or a crash may cause."""
    turn = Turn(draw(st.sampled_from(AGENTS)), draw(st.uuids()))
    events = [turn.start()]
    for kind in draw(
        st.lists(st.sampled_from(["say", "cut", "use", "lost", "error", "nested", "stray"]), max_size=6)
    ):
        match kind:
            case "say" | "cut":
                pieces = draw(st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=4))
                events += turn.say(*pieces, ended=kind == "say")
            case "use" | "lost" | "error":
                events += turn.use("bash_tool", outcome={"use": "result"}.get(kind, kind))
            case "nested":
                events += turn.use("browser", inside=turn.say("x", "y"))
            case "stray":
                events += turn.say("z")[1:]
    if draw(st.booleans()):
        events.append(turn.end(AIMessage("done", name=turn.agent)))
    return events


@given(
    st.lists(turns(), max_size=5),
    st.randoms(use_true_random=False),
    st.sampled_from(["completed", "failed", "cancelled"]),
)
@settings(max_examples=400, deadline=None)
def test_any_interleaving_of_raw_events_keeps_the_grammar_of_the_client(lanes, random, status):
    mixed: list[Raw] = []
    waiting = [list(lane) for lane in lanes]
    while any(waiting):
        lane = random.choice([one for one in waiting if one])
        mixed.append(lane.pop(0))
    error = RuntimeError("boom") if status == "failed" else None
    told = frames(mixed, status, error)
    Client().read(told)


@given(st.lists(turns(), min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_no_text_is_lost_or_mixed_when_agents_speak_at_once(lanes, random):
    mixed: list[Raw] = []
    waiting = [list(lane) for lane in lanes]
    while any(waiting):
        mixed.append(random.choice([one for one in waiting if one]).pop(0))
    owners: dict[str, str] = {}
    agent = ""
    for name, data in frames(mixed):
        if name == "start_of_agent":
            agent = data["agent_id"]
        if name == "message" and "content" in data["delta"]:
            assert owners.setdefault(data["message_id"], agent) == agent


def test_a_hand_off_is_never_shown_however_it_is_cut():
    turn = Turn("coordinator", 1)
    told = frames([turn.start(), *turn.say("ha", "ndoff_to", "_planner", "()"), turn.end()])
    assert said(told) == ""


def test_a_reply_of_one_piece_is_shown_whole():
    turn = Turn("coordinator", 1)
    events = [turn.start(), *turn.say("Hello!"), turn.end(AIMessage("Hello!", id="coordinator1-llm1"))]
    assert said(frames(events)) == "Hello!"


def test_a_planner_shows_only_the_plan_that_was_accepted():
    turn = Turn("planner", 1)
    events = [
        turn.start(),
        *turn.say("no json"),
        *turn.say('{"title"', ": 1}"),
        turn.end(HumanMessage('{"title":"P"}')),
    ]
    told = frames(events)
    assert said(told) == '{"title":"P"}'
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
    assert said(told) == "The answer is 4"
    assert [name for name, _ in told].count("start_of_llm") == 1
    assert len({data["message_id"] for name, data in told if name == "message"}) == 1


def test_a_broken_stream_that_goes_another_way_follows_whole():
    turn = Turn("reporter", 1)
    events = [turn.start(), *turn.say("The answ", ended=False), *turn.say("The", " sum is 4"), turn.end()]
    assert said(frames(events)) == "The answ\n\nThe sum is 4"


def test_a_tool_that_raises_gives_its_words_as_the_result():
    turn = Turn("coder", 1)
    told = frames([turn.start(), *turn.say("x"), *turn.use("bash_tool", outcome="error"), turn.end()])
    assert [d["tool_result"] for name, d in told if name == "tool_call_result"] == ["ValueError: bad input"]


def test_models_inside_tools_are_not_shown():
    turn = Turn("browser", 1)
    inner = Turn("browser", 1).say("thinking")
    told = frames([turn.start(), *turn.say("go"), *turn.use("browser", inside=inner), turn.end()])
    assert said(told) == "go"


def test_agents_are_found_in_a_parent_graph():
    turn = Turn("coder", 1, prefix="theirs:1|team:2|")
    told = frames([turn.start(), *turn.say("x"), turn.end()])
    assert ("start_of_agent", {"agent_name": "coder", "agent_id": "run-1_coder_3"}) in told
    assert said(told) == "x"


def test_the_coordinators_reasoning_is_kept_from_the_old_client():
    turn = Turn("coordinator", 1)
    events = turn.say("Hi")
    thought = AIMessageChunk("", id="c", additional_kwargs={"reasoning_content": "hm"})
    events.insert(1, {**events[1], "data": {"chunk": thought}})
    told = frames([turn.start(), *events, turn.end(AIMessage("Hi", id="coordinator1-llm1"))])
    assert said(told, "reasoning_content") == ""


def test_the_planners_reasoning_streams():
    turn = Turn("planner", 1)
    events = turn.say("{}")
    thought = AIMessageChunk("", id="c", additional_kwargs={"reasoning_content": "hm"})
    events.insert(1, {**events[1], "data": {"chunk": thought}})
    told = frames([turn.start(), *events, turn.end(HumanMessage("{}"))])
    assert said(told, "reasoning_content") == "hm"


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
