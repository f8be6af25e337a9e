import logging
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from maniple.redaction import Redactor
from maniple.store.redaction import RedactingSerializer, make_serializer

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"


def redacting(*secrets: str) -> RedactingSerializer:
    return RedactingSerializer(Redactor(secrets))


CONVERSATION: dict[str, Any] = {
    "messages": [
        HumanMessage(f"my key is {KEY}", id="1"),
        AIMessage(
            "",
            id="2",
            tool_calls=[{"id": "c", "name": "bash_tool", "args": {"cmd": f"curl {KEY}", KEY: [1, 2.5]}}],
        ),
        ToolMessage(f"{KEY}\n" * 300, id="3", tool_call_id="c"),
    ],
    "plan": {"title": "t", "steps": [{"id": 1, "results": [KEY, None, True, b"\x00raw"]}]},
}


def test_a_checkpoint_is_read_back_whole_but_for_its_secrets() -> None:
    serde = redacting(KEY)
    kind, data = serde.dumps_typed(CONVERSATION)
    assert KEY.encode() not in data
    assert len(data) == len(make_serializer().dumps_typed(CONVERSATION)[1])
    stars = "*" * len(KEY)
    read = serde.loads_typed((kind, data))
    assert [type(one) for one in read["messages"]] == [HumanMessage, AIMessage, ToolMessage]
    assert read["messages"][0].content == f"my key is {stars}"
    assert read["messages"][1].tool_calls[0]["args"] == {"cmd": f"curl {stars}", stars: [1, 2.5]}
    assert read["messages"][2].content == f"{stars}\n" * 300
    assert read["plan"]["steps"][0]["results"] == [stars, None, True, b"\x00raw"]


def test_what_holds_no_secret_is_written_as_ever() -> None:
    assert redacting("another-secret").dumps_typed(CONVERSATION) == make_serializer().dumps_typed(
        CONVERSATION
    )
    assert redacting(KEY).dumps_typed(None) == ("null", b"")


@pytest.mark.parametrize(
    "word", ["messages", "langchain_core", "content", "HumanMessage", "tool_calls", "title"]
)
def test_a_secret_that_is_also_a_name_of_the_format_does_not_break_it(
    word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    serde = redacting(KEY, word)
    kind, data = serde.dumps_typed(CONVERSATION)
    assert KEY.encode() not in data
    read = serde.loads_typed((kind, data))
    assert [one.id for one in read["messages"]] == ["1", "2", "3"]
    assert list(read) == ["messages", "plan"]
    assert read["plan"]["title"] == "t"


async def test_a_graph_keeps_no_secret_in_its_checkpoints() -> None:
    class State(TypedDict):
        words: str

    async def work(state: State) -> State:
        return {"words": f"{state['words']} and {KEY}"}

    saver = InMemorySaver(serde=redacting(KEY))
    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    graph = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"words": f"here {KEY}"}, config)
    assert KEY.encode() not in b"".join(blob[1] for blob in saver.blobs.values())
    assert KEY not in str(dict(saver.storage)) + str(dict(saver.writes))
    state = await graph.aget_state(config)
    assert state.values["words"] == f"here {'*' * 20} and {'*' * 20}"
