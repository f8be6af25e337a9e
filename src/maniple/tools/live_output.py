"""What a call prints, told while it still runs."""

import asyncio
from typing import Literal

from langchain_core.callbacks import adispatch_custom_event

from maniple.types import TOOL_OUTPUT

# So old is what is told, and so often: a call that is over sooner says everything with its result.
_EVERY_SECONDS = 0.3

_Stream = Literal["stdout", "stderr"]


class LiveOutput:
    """Hears what a call prints, and dispatches it as custom events of the tool call that this is entered in.

    An event is `TOOL_OUTPUT` with `{"stream", "text"}`, at most one a stream every 0.3 s, and at most
    `most_characters` in all; the result tells the whole. Who listens is LangChain's matter: nobody, maybe.
    """

    def __init__(self, most_characters: int) -> None:
        self._left = most_characters
        self._waiting: dict[_Stream, list[str]] = {}
        self._heard = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    def __call__(self, stream: _Stream, text: str) -> None:
        """Take a piece."""
        if piece := text[: self._left]:
            self._left -= len(piece)
            self._waiting.setdefault(stream, []).append(piece)
            self._heard.set()

    async def __aenter__(self) -> "LiveOutput":
        # Made in here, the task has the call's context, by which LangChain knows whose events these are.
        self._telling = asyncio.create_task(self._tell(), name="live output")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])

    async def _tell(self) -> None:
        while True:
            await self._heard.wait()
            await asyncio.sleep(_EVERY_SECONDS)
            self._heard.clear()
            waiting, self._waiting = self._waiting, {}
            for stream, pieces in waiting.items():
                await adispatch_custom_event(TOOL_OUTPUT, {"stream": stream, "text": "".join(pieces)})
