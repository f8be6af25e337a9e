"""Chunks of answers that are joined: what is one chunk then, and that nothing else changes."""

import asyncio
from collections.abc import AsyncIterator
from functools import reduce
from itertools import chain, groupby
from operator import add
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler, AsyncCallbackManagerForLLMRun
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from maniple.errors import ModelError
from maniple.llms.provider_model import as_answering
from maniple.llms.streams import BLOCKS_KEY, join_chunks, kind_of, limit_answer

QUESTION = [HumanMessage("hi")]
NO_PIECE = 1 / 900
"""A rate of the pieces; a test that waits for the next one does not end."""


def chunk(content: str = "", **fields: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=content, **fields))


def thought(text: str) -> ChatGenerationChunk:
    block = {"type": "thinking", "thinking": text, "index": 0}
    return chunk(additional_kwargs={"reasoning_content": text, BLOCKS_KEY: [block]})


def signature() -> ChatGenerationChunk:
    return chunk(additional_kwargs={BLOCKS_KEY: [{"type": "thinking", "signature": "s", "index": 0}]})


def call(index: int, args: str, name: str | None = None) -> ChatGenerationChunk:
    return chunk(
        tool_call_chunks=[tool_call_chunk(name=name, args=args, id=name and f"id_{name}", index=index)]
    )


def usage(tokens: int) -> ChatGenerationChunk:
    counted = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return chunk(usage_metadata=counted, response_metadata={"model_name": ""})


TEXTS = st.text(max_size=4)
CHUNKS = st.one_of(
    st.builds(chunk, TEXTS),
    st.builds(thought, TEXTS),
    st.builds(signature),
    st.builds(call, st.integers(0, 2), TEXTS),
    st.builds(call, st.integers(0, 2), TEXTS, st.sampled_from(["search", "run"])),
    st.builds(usage, st.integers(0, 9)),
    st.builds(lambda text: chunk(text, additional_kwargs={"reasoning_content": "so"}), TEXTS),
)


@given(st.lists(CHUNKS, min_size=1, max_size=12))
def test_joined_chunks_have_the_same_sum_and_the_order_of_their_kinds(chunks):
    joined = list(join_chunks(chunks))
    whole, expected = reduce(add, joined).message, reduce(add, chunks).message
    assert whole.model_dump() == expected.model_dump()
    kinds = [kind for one in chunks if (kind := kind_of(one))]
    runs = (run if kind == "mixed" else [kind] for kind, run in groupby(kinds))
    assert [kind_of(one) for one in joined] == (list(chain.from_iterable(runs)) or [""])


class SteppedModel(GenericFakeChatModel):
    """A client whose pieces arrive one by one, until an error, or without an end."""

    texts: list[str]
    error: Any = None
    closed: Any = None

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        try:
            for text in self.texts:
                for _turn in range(20):
                    await asyncio.sleep(0)
                yield chunk(text)
            if self.error:
                raise self.error
            if self.closed:
                await asyncio.Event().wait()
        finally:
            if self.closed:
                self.closed.set()


def stepped(**fields: Any) -> Any:
    return as_answering(SteppedModel(messages=iter(()), **fields), "models", NO_PIECE)


@pytest.mark.anyio
async def test_the_first_text_comes_at_once_and_what_follows_with_the_end():
    async with asyncio.timeout(20):
        pieces = [piece.text async for piece in stepped(texts=["", "Hel", "lo", "."]).astream(QUESTION)]
    assert [text for text in pieces if text] == ["Hel", "lo."]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [ConnectionResetError("reset"), ValueError("odd")])
async def test_what_came_before_an_error_is_passed_on(error):
    texts = []
    with pytest.raises(ModelError, match=str(error) if isinstance(error, ValueError) else "broke off"):
        async with asyncio.timeout(20):
            async for piece in stepped(texts=["Hel", "lo", "."], error=error).astream(QUESTION):
                texts.append(piece.text)
    assert texts == ["Hel", "lo."]


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_in_a_pause_closes_the_stream_of_the_client():
    shown, closed = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        async for _ in stepped(texts=["Hel", "lo"], closed=closed).astream(QUESTION):
            shown.set()

    async with asyncio.timeout(20):
        reading = asyncio.create_task(read())
        await shown.wait()
        assert not closed.is_set()
        reading.cancel()
        await asyncio.wait({reading})
    assert closed.is_set()


class _Receiver(AsyncCallbackHandler):
    """Notes in which task each piece came, and refuses one."""

    raise_error = True

    def __init__(self) -> None:
        self.tasks = list[asyncio.Task[Any] | None]()

    async def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.tasks.append(asyncio.current_task())
        if token == "refused":
            raise ValueError(token)


@pytest.mark.anyio
async def test_pieces_come_to_those_who_receive_them_in_the_task_of_their_answer():
    receiver, other = _Receiver(), AsyncCallbackHandler()
    manager = AsyncCallbackManagerForLLMRun(
        run_id=uuid4(), handlers=[other, receiver], inheritable_handlers=[]
    )
    with limit_answer(manager) as reporter:
        assert reporter is not None
        assert (reporter.handlers, reporter.run_id) == ([receiver], manager.run_id)
        await reporter.on_llm_new_token("a piece")
        with pytest.raises(ValueError, match="refused"):
            await reporter.on_llm_new_token("refused")
    assert manager.handlers == [other, receiver]
    assert receiver.tasks == [asyncio.current_task()] * 2
