"""A model that can see is shown what its code drew; one that cannot works on in words."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.tool_results import (
    MAX_PICTURES,
    FigureReader,
    ItemPictures,
    ResultPictures,
    figure_source,
    page_picture_source,
)
from maniple.agents.react import step_context
from maniple.agents.task import Task
from maniple.errors import FileError
from maniple.tools.items import Item
from tests.agents.endpoints import agent_with, model_at
from tests.openai_server import call, reply, serving
from tests.pictures import jpeg

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
            agent = agent_with(model, [drawing()], ResultPictures(figure_source(read)))
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
    _, requests = await work(*(call("draw", number=number) for number in range(1, MAX_PICTURES + 3)))
    shown = pictures(requests[-1])
    assert len(shown) == MAX_PICTURES
    assert "figure-3.png" in shown[0]
    assert f"figure-{MAX_PICTURES + 2}.png" in shown[-1]


async def test_a_figure_that_is_gone_or_none_is_passed_over():
    messages, requests = await work(call("draw", number=404), call("draw", number=0))
    assert pictures(requests[-1]) == []
    assert messages[-1].text == "A rising line."


async def test_a_model_that_is_known_not_to_see_is_sent_no_picture():
    _, requests = await work(call("draw", number=1), refused=False)
    assert pictures(requests[-1]) == []


async def test_a_request_with_refused_pictures_is_repeated_without_them():
    refusal = {"status": 400, "error": "unknown variant `image_url`, expected `text`", "times": 1}
    messages, requests = await work(call("draw", number=1), refusal)
    assert [len(pictures(body)) for body in requests] == [0, 1, 0]
    assert messages[-1].text == "A rising line."


async def test_a_refusal_in_other_words_is_no_end_either():
    refusal = {"status": 400, "error": "Invalid content.", "times": 1}
    messages, requests = await work(call("draw", number=1), refusal)
    assert [len(pictures(body)) for body in requests] == [0, 1, 0]
    assert messages[-1].text == "A rising line."


async def opened(url: str) -> str:
    return f"# Bridges\n\nSource: {url}\n\n" + "\n\n".join(f"![{url} {n}]({url}/{n}.png)" for n in range(9))


def reading_pages() -> StructuredTool:
    return StructuredTool.from_function(coroutine=opened, name="crawl_tool", description="Read a page.")


async def shown_of_pages(read, *urls, sees=True):
    asked: list[str] = []

    async def noting(url: str) -> bytes:
        asked.append(url)
        return await read(url)

    script = {"other": [*(call("crawl_tool", url=url) for url in urls), reply("Three spans.")]}
    with serving(script) as server:
        async with model_at(server) as model:
            model.capabilities.learn("vision", sees)
            agent = agent_with(model, [reading_pages()], ResultPictures(page_picture_source(noting)))
            result = await agent.graph.ainvoke({"messages": [HumanMessage("What does it look like?")]})
    assert "base64" not in str(result["messages"])
    return server.requests, asked


async def test_the_first_pictures_of_a_page_that_can_be_had_follow_it_with_their_addresses_between_marks():
    async def read_most(url: str) -> bytes:
        return b"" if url.endswith("/1.png") else jpeg()

    requests, asked = await shown_of_pages(read_most, "https://a.test")
    parts = requests[1]["messages"][-1]["content"]
    words = [part["text"] for part in parts if part["type"] == "text"]
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert [word.split("\n")[2] for word in words] == [f"https://a.test/{n}.png" for n in (0, 2, 3)]
    assert all("<data " in word for word in words)
    assert all(picture.startswith("data:image/jpeg;base64,") for picture in pictures)
    assert len(asked) == 6, "no more of a page are tried"


async def test_of_many_pages_the_pictures_of_the_newest_are_shown():
    async def read_all(url: str) -> bytes:
        return jpeg()

    requests, _ = await shown_of_pages(read_all, "https://a.test", "https://b.test")
    said = str(requests[-1]["messages"])
    assert said.count("data:image/jpeg") == MAX_PICTURES
    newest = requests[-1]["messages"][-1]["content"]
    assert [part["text"].count("https://b.test") for part in newest if part["type"] == "text"] == [1, 1, 1]


async def test_for_a_model_that_does_not_see_no_picture_is_fetched():
    async def read_all(url: str) -> bytes:
        return jpeg()

    requests, asked = await shown_of_pages(read_all, "https://a.test", sees=False)
    assert (asked, "image_url" in str(requests)) == ([], False)


async def test_the_reporter_is_shown_the_newest_figures_before_its_step():
    items = [Item("figure", f"figures/figure-{number}.png", "", 9) for number in (404, 0, 1, 2)]
    items.append(Item("file", "notes.png.txt", "", 9))
    with serving({"other": [reply("See the figure.")]}) as server:
        async with model_at(server) as model:
            agent = agent_with(model, [], ItemPictures(FigureReader(read)))
            with step_context(Task("Report.", "Report", "Write it.", items=items)):
                await agent.graph.ainvoke({"messages": [HumanMessage("Report."), HumanMessage("Your step.")]})
    (request,) = server.requests
    assert pictures(request) == [
        f"This is figures/figure-{number}.png, a figure of this conversation:" for number in (1, 2)
    ]
    assert request["messages"][-1]["content"] == "Your step."
