"""A stream that is left takes its generators with it, without waiting for the garbage collector."""

import asyncio
import gc
import types
from collections.abc import Iterator

import pytest

from maniple.llms import open_chat_models
from tests.llms.test_chat import QUESTION, settings
from tests.openai_server import serving

pytestmark = pytest.mark.anyio
_LIBRARIES = ("/openai/", "/httpx2/", "/httpcore2/", "/langchain_openai/")


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _suspended() -> list[str]:
    """Name the libraries' generators that were begun and neither ended nor closed."""
    return [
        each.__qualname__
        for each in gc.get_objects()
        if isinstance(each, types.AsyncGeneratorType)
        and each.ag_frame is not None
        and any(library in each.ag_code.co_filename for library in _LIBRARIES)
    ]


async def _settled() -> list[str]:
    """Return what is suspended once the loop has had every chance to close what was dropped."""
    for _ in range(200):
        await asyncio.sleep(0)
    return _suspended()


@pytest.mark.parametrize("cancelled", [True, False])
async def test_nothing_of_a_stream_that_is_left_waits_for_the_collector(uncollected, cancelled):
    long = {"chunks": ["word "] * 500, "delay_seconds": 0.001}
    with serving({"other": [long]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            begun = asyncio.Event()

            async def read() -> None:
                async for _ in models.get("basic").astream(QUESTION):
                    begun.set()
                    if not cancelled:
                        break
                    await asyncio.Event().wait()

            reading = asyncio.create_task(read())
            await begun.wait()
            if cancelled:
                reading.cancel()
            await asyncio.wait([reading])
            assert await _settled() == []
