"""Events as server-sent events, framed so that the LangManus client can read them."""

import json
from collections.abc import AsyncIterator
from typing import Literal

from sse_starlette import EventSourceResponse, ServerSentEvent

from maniple.runs import Run

HEADERS = {"cache-control": "no-store", "connection": "keep-alive", "x-accel-buffering": "no"}
LINE_END = "\n"


def stream(
    run: Run, *, on_disconnect: Literal["cancel", "continue"], ping_seconds: float
) -> EventSourceResponse:
    """Return the response that tells of `run`; what a vanished client means is the caller's choice."""
    return EventSourceResponse(
        _frames(run, cancel=on_disconnect == "cancel"),
        headers=HEADERS,
        media_type="text/event-stream; charset=utf-8",
        sep=LINE_END,
        ping=ping_seconds,  # pyright: ignore[reportArgumentType]
    )


async def _frames(run: Run, *, cancel: bool) -> AsyncIterator[ServerSentEvent]:
    try:
        async for number, event in run.events():
            # One data line: `json.dumps` writes no line ends. Other scripts are sent as themselves.
            data = json.dumps(event.data(), ensure_ascii=False)
            yield ServerSentEvent(data, event=event.type, id=str(number), sep=LINE_END)
    finally:
        # Reached at the end, where cancelling does nothing, and when the client has gone.
        if cancel:
            run.cancel()
