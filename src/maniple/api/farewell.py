"""How a stream ends whose run does not: the client must be able to go on with what it has."""

from contextlib import suppress

from maniple.errors import ManipleError, StoreError
from maniple.events import (
    ChatMessage,
    Event,
    Failed,
    SessionState,
    Told,
    WorkflowEnded,
    WorkflowStarted,
    read_event,
)
from maniple.store import EventTable, stored


async def farewell(stored_events: EventTable, run_id: str, why: ManipleError) -> list[Event]:
    """Return what closes the stream of a run that goes on later, or could not be recorded.

    Only what is stored is read: the run itself may still be going on. The old client forgets the conversation
    when `end_of_workflow` is missing (`docs/wire.md`).
    """
    events: list[Event] = []
    with suppress(StoreError):
        async for page in stored(stored_events, run_id):
            events += [read_event(record.type, record.data) for record in page]
    told = Told.of(events)
    started = [event for event in events if isinstance(event, WorkflowStarted)]
    messages: list[ChatMessage] = started[-1].input if started else []
    closing: list[Event] = list(told.closing())
    closing.append(Failed(code=why.code, message=str(why), agent_name=None, retryable=why.retryable))
    if told.workflow_started:
        closing.append(WorkflowEnded(workflow_id=run_id, messages=messages))
    return [*closing, SessionState(messages=messages)]
