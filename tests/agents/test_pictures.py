"""A model that can see is shown what its code drew; one that cannot works on in words."""

import re
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.item_pictures import ItemPictureReader, ItemPictures, PictureDescriber
from maniple.agents.middleware.tool_results import (
    MAX_PICTURES,
    ResultPictures,
    figure_source,
    page_picture_source,
)
from maniple.agents.react import step_context
from maniple.agents.task import Task
from maniple.config import ModelsSettings
from maniple.errors import FileError
from maniple.llms import open_chat_models
from maniple.reading.rendering import RenderedPicture
from maniple.tools.documents import SHOWN_PICTURES
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
    assert "figures/figure-1.png" in requests[-1]["messages"][-1]["content"]
    assert "does not see pictures" in requests[-1]["messages"][-1]["content"]


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


async def render(path: str) -> RenderedPicture:
    return RenderedPicture("image/png", await read(path) or b"none", 640, 480, "PNG")


async def open_picture(path: str) -> tuple[str, dict[str, list[str]]]:
    return f"[{path} is a picture]", {SHOWN_PICTURES: [path]}


def opening() -> StructuredTool:
    return StructuredTool.from_function(
        coroutine=open_picture, name="show", description="Show.", response_format="content_and_artifact"
    )


async def look(*replies, given=(), sees=True, models=None, before=()):
    with serving({"other": [*replies, reply("Seen.")]}) as server:
        async with model_at(server) as model:
            model.capabilities.learn("vision", sees)
            reader = ItemPictureReader(render, PictureDescriber(models))
            agent = agent_with(model, [opening()], ItemPictures(reader))
            with step_context(Task("Report.", "Report", "Write it.", pictures=given)):
                messages = [*(before or [HumanMessage("Report.")]), HumanMessage("Your step.")]
                result = await agent.graph.ainvoke({"messages": messages})
    assert "base64" not in str(result["messages"][len(messages) :])
    return server.requests


def shown_text(request) -> str:
    return "\n".join(str(message["content"]) for message in request["messages"])


async def test_the_pictures_of_a_task_are_shown_before_its_step():
    (request,) = await look(given=["figures/figure-404.png", "figures/figure-1.png", "chart.png"])
    missing, figure, chart = pictures(request)
    assert "figure-404.png cannot be shown" in missing
    assert ("figure-1.png" in figure, "chart.png" in chart) == (True, True)
    assert request["messages"][-1]["content"] == "Your step."


async def test_a_picture_that_a_tool_opened_follows_the_result_in_each_later_request():
    requests = await look(call("show", path="chart.png"), call("show", path="figures/figure-404.png"))
    assert [len(pictures(body)) for body in requests] == [0, 1, 1]
    assert [one["role"] for one in requests[1]["messages"][-2:]] == ["tool", "user"]
    assert "cannot be shown" in requests[2]["messages"][-1]["content"]


async def test_no_request_has_more_pictures_than_the_limit():
    given = [f"{number}.png" for number in range(9)]
    requests = await look(call("show", path="chart.png"), given=given)
    assert [str(body["messages"]).count("image_url'") for body in requests] == [MAX_PICTURES * 2] * 2
    assert "chart.png" in pictures(requests[1])[-1]
    assert "8.png" in pictures(requests[1])[-2]


async def test_a_member_that_does_not_see_reads_that_it_does_not():
    requests = await look(call("show", path="other.png"), given=["chart.png"], sees=False)
    assert "image_url" not in str(requests)
    for request in requests:
        assert "chart.png is a picture (PNG, 640 x 480 pixels)" in shown_text(request)
    assert "No model of the settings does" in requests[1]["messages"][-1]["content"]


async def test_a_picture_in_the_conversation_is_left_out_for_a_member_that_does_not_see():
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    (request,) = await look(sees=False, before=[HumanMessage([{"type": "text", "text": "Look."}, part])])
    assert "image_url" not in str(request)
    assert "Look." in str(request)


@asynccontextmanager
async def models_with_vision(*replies):
    with serving({"other": list(replies)}) as server:
        endpoint = {"model": "seer", "base_url": server.base_url, "max_retries": 0}
        async with open_chat_models(ModelsSettings.model_validate({"vision": endpoint})) as models:
            yield models, server


async def test_a_model_of_the_settings_that_sees_describes_the_picture_once():
    async with models_with_vision(reply("Bars: 3, 7.")) as (models, seer):
        requests = await look(
            call("show", path="chart.png"), call("show", path="chart.png"), sees=False, models=models
        )
    assert len(seer.requests) == 1
    assert "image_url" in str(seer.requests)
    text = requests[1]["messages"][-1]["content"]
    assert "The model seer sees" in text
    assert re.search(r"<data \w+>\nBars: 3, 7.\n</data", text)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 400, "error": "This model does not support images"}, "did not see it either"),
        ({"status": 401, "error": "No such key"}, "could not be asked"),
    ],
    ids=["it does not see", "it fails"],
)
async def test_the_reason_is_given_where_nothing_is_described(answer, said):
    async with models_with_vision(answer, reply("I see nothing.")) as (models, _):
        requests = await look(call("show", path="chart.png"), sees=False, models=models)
    assert said in requests[1]["messages"][-1]["content"]


async def test_a_refused_picture_is_described_in_the_repeated_request():
    refusal = {"status": 400, "error": "unknown variant `image_url`, expected `text`", "times": 1}
    requests = await look(call("show", path="chart.png"), refusal)
    assert ["image_url" in str(body) for body in requests] == [False, True, False]
    assert "does not see pictures" in shown_text(requests[2])
