"""Pictures count for the window: a conversation with many is compacted, and those left out are named."""

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from maniple.agents import ROLES, StepLimits, build_react_agent
from maniple.agents.middleware.context_window import fit_messages, summarize
from maniple.agents.middleware.item_pictures import ItemPictureReader, ItemPictures
from maniple.agents.middleware.tool_results import ResultPictures, figure_source
from maniple.agents.react import step_context
from maniple.agents.task import Task
from maniple.llms.context_windows import count_tokens
from maniple.llms.picture_parts import content_tokens, is_picture_part, picture_tokens
from maniple.reading.rendering import RenderedPicture
from tests import openai_server
from tests.agents.endpoints import REFUSAL, model_at
from tests.agents.test_pictures import drawing, opening, shown_text
from tests.openai_server import Json, OpenAIServer, call, reply, serving
from tests.pictures import png

pytestmark = pytest.mark.anyio
SIDE = 1_200
LARGE = picture_tokens(SIDE, SIDE)


def tokens_of(messages: list[Json]) -> int:
    """What an endpoint counts: a token for four characters, and one for 750 pixels."""
    tokens = 0
    for message in messages:
        content = message.get("content") or ""
        for part in [{"text": content}] if isinstance(content, str) else content:
            if part.get("type") == "image_url":
                data = part["image_url"]["url"].partition(",")[2]
                tokens += content_tokens(base64.b64decode(data))
            else:
                tokens += len(part["text"]) // 4
        tokens += len(str(message.get("tool_calls") or "")) // 4
    return tokens


@contextmanager
def window_of(script: Json, tokens: int) -> Iterator[OpenAIServer]:
    """Serve `script`, but refuse prompts of more tokens."""

    class Narrow(OpenAIServer):
        refused = 0

        def _next_reply(self, body: Json) -> tuple[Json, str]:
            if tokens_of(body["messages"]) > tokens:
                Narrow.refused += 1
                words = REFUSAL.format(window=tokens)
                return {"status": 400, "error": words, "code": "context_length_exceeded"}, ""
            return super()._next_reply(body)

    with mock.patch.object(openai_server, "OpenAIServer", Narrow), serving(script) as server:
        yield server


async def render(path: str) -> RenderedPicture:
    content = png(SIDE, SIDE) + path.encode()
    return RenderedPicture("image/png", content, SIDE, SIDE, "PNG")


async def work(server, pictures, *, window=None, given=(), messages=()):
    async with model_at(server, window=window) as model:
        tools, limits = [opening(), drawing()], StepLimits()
        agent = build_react_agent(ROLES["coder"], model, tools, limits=limits, middleware=pictures)
        with step_context(Task("Report.", "Report", "Write it.", pictures=given)):
            start = [SystemMessage("You work."), *messages, HumanMessage("Your step.")]
            result = await agent.graph.ainvoke({"messages": start, "given": len(start)})
    return result["messages"]


def count_pictures(request: Json) -> int:
    return str(request["messages"]).count("'image_url': {")


OPENING = [call("show", path=f"chart-{number}.png") for number in range(8)]


@pytest.mark.parametrize("window", [4_500, 6_000, 9_000, 12_000])
@pytest.mark.parametrize("known", [True, False])
async def test_opened_pictures_never_overflow_a_known_window_and_those_left_out_are_named(window, known):
    script = {"other": [*OPENING, reply("Seen."), *[reply("Charts were seen.")] * 4]}
    with window_of(script, window) as server:
        messages = await work(
            server,
            [ItemPictures(ItemPictureReader(render))],
            window=window if known else None,
            given=["given-1.png", "given-2.png"],
        )
    assert messages[-1].text in ("Seen.", "Charts were seen.")
    if known:
        assert server.refused == 0
    for request in server.requests[1:]:
        if "tools" not in request or tokens_of(request["messages"]) > window:
            continue
        shown = shown_text(request)
        newest = re.findall(r"\[(chart-\d.png) is a picture\]", shown)
        if newest:
            assert count_pictures(request) >= 1, "the newest is always shown"
        for name in newest[-4:]:
            assert f"is {name}, PNG" in shown or f"{name} is not shown" in shown


