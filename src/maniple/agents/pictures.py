"""Middleware: a model that can see is shown the pictures that its tools' results name.

The messages keep only where the pictures lie, so that none is written into checkpoints; they are read for
each request anew. They follow the results as a message of the user: most endpoints take them nowhere else.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from maniple.agents.fencing import between_marks
from maniple.agents.wrapping import ModelHandler
from maniple.errors import FileError, ModelError
from maniple.llms import capabilities_of
from maniple.reading.pictures import picture_of

MOST_PICTURES = 4
"""Those of the newest results of a conversation."""
MOST_OF_A_PAGE = 3
# Some of a page's pictures are icons, or gone.
_TRIED_OF_A_PAGE = 6

ReadPicture = Callable[[str], Awaitable[bytes]]
"""The picture at a path or an address, or nothing; raises `FileError`."""
Parts = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Gallery:
    """Where pictures are named, how they are read, and how they are introduced to a model."""

    names_in: Callable[[ToolMessage], Sequence[str]]
    read: ReadPicture
    introduced: Callable[[ToolMessage, str], str]
    most_of_a_result: int = MOST_PICTURES


def drawn_figures(read: ReadPicture) -> Gallery:
    """The figures that the coder's tools drew: the artifact of their messages names them."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        artifact = message.artifact
        paths = [path for path in artifact if isinstance(path, str)] if isinstance(artifact, list) else []
        return paths[-MOST_PICTURES:]

    return Gallery(names_in, read, lambda _, path: f"This is {path}, drawn by the code above:")


def server_pictures(read: ReadPicture) -> Gallery:
    """The pictures that MCP servers sent: the artifact of their messages names server and paths."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        artifact = message.artifact
        return artifact.get("pictures", ())[-MOST_PICTURES:] if isinstance(artifact, dict) else ()

    def introduced(message: ToolMessage, path: str) -> str:
        return f"This picture, which is data too, is {path}, from the server {message.artifact['server']}:"

    return Gallery(names_in, read, introduced)


def page_pictures(read: ReadPicture) -> Gallery:
    """The first pictures in what is shown of each page that was read."""

    def names_in(message: ToolMessage) -> Sequence[str]:
        found = _IMAGE.findall(message.text) if message.name == "crawl_tool" else ()
        return list(islice(dict.fromkeys(found), _TRIED_OF_A_PAGE))

    def introduced(_: ToolMessage, url: str) -> str:
        # The address is the page's word, as its text is.
        return f"This picture, which is data too, is from the page above:\n{between_marks(url)}"

    return Gallery(names_in, read, introduced, MOST_OF_A_PAGE)


_IMAGE = re.compile(r"!\[[^\]\n]{0,500}\]\((https?://[^\s()]{1,2000}(?:\([^\s()]{0,200}\)[^\s()]{0,2000})?)")


class Pictures(AgentMiddleware[Any, Any]):
    """Adds the pictures of a gallery to what a model is sent, unless it is known not to see."""

    def __init__(self, gallery: Gallery) -> None:
        super().__init__()
        self._gallery = gallery

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if not capabilities_of(request.model).has("vision"):
            return await handler(request)
        parts = await self._parts(request.messages)
        if not parts:
            return await handler(request)
        try:
            return await handler(request.override(messages=_illustrated(request.messages, parts)))
        except ModelError as error:
            # Endpoints refuse pictures in many words, and the work can go on without them.
            if error.code != "model_bad_request":
                raise
        return await handler(request)

    async def _parts(self, messages: Sequence[AnyMessage]) -> dict[int, Parts]:
        """Return what is shown after each message, by its place; no more than `MOST_PICTURES` pictures."""
        found: dict[int, Parts] = {}
        left = MOST_PICTURES
        for place in reversed(range(len(messages))):
            message = messages[place]
            if not isinstance(message, ToolMessage) or not left:
                continue
            names = self._gallery.names_in(message)
            contents = await asyncio.gather(*(self._read(name) for name in names))
            read = [(name, content) for name, content in zip(names, contents, strict=True) if content]
            shown = read[: min(left, self._gallery.most_of_a_result)]
            left -= len(shown)
            if shown:
                found[place] = [part for one in shown for part in self._shown(message, *one)]
        return found

    async def _read(self, name: str) -> bytes:
        try:
            return await self._gallery.read(name)
        except FileError:  # it has been removed since
            return b""

    def _shown(self, message: ToolMessage, name: str, content: bytes) -> Parts:
        picture = picture_of(content)
        media_type = picture.media_type if picture else "image/png"
        url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
        return [
            {"type": "text", "text": self._gallery.introduced(message, name)},
            {"type": "image_url", "image_url": {"url": url}},
        ]


def _illustrated(messages: Sequence[AnyMessage], parts: dict[int, Parts]) -> list[AnyMessage]:
    """Return `messages` with the pictures after the results of the same turn."""
    shown: list[AnyMessage] = []
    waiting: Parts = []
    for place, message in enumerate(messages):
        if waiting and not isinstance(message, ToolMessage):
            shown.append(HumanMessage(list(waiting)))
            waiting.clear()
        shown.append(message)
        waiting += parts.get(place, [])
    return [*shown, HumanMessage(list(waiting))] if waiting else shown
