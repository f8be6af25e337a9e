"""Streams of the OpenAI SDK that are closed whole when they are left."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from openai import AsyncStream


class ClosedWhole:
    """The SDK's completions, whose streams close their own generator with their response.

    An `openai.AsyncStream` holds a generator that holds the stream: left in the middle, it waits for the
    garbage collector with all that it reads from. When that comes along in another thread, it may
    close what the event loop is closing just then, and complains of it on standard error.
    """

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)

    async def create(self, **payload: Any) -> Any:
        """Return what the SDK does; a stream as the context manager as which LangChain opens it."""
        answer = await self._completions.create(**payload)
        return _whole(answer) if isinstance(answer, AsyncStream) else answer


@asynccontextmanager
async def _whole(stream: AsyncStream[Any]) -> AsyncIterator[AsyncStream[Any]]:
    async with stream, aclosing(cast("AsyncGenerator[Any, None]", stream._iterator)):
        yield stream