async def test_without_a_narrow_window_all_pictures_are_shown_and_nothing_is_compacted():
    with window_of({"other": [*OPENING[:4], reply("Seen.")]}, 60_000) as server:
        await work(server, [ItemPictures(ItemPictureReader(render))], window=60_000)
    assert [count_pictures(request) for request in server.requests] == [0, 1, 2, 3, 4]


async def test_figures_that_code_drew_count_as_well():
    async def read(path: str) -> bytes:
        return png(SIDE, SIDE)

    script = {"other": [*(call("draw", number=number) for number in range(6)), reply("Drawn.")]}
    with window_of(script, 6_000) as server:
        messages = await work(server, [ResultPictures(figure_source(read))], window=6_000)
    assert (messages[-1].text, server.refused) == ("Drawn.", 0)
    last = server.requests[-1]
    assert 1 <= count_pictures(last) < 4
    assert "figures/figure-5.png, drawn by" in shown_text(last)
    assert "not shown to you" in shown_text(last)


def shown_picture(number: int, side: int = SIDE) -> HumanMessage:
    url = f"data:image/png;base64,{base64.b64encode(png(side, side) + bytes([number])).decode()}"
    return HumanMessage(
        [{"type": "text", "text": f"Chart {number}"}, {"type": "image_url", "image_url": {"url": url}}]
    )


async def test_a_thread_whose_messages_hold_many_pictures_is_compacted_and_never_refused():
    earlier = [one for number in range(9) for one in (shown_picture(number), AIMessage(f"It is {number}."))]
    with window_of({"other": [reply("Done.")]}, 8_000) as server:
        messages = await work(server, [], window=8_000, messages=earlier)
    assert (messages[-1].text, server.refused) == ("Done.", 0)
    (request,) = server.requests
    assert 1 <= count_pictures(request) < 9
    shown = shown_text(request)
    assert shown.count("is left out") == 9 - count_pictures(request)
    assert all(f"Chart {number}" in shown and f"It is {number}." in shown for number in range(9))


@given(st.lists(st.integers(100, 2_000), max_size=9), st.integers(200, 20_000))
@settings(max_examples=60, deadline=None)
def test_the_oldest_pictures_are_replaced_first_and_each_one_by_its_name(sides, tokens):
    messages = [SystemMessage("You work."), *(shown_picture(*one) for one in enumerate(sides))]
    short = fit_messages(messages, tokens, pinned=len(messages))
    parts = [one.content[1] for one in short[1:]]
    kept = [is_picture_part(part) for part in parts]
    assert kept == sorted(kept), "a newer one is never left out before an older one"
    names = [part["text"] for part, is_kept in zip(parts, kept, strict=True) if not is_kept]
    assert all(re.search(r"picture-[0-9a-f]{8}\.png", name) for name in names)
    if all(kept):
        return
    assert count_tokens(messages) > tokens
    assert sum(kept) <= 1 or count_tokens(short) <= tokens


async def test_a_summary_knows_which_pictures_were_there():
    with serving({"other": [reply("A summary.")]}) as server:
        async with model_at(server, window=30_000) as model:
            await summarize(model, [shown_picture(1), AIMessage("A rising line.")])
    assert re.search(r"picture-[0-9a-f]{8}\.png", shown_text(server.requests[0]))


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(750, 100, 100), (1, 1, 1), (1_568, 1_254, 2_622), (9_000, 9_000, 3_300)]
)
def test_the_tokens_of_a_picture_follow_its_size(width, height, tokens):
    assert picture_tokens(width, height) == tokens
    url = f"data:image/png;base64,{base64.b64encode(png(width, height)).decode()}"
    part = {"type": "image_url", "image_url": {"url": url}}
    assert count_tokens([HumanMessage([part])]) == tokens + 4
