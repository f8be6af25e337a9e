"""The events that end a stream before its run has ended."""

from contextlib import suppress

from maniple.errors import ManipleError, StoreError
from maniple.events import ErrorOccurred, Event, RunView, SessionState, WorkflowEnded, load_run_view
from maniple.store import EventTable


async def closing_events(stored_events: EventTable, run_id: str, reason: ManipleError) -> list[Event]:
    """Return the events that close the stream of a run that continues later, or could not be recorded.

    They are made from the stored events alone: the run itself may still be going on. The LangManus client
    drops the conversation when `end_of_workflow` is missing (`docs/wire.md`).
    """
    view = RunView()
    with suppress(StoreError):
        view = await load_run_view(stored_events, run_id)
    messages = view.workflow_input
    events = [
        *view.stream.closing_events(),
        ErrorOccurred(code=reason.code, message=str(reason), agent_name=None, retryable=reason.retryable),
    ]
    if view.stream.has_workflow_started:
        events.append(WorkflowEnded(workflow_id=run_id, messages=messages))
    return [*events, SessionState(messages=messages)]
