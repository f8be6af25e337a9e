"""A model that can see is shown what its code drew; one that cannot works on in words."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from maniple.agents.pictures import MOST_PICTURES, Pictures
from maniple.errors import FileError
from tests.agents.endpoints import agent_with, model_at
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n the picture"


async def draw(number: int) -> tuple[str, list[str]]:
    path = f"figures/figure-{number}.png"
    return f"[figures drawn: {path}]", [path]


async def read(path: str) -> bytes:
    if path == "figures/figure-404.png":
        raise FileError("There is no such file.")
    return b"" if path == "figures/figure-0.png" else PNG


def drawing() -> StructuredTool:
    return StructuredTool.from_function(
        coroutine=draw, name="draw", description="Draw.", response_format="content_and_artifact"
    )


def pictures(body) -> list[str]:
    """The words before each picture of a request."""
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    assert all(
        part["image_url"]["url"].startswith("data:image/png;base64,")
        for part in parts
        if part["type"] == "image_url"
    )
    return [part["text"] for part in parts if part["type"] == "text"]


async def work(*replies, refused=None):
    script = {"other": [*replies, reply("A rising line.")]}
    with serving(script) as server:
        async with model_at(server) as model:
            if refused is not None:
                model.capabilities.learn("vision", refused)
            agent = agent_with(model, [drawing()], Pictures(read))
            result = await agent.graph.ainvoke({"messages": [HumanMessage("Draw a line.")]})
    return result["messages"], server.requests


async def test_a_figure_follows_the_result_of_its_call_and_stays_out_of_the_conversation():
    messages, requests = await work(call("draw", number=1))
    assert pictures(requests[0]) == []
    assert pictures(requests[1]) == ["This is figures/figure-1.png, drawn by the code above:"]
    assert [one["role"] for one in requests[1]["messages"]] == ["user", "assistant", "tool", "user"]
    assert "base64" not in str(messages)
    assert messages[-1].text == "A rising line."


async def test_only_the_newest_figures_are_shown():
    _, requests = await work(*(call("draw", number=number) for number in range(1, MOST_PICTURES + 3)))
    shown = pictures(requests[-1])
    assert len(shown) == MOST_PICTURES
    assert "figure-3.png" in shown[0]
    assert f"figure-{MOST_PICTURES + 2}.png" in shown[-1]


async def test_a_figure_that_is_gone_or_none_is_passed_over():
    messages, requests = await work(call("draw", number=404), call("draw", number=0))
    assert pictures(requests[-1]) == []
    assert messages[-1].text == "A rising line."


async def test_a_model_that_is_known_not_to_see_is_sent_no_picture():
    _, requests = await work(call("draw", number=1), refused=False)
    assert pictures(requests[-1]) == []


async def test_an_endpoint_that_refuses_pictures_is_asked_again_without():
    refusal = {"status": 400, "error": "unknown variant `image_url`, expected `text`", "times": 1}
    messages, requests = await work(call("draw", number=1), refusal)
    assert [len(pictures(body)) for body in requests] == [0, 1, 0]
    assert messages[-1].text == "A rising line."


async def test_a_refusal_in_other_words_is_no_end_either():
    refusal = {"status": 400, "error": "Invalid content.", "times": 1}
    messages, requests = await work(call("draw", number=1), refusal)
    assert [len(pictures(body)) for body in requests] == [0, 1, 0]
    assert messages[-1].text == "A rising line."
