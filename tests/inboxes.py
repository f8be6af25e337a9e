"""Inboxes of runs without an engine."""

from collections.abc import Sequence
from uuid import uuid4

from maniple.scope.inbox import Inbox
from maniple.scope.inputs import PlanChange, ReceivedInput, Reply, RunInput


class MemoryLog:
    """Keeps in memory what is written."""

    def __init__(self) -> None:
        self.added: list[ReceivedInput] = []
        self.settled: list[ReceivedInput] = []

    async def write(self, added: Sequence[ReceivedInput], settled: Sequence[ReceivedInput]) -> None:
        self.added += added
        self.settled += settled


def sent(content: RunInput, input_id: str = "", reply: Reply | None = None) -> ReceivedInput:
    """Return an input of the user."""
    own = content.change_id if isinstance(content, PlanChange) else str(uuid4())
    return ReceivedInput(input_id or own, content, reply=reply)


def an_inbox(*received: RunInput | ReceivedInput) -> Inbox:
    """Return an inbox that inputs can be put into while the run works."""
    known = [one if isinstance(one, ReceivedInput) else sent(one) for one in received]
    return Inbox(known, MemoryLog())
