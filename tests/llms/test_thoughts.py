"""Thoughts in `<think>` blocks, however a stream cuts them."""

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage

from maniple.config import ModelSettings, ModelsSettings
from maniple.llms import open_chat_models
from maniple.llms.streams import ThoughtSplitter, split_thoughts
from tests.openai_server import serving

QUESTION = [HumanMessage("hi")]

ANSWERS = [
    ("<think>hm</think>Hi", "hm", "Hi"),
    ("\n <think>\nhm < 3 </thin </think>\n\nHi\n", "hm < 3 </thin ", "Hi\n"),
    ("<think>\n\n</think>\n\nHi", "", "Hi"),
    ("<think></think>Hi", "", "Hi"),
    ("<think>never ended </th", "never ended </th", ""),
    ("<think>a</think><think>b</think>", "a", "<think>b</think>"),
    ("<think>a</think>\n", "a", ""),
    ("Write `<think>x</think>` first.", "", "Write `<think>x</think>` first."),
    ("\n\nHi <think>x</think>", "", "\n\nHi <think>x</think>"),
    ("<thinking>x</thinking>", "", "<thinking>x</thinking>"),
    ("```\n<think>x</think>\n```", "", "```\n<think>x</think>\n```"),
    ("<thi", "", "<thi"),
    ("  ", "", "  "),
    ("", "", ""),
    ("</think>Hi", "", "</think>Hi"),
]


@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
def test_only_a_block_at_the_very_start_is_thought(text, thought, answer):
    assert split_thoughts(text) == (thought, answer)


@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9])
def test_the_pieces_make_no_difference(text, thought, answer, size):
    splitter = ThoughtSplitter()
    parts = [splitter.feed(text[at : at + size]) for at in range(0, len(text), size)] + [splitter.end()]
    assert ("".join(one for one, _ in parts), "".join(one for _, one in parts)) == (thought, answer)


def test_thoughts_and_words_are_handed_on_as_they_come():
    splitter = ThoughtSplitter()
    pieces = ["<thi", "nk>", "one ", "two</", "think", ">\n", "Hi ", "<think>"]
    assert [splitter.feed(piece) for piece in pieces] == [
        *[("", ""), ("", ""), ("one ", ""), ("two", "")],
        *[("", ""), ("", ""), ("", "Hi "), ("", "<think>")],
    ]


async def streamed(*pieces: str, **keys) -> list[AIMessageChunk]:
    with serving({"other": [{"chunks": list(pieces), **keys}]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            return [chunk async for chunk in models.get("basic").astream(QUESTION)]


def texts_of(chunks: list[AIMessageChunk]) -> list[tuple[str, str]]:
    """Return the reasoning and the text in the order in which they came, neighbours of one kind joined."""
    pieces: list[tuple[str, str]] = []
    for chunk in chunks:
        thought = chunk.additional_kwargs.get("reasoning_content", "")
        for piece in ((thought, ""), ("", chunk.text)):
            if not any(piece):
                continue
            if pieces and bool(pieces[-1][0]) == bool(piece[0]):
                before = pieces.pop()
                piece = (before[0] + piece[0], before[1] + piece[1])
            pieces.append(piece)
    return pieces


@pytest.mark.anyio
async def test_a_streamed_block_becomes_reasoning_and_never_text():
    chunks = await streamed("<th", "ink>Let me", " see.</thi", "nk>\n\nIt ", "is <think>", "4</think>")
    assert texts_of(chunks) == [("Let me see.", ""), ("", "It is <think>4</think>")]


@pytest.mark.anyio
@pytest.mark.parametrize("pieces", [("<think>no", " end"), ("<thi",), (" ",)])
async def test_what_was_held_is_there_when_the_answer_ends(pieces):
    whole = "".join(pieces)
    thought, text = split_thoughts(whole)
    chunks = texts_of(await streamed(*pieces))
    assert ("".join(one for one, _ in chunks), "".join(one for _, one in chunks)) == (thought, text)


@pytest.mark.anyio
async def test_tool_calls_and_usage_come_with_the_thoughts():
    chunks = await streamed("<think>use f</think>", tool_calls=[{"name": "f", "arguments": {"x": 1}}])
    message = sum(chunks[1:], chunks[0])
    assert (message.tool_calls[0]["args"], message.usage_metadata is not None) == ({"x": 1}, True)
    assert message.additional_kwargs["reasoning_content"] == "use f"


@pytest.mark.anyio
async def test_reasoning_in_its_own_field_stays_as_it_is():
    assert texts_of(await streamed("Hi", reasoning=["th", "ink"])) == [("think", ""), ("", "Hi")]


@pytest.mark.anyio
async def test_an_answer_in_one_body_is_parted_too():
    with serving({"other": [{"text": "<think>hm</think>\nHi"}]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            message = await models.get("basic").ainvoke(QUESTION)
    assert (message.text, message.additional_kwargs["reasoning_content"]) == ("Hi", "hm")
