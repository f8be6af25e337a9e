"""Drive the team once and tell what happens."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from uuid import uuid4

from langchain_core.messages import BaseMessage

from maniple.events import Event
from maniple.graph import RunOptions, Team
from maniple.runtime.turn import Turn, drive


async def stream_run(
    team: Team,
    messages: Sequence[BaseMessage],
    *,
    thread_id: str | None = None,
    options: RunOptions | None = None,
    run_id: str | None = None,
) -> AsyncIterator[Event]:
    """Run the team on `messages` and yield typed events, from `run` to `final_session_state`.

    On a thread with a history (the team must have a checkpointer) only the newest message is added; on
    one that waits for an answer, that message is the answer. The last events hold the whole conversation.
    Errors of the run are told as events and not raised. When the reading task is cancelled the closing
    events still come, then the cancellation.
    """
    run_id = run_id or str(uuid4())
    turn = Turn(run_id, thread_id or run_id, messages, options or RunOptions())
    async with aclosing(drive(team, turn)) as events:
        async for event in events:
            yield event
