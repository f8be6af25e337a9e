from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pytest

from maniple.events import (
    AgentEnded,
    AgentStarted,
    BrowserStateChanged,
    BrowserStepChanged,
    ChatMessage,
    ErrorOccurred,
    Event,
    MessageChunk,
    MessageDelta,
    ModelEnded,
    ModelStarted,
    PlanChanged,
    PlanStepView,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    SessionState,
    TabView,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    UsageReported,
    UserAnswered,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.redactor import EventRedactor, redacted_event
from maniple.redaction import Redactor
from tests.grammar import Client
from tests.openai_server import SIMPLE, reply
from tests.team import scripted_team

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"
SAID = [ChatMessage(role="user", content=f"my key is {KEY}")]


def message(text: str, message_id: str = "m1", field: str = "content") -> MessageChunk:
    return MessageChunk(message_id=message_id, delta=MessageDelta(**{field: text}))


def redacted(events: Iterable[Event], redactor: Redactor) -> list[Event]:
    redacting = EventRedactor(redactor)
    return [*(one for event in events for one in redacting.feed(event)), *redacting.end()]


def redact(*events: Event, secrets: Sequence[str] = (KEY,)) -> list[Event]:
    return redacted(events, Redactor(secrets))


EVERY_EVENT: list[Any] = [
    RunStarted(run_id="r", thread_id="t"),
    AgentStarted(agent_name="coordinator", agent_id="r_c_1"),
    ModelStarted(agent_name="coordinator"),
    message(f"hand {KEY}"),
    ModelEnded(agent_name="coordinator"),
    AgentEnded(agent_name="coordinator", agent_id="r_c_1"),
    WorkflowStarted(workflow_id="r", input=SAID),
    PlanChanged(
        title=KEY,
        steps=[
            PlanStepView(
                id=1,
                agent_name="coder",
                title=KEY,
                description=f"-{KEY}-",
                status="failed",
                reason=f"no {KEY}",
            )
        ],
    ),
    AgentStarted(agent_name="coder", agent_id="r_c_2"),
    ModelStarted(agent_name="coder"),
    message(f"I think of {KEY}", "m2", "reasoning_content"),
    ModelEnded(agent_name="coder"),
    ToolCalled(tool_call_id="c", tool_name="bash_tool", tool_input={"cmd": [f"echo {KEY}"], KEY: 1}),
    ToolOutput(tool_call_id="c", tool_name="bash_tool", stream="stdout", text=KEY),
    BrowserStepChanged(
        tool_call_id="c",
        number=1,
        state="observing",
        phase=KEY,
        thought=f"the key {KEY}",
        action={"name": "input_text", "parameters": {"text": KEY}},
        observation=KEY,
        element={"role": KEY, "name": KEY},
    ),
    BrowserStateChanged(
        url=f"https://e.test/?k={KEY}",
        title=KEY,
        tabs=[TabView(tab_id=1, url=KEY, title=KEY, is_current=True)],
        screenshot=None,
    ),
    ToolReturned(tool_call_id="c", tool_name="bash_tool", tool_result=KEY),
    UsageReported(agent_name="coder", model=f"m?{KEY}", input_tokens=1, output_tokens=1, seconds=1),
    AgentEnded(agent_name="coder", agent_id="r_c_2"),
    RunInterrupted(interrupt_id="i", kind="question", payload={"question": KEY}, options=[KEY]),
    UserAnswered(interrupt_id="i", answer={"type": "edit", "args": {"a": [KEY, {"b": KEY}]}}),
    ErrorOccurred(code="model_auth", message=f"401: {KEY}", agent_name="coder", retryable=False),
    RunStatusChanged(status="failed"),
    WorkflowEnded(
        workflow_id="r", messages=[*SAID, ChatMessage(role="user", content=[{"type": "text", "text": KEY}])]
    ),
    SessionState(messages=SAID),
]


def test_no_field_of_any_event_holds_a_secret() -> None:
    clean = redact(*EVERY_EVENT)
    assert KEY not in "".join(event.model_dump_json() for event in clean)
    assert [event.type for event in clean] == [event.type for event in EVERY_EVENT]
    assert sum("***" in event.model_dump_json() for event in clean) == 15
    Client().read([(event.type, event.data()) for event in clean])


def test_an_event_without_secrets_is_the_same_object() -> None:
    for event in EVERY_EVENT:
        assert redacted_event(event, Redactor(["another-secret"])) is event


def test_a_secret_in_pieces_never_leaves() -> None:
    pieces = [message(letter) for letter in f"the key {KEY}, or sk-can"]
    clean = redact(ModelStarted(agent_name="coder"), *pieces, ModelEnded(agent_name="coder"))
    text = "".join(event.delta.content or "" for event in clean if isinstance(event, MessageChunk))
    assert text == "the key ***, or sk-can"
    assert [event.type for event in clean[-2:]] == ["message", "end_of_llm"]
    assert all(event.delta.content for event in clean if isinstance(event, MessageChunk))


def test_a_secret_in_pieces_of_output_never_leaves_though_calls_and_streams_are_mixed() -> None:
    def printed(call: str, stream: Literal["stdout", "stderr"], text: str) -> ToolOutput:
        return ToolOutput(tool_call_id=call, tool_name="bash_tool", stream=stream, text=text)

    pieces = [
        printed(call, stream, letter)
        for letter in f"a {KEY} b sk-can"
        for call, stream in (("c1", "stdout"), ("c1", "stderr"), ("c2", "stdout"))
    ]
    result = ToolReturned(tool_call_id="c1", tool_name="bash_tool", tool_result="")
    clean = redact(*pieces, result, printed("c1", "stdout", "another call"))
    texts: dict[tuple[str, str], str] = {}
    for event in clean:
        if isinstance(event, ToolOutput):
            texts[event.tool_call_id, event.stream] = (
                texts.get((event.tool_call_id, event.stream), "") + event.text
            )
    whole = "a *** b "
    assert texts == {
        ("c1", "stdout"): f"{whole}another call",
        ("c1", "stderr"): whole,
        ("c2", "stdout"): whole,
    }


def test_the_rest_of_a_message_comes_before_the_next_one() -> None:
    clean = redact(message("say sk-", "m1", "reasoning_content"), message("sk-", "m1"), message("x", "m2"))
    assert clean == [
        message("say ", "m1", "reasoning_content"),
        message("sk-", "m1", "reasoning_content"),
        message("sk-", "m1"),
        message("x", "m2"),
    ]


def test_a_plan_or_usage_in_the_middle_does_not_let_a_secret_through() -> None:
    usage = UsageReported(agent_name="supervisor", model="m", input_tokens=1, output_tokens=1, seconds=1)
    clean = redact(message(KEY[:8]), usage, message(KEY[8:]), ModelEnded(agent_name="coder"))
    assert clean == [usage, message("***"), ModelEnded(agent_name="coder")]


def test_what_a_cut_stream_holds_is_reported_at_its_end() -> None:
    assert redact(message("a sk-")) == [message("a "), message("sk-")]


def test_names_of_the_wire_are_no_secrets() -> None:
    words = ["message", "failed", "completed", "coordinator", "question", "bash_tool", "stdout"]
    clean = redact(*EVERY_EVENT, secrets=words)
    assert [event.type for event in clean] == [event.type for event in EVERY_EVENT]
    Client().read([(event.type, event.data()) for event in clean])


async def test_a_whole_run_that_contains_a_secret_is_clean_and_legal() -> None:
    script = {
        **SIMPLE,
        "reporter": [reply("", chunks=["The k", "ey is sk-can", "ary-01234", "56789 a", "nd sk-"])],
    }
    async with scripted_team(script) as team:
        from langchain_core.messages import HumanMessage

        from maniple.runs.turn import stream_run

        events = stream_run(team.team, [HumanMessage(f"use {KEY}")])
        clean = redacted([event async for event in events], Redactor([KEY]))
    frames = [(event.type, event.data()) for event in clean]
    Client().read(frames)
    assert KEY not in str(frames)
    assert "The key is *** and sk-" in "".join(
        data["delta"].get("content", "") for name, data in frames if name == "message"
    )
