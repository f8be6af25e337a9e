"""An answer with more tool calls than may run ends in the stream: what follows each call costs time."""

import pytest

from maniple.llms import open_chat_models
from maniple.llms.streams import MAX_CALLS, limit_calls
from tests.llms.test_chat import QUESTION, settings
from tests.openai_server import serving

pytestmark = pytest.mark.anyio
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def calls(count: int) -> dict:
    return {"tool_calls": [{"name": "look", "arguments": {"number": number}} for number in range(count)]}


async def answered(count: int, **options: object) -> tuple[list[dict], int]:
    """Return the calls of an answer with `count` calls, and the requests that it took."""
    with serving({"other": [calls(count)]}) as server:
        async with open_chat_models(settings(server.base_url, **options)) as models:
            model = models.get("basic").bind_tools([TOOL])
            whole = None
            async for chunk in model.astream(QUESTION):
                whole = chunk if whole is None else whole + chunk
        return whole.tool_calls, server.stats["calls"]


@pytest.mark.parametrize(("count", "read"), [(4, 4), (5, 5), (6, 5), (2_000, 5)])
async def test_the_calls_of_an_answer_are_read_up_to_the_limit(count: int, read: int) -> None:
    with limit_calls(5):
        found, requests = await answered(count)
    assert [call["args"] for call in found] == [{"number": number} for number in range(read)]
    assert requests == 1


async def test_without_a_step_an_answer_has_a_limit_too() -> None:
    found, _ = await answered(MAX_CALLS + 50)
    assert len(found) == MAX_CALLS
