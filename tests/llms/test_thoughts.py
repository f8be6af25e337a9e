"""Thoughts in `<think>` blocks, however a stream cuts them."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk, HumanMessage

from maniple.config import ModelSettings, ModelsSettings
from maniple.llms import capabilities_of, open_chat_models
from maniple.thoughts import ThoughtSplitter, split_thoughts
from tests.openai_server import reply, serving

QUESTION = [HumanMessage("hi")]

ANSWERS = [
    ("<think>hm</think>Hi", "hm", "Hi"),
    ("\n <think>\nhm < 3 </thin </think>\n\nHi\n", "hm < 3 </thin ", "Hi\n"),
    ("<think>\n\n</think>\n\nHi", "", "Hi"),
    ("<think></think>Hi", "", "Hi"),
    ("<think>never ended </th", "never ended </th", ""),
    ("<think>a</think>\n<think>b</think>Hi <think>c</think>", "ab", "Hi <think>c</think>"),
    ("<THINK>a</Think>Hi", "a", "Hi"),
    ("<thoughts>x</thoughts>Hi", "x", "Hi"),
    ("<longcat_think>x</longcat_think>Hi", "x", "Hi"),
    ("<|think|>x<|/think|>Hi", "x", "Hi"),
    ("<unused94>thought\nx<unused95>Hi", "x", "Hi"),
    ("<think>x</think>\n<answer>\nHi\n</answer>", "x", "Hi\n"),
    ("x</think><answer>Hi</answer>", "x", "Hi"),
    ("<think>x</think><|begin_of_box|>Hi<|end_of_box|>", "x", "Hi"),
    ("<|im_start|>assistant\n<think>x</think>Hi<|im_end|>\n", "x", "Hi"),
    ("<think>x</think>Hi </s>", "x", "Hi "),
    ("# Hi<|eot_id|><|eot_id|>", "", "# Hi"),
    (
        "# `<|im_end|>` ends it, as does </s> in others.</",
        "",
        "# `<|im_end|>` ends it, as does </s> in others.</",
    ),
    ("# A\n```\n</s>\n```", "", "# A\n```\n</s>\n```"),
    ("<think>a</think>\n", "a", ""),
    ("Write `<think>x</think>` first.", "", "Write `<think>x</think>` first."),
    ("\n\nHi <think>x</think>", "", "\n\nHi <think>x</think>"),
    ("<thinking>x</thinking>Hi", "x", "Hi"),
    ("<reasoning>x</reasoning>Hi", "x", "Hi"),
    ("<thought>x</thought>Hi", "x", "Hi"),
    ("<seed:think>x</seed:think>Hi", "x", "Hi"),
    ("◁think▷x◁/think▷Hi", "x", "Hi"),
    ("<|channel>thought\nx\n<channel|>Hi", "x\n", "Hi"),
    ("analysisI greet.assistantfinalHi", "I greet.", "Hi"),
    ("analysisI add.assistantcommentary to=functions.f json{}", "I add.", "commentary to=functions.f json{}"),
    ("analysis of variance", "", "analysis of variance"),
    ("analyses", "", "analyses"),
    ("[THINK]x[/THINK]Hi", "x", "Hi"),
    (
        "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
        "x",
        "Hi",
    ),
    ("<|channel|>analysis<|message|>x<|end|>Hi", "x", "Hi"),
    (
        "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary<|message|>y<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Hi <|end|>\n",
        "xy",
        "Hi \n",
    ),
    ("x<|end|><|start|>assistant<|channel|>final<|message|>Hi", "x", "Hi"),
    ("<|channel|>final<|message|>Hi <|re", "", "Hi <|re"),
    ("I think. SECRET\n</think>\n\nHello!", "I think. SECRET", "Hello!"),
    ('I plan {"a": 1}.\n</think>\n{"b": 2}', 'I plan {"a": 1}.', '{"b": 2}'),
    ("Hm ```x``` and\n```\n</think>\n```\nso.</think># A", "Hm ```x``` and\n```\n</think>\n```\nso.", "# A"),
    ("x ◁/think▷Hi", "x", "Hi"),
    ("x[/THINK]Hi", "x", "Hi"),
    ("The mark `</think>` ends it.", "", "The mark `</think>` ends it."),
    ("It ends:\n```\n</think>\n```\nso", "", "It ends:\n```\n</think>\n```\nso"),
    ("```\n</think>\n```", "", "```\n</think>\n```"),
    ('[{"a": "</think>"}]', "", '[{"a": "</think>"}]'),
    ("```\n<think>x</think>\n```", "", "```\n<think>x</think>\n```"),
    ("<thi", "", "<thi"),
    ("  ", "", "  "),
    ("", "", ""),
    ("</think>Hi", "", "Hi"),
    ("  Hi <th", "", "  Hi <th"),
]


@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
def test_only_what_comes_first_is_thought(text, thought, answer):
    assert split_thoughts(text) == (thought, answer)


@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9])
def test_the_pieces_make_no_difference(text, thought, answer, size):
    splitter = ThoughtSplitter()
    parts = [splitter.feed(text[at : at + size]) for at in range(0, len(text), size)] + [splitter.end()]
    assert ("".join(one for one, _ in parts), "".join(one for _, one in parts)) == (thought, answer)


def test_thoughts_and_words_are_handed_on_as_they_come():
    splitter = ThoughtSplitter(awaits_closing=False)
    pieces = ["<thi", "nk>", "one ", "two</", "think", ">\n", "Hi ", "<think>"]
    assert [splitter.feed(piece) for piece in pieces] == [
        *[("", ""), ("", ""), ("one ", ""), ("two", "")],
        *[("", ""), ("", ""), ("", "Hi "), ("", "<think>")],
    ]


MARKS = st.sampled_from(
    [one for text, _, _ in ANSWERS for one in re.split(r"(?<=[>▷\]`\n])|(?=[<◁\[`\n])", text) if one]
)


@given(st.lists(MARKS, max_size=12).map("".join), st.data())
def test_any_split_of_any_text_gives_the_same(text, data):
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=20).map(sorted))
    splitter = ThoughtSplitter()
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    parts = [*map(splitter.feed, pieces), splitter.end()]
    assert ("".join(one for one, _ in parts), "".join(one for _, one in parts)) == split_thoughts(text)


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


UNOPENED = "I think. SECRET\n</think>\n\nHello!"


@pytest.mark.anyio
@pytest.mark.parametrize("known", [None, True])
async def test_thoughts_that_nothing_opened_are_never_shown_and_expected_next_time(known):
    with serving({"other": [reply(UNOPENED), reply("Hello, you", finish_reason="length")]}) as server:
        capabilities = {"unopened_thoughts": known}
        basic = ModelSettings.model_validate(
            {"model": "m", "base_url": server.base_url, "capabilities": capabilities}
        )
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            model = models.get("basic")
            chunks = [chunk async for chunk in model.astream(QUESTION)]
            assert texts_of(chunks) == [("I think. SECRET", ""), ("", "Hello!")]
            assert capabilities_of(model).has("unopened_thoughts")
            # An answer that is cut off within its thoughts has no other text.
            cut = [chunk async for chunk in model.astream(QUESTION)]
            assert texts_of(cut) == [("Hello, you", "")]


@pytest.mark.anyio
async def test_words_are_held_only_until_an_endpoint_has_answered_without_such_thoughts():
    with serving({"other": [reply("One two three.")]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            counts = []
            for _ in range(2):
                chunks = [c async for c in models.get("basic").astream(QUESTION) if c.text]
                counts.append((len(chunks), "".join(c.text for c in chunks)))
            capabilities = capabilities_of(models.get("basic"))
    assert counts[0] == (1, "One two three.")
    assert counts[1][1] == "One two three."
    assert capabilities.has_answered
    assert capabilities.known == {}


@pytest.mark.anyio
async def test_words_are_not_held_for_ever():
    with serving({"other": [reply("", chunks=["Hello, ", "you"], hang_after=1)]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            shown = []
            async for chunk in models.get("basic").astream(QUESTION):
                if chunk.text and not any(shown):
                    await asyncio.to_thread(server.release)
                shown.append(chunk.text)
    assert "".join(shown) == "Hello, you"


@pytest.mark.anyio
async def test_a_call_after_thoughts_that_nothing_opened_is_a_call():
    chunks = await streamed("use f", "</think>", tool_calls=[{"name": "f", "arguments": {"x": 1}}])
    message = sum(chunks[1:], chunks[0])
    assert (message.text, message.tool_calls[0]["args"]) == ("", {"x": 1})
