"""Any split of any raw output into network pieces: the same message, and the same text for clients.

The time that words without an opening mark are held is not part of it: a model is known to close thoughts
that it did not open, or known not to.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maniple.agents.text_calls import TextWithoutCalls, find_own_calls
from tests.endpoints.raw_outputs import ROWS
from tests.llms.network_pieces import open_model, read_chunks
from tests.openai_server import encode_raw
from tests.sizes import sizes

TOOLS = frozenset({"python_repl_tool", "handoff_to_planner"})
BODIES = [
    (f"{row.id}-{number}", encode_raw(reply["raw"]), row.form.startswith("only `</think>`"))
    for row in ROWS
    for number, reply in enumerate(row.replies)
    if "raw" in reply and reply.get("status", 200) == 200
]


async def read_pieces(pieces: Sequence[bytes], *, closes_thoughts: bool) -> dict[str, Any]:
    """Return what is understood of a body in these pieces."""
    model = open_model(pieces, capabilities={"unopened_thoughts": closes_thoughts})
    chunks, error = await read_chunks(model)
    texts = [chunk.text for chunk in chunks]
    shown = TextWithoutCalls()
    whole = "".join(texts)
    message = sum(chunks[1:], chunks[0]) if chunks else None
    return {
        "text": whole,
        "shown": "".join(map(shown.feed, texts)) + shown.end(),
        "written calls": [one.calls for one in find_own_calls(whole, TOOLS)],
        "calls": [(call["name"], call["args"], call["id"]) for call in message.tool_calls] if message else [],
        "thoughts": message.additional_kwargs.get("reasoning_content") if message else None,
        "usage": message.usage_metadata if message else None,
        "error": error,
    }


def split(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return a body in pieces that end at `cuts`."""
    return [body[start:end] for start, end in pairwise(sorted([0, *cuts, len(body)]))]


def test_there_are_bodies_of_all_kinds():
    assert len(BODIES) >= 100


def test_a_byte_at_a_time_gives_the_same():
    for name, content, closes_thoughts in BODIES[:: len(BODIES) // 40]:
        pieces = [bytes([byte]) for byte in content]
        found, whole = (
            asyncio.run(read_pieces(one, closes_thoughts=closes_thoughts)) for one in (pieces, [content])
        )
        assert found == whole, name


@pytest.mark.parametrize("most", sizes(300, 5_000))
def test_any_split_gives_the_same(most):
    @settings(max_examples=most, suppress_health_check=[HealthCheck.too_slow])
    @given(body=st.sampled_from(BODIES), data=st.data())
    def check(body: tuple[str, bytes, bool], data: st.DataObject) -> None:
        _, content, closes_thoughts = body
        cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=30))
        assert asyncio.run(read_pieces(split(content, cuts), closes_thoughts=closes_thoughts)) == asyncio.run(
            read_pieces([content], closes_thoughts=closes_thoughts)
        )

    check()
