"""Middleware: a model that can see is shown the figures that its code drew.

The messages keep only where the figures lie (the artifact of a tool's message), so that no picture is written
into checkpoints; they are read for each request anew. They follow the results as a message of the user: most
endpoints take pictures nowhere else.
"""

import base64
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from maniple.errors import FileError, ModelError
from maniple.llms import capabilities_of

MOST_PICTURES = 4
"""The newest of a conversation."""

ReadFigure = Callable[[str], Awaitable[bytes]]
"""The PNG at a path of the current thread's workspace, or nothing; raises `FileError`."""


class Pictures(AgentMiddleware[Any, Any]):
    """Adds pictures to what a model is sent, unless it is known not to see."""

    def __init__(self, read: ReadFigure) -> None:
        super().__init__()
        self._read = read

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        paths = list(islice(_newest_figures(request.messages), MOST_PICTURES))
        if not paths or not capabilities_of(request.model).has("vision"):
            return await handler(request)
        messages = await self._illustrated(request.messages, set(paths))
        try:
            return await handler(request.override(messages=messages))
        except ModelError as error:
            # Endpoints refuse pictures in many words, and the work can go on without them.
            if error.code != "model_bad_request":
                raise
        return await handler(request)

    async def _illustrated(self, messages: Sequence[AnyMessage], wanted: set[str]) -> list[AnyMessage]:
        shown: list[AnyMessage] = []
        waiting: list[dict[str, Any]] = []
        for message in messages:
            if waiting and not isinstance(message, ToolMessage):
                shown.append(HumanMessage(list(waiting)))
                waiting.clear()
            shown.append(message)
            for path in _figures(message):
                if path in wanted:
                    waiting += await self._parts(path)
        return [*shown, HumanMessage(list(waiting))] if waiting else shown

    async def _parts(self, path: str) -> list[dict[str, Any]]:
        try:
            content = await self._read(path)
        except FileError:  # it has been removed since
            return []
        if not content:
            return []
        url = "data:image/png;base64," + base64.b64encode(content).decode()
        words = {"type": "text", "text": f"This is {path}, drawn by the code above:"}
        return [words, {"type": "image_url", "image_url": {"url": url}}]


def _newest_figures(messages: Sequence[AnyMessage]) -> Iterator[str]:
    for message in reversed(messages):
        yield from reversed(_figures(message))


def _figures(message: AnyMessage) -> list[str]:
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    return [path for path in artifact if isinstance(path, str)] if isinstance(artifact, list) else []
