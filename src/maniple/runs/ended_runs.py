"""What was sent to a run that has ended, and what of it the graph has not stored in the conversation."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from langchain_core.messages import BaseMessage, HumanMessage

from maniple.graph.steering import as_exchange
from maniple.runs.request import RunRequest
from maniple.runs.stored_inputs import read_inputs
from maniple.scope.inputs import EndedRun, Message, ReceivedInput, Reply, UserMessage
from maniple.store import RunRecord, Store
from maniple.types import RunState, RunStatus, Worker

_LOG = logging.getLogger(__name__)
DROPPED = Reply("dropped", "The run was cancelled before this could be answered.")
"""Shown for a message that waited at a cancellation. It is not stored: the lead of a retry decides."""


async def read_ended_run(store: Store, record: RunRecord, available: Sequence[Worker] = ()) -> EndedRun:
    """Return a run with what was sent to it; `available` are the members of the team."""
    status = cast("RunStatus", record.status)
    try:
        request = await asyncio.to_thread(RunRequest.of, record)
        received = _with_drops(await read_inputs(store.inputs, record.run_id), record.status)
    except ValueError as error:  # no defect of an old run may end the new one
        _LOG.warning("What was sent to an earlier run cannot be read: %s", error)
        return EndedRun(record.run_id, "", "", status, record.error or "")
    asked, members = request.messages[-1], request.options.at_work(available)
    why = record.error or ""
    return EndedRun(record.run_id, asked.id or "", asked.text, status, why, received, members)


def find_exchange(received: Iterable[ReceivedInput], status: RunState) -> list[BaseMessage]:
    """Return what the user wrote to a run, with the replies, without what became a run of its own.

    `status` is that of the run. What waits for the lead is left out.
    """
    messages = [
        UserMessage(one.input_id, one.content.text, one.reply)
        for one in _with_drops(received, status)
        if isinstance(one.content, Message) and one.reply is not None
    ]
    # After a cancellation no message becomes a run.
    own = [one for one in messages if not one.may_become_run or status == "cancelled"]
    return [part for one in own for part in as_exchange(one)]


def find_left(runs: Iterable[EndedRun], conversation: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return what the conversation of a thread lacks of what was written to its runs, which are oldest first.

    The graph stores it with the next step that ends, and a run may end before. It comes with the run's
    request, if the run ended before its first node.
    """
    known, left = {one.id for one in conversation}, list[BaseMessage]()
    for run in runs:
        new = [one for one in find_exchange(run.received, run.status) if one.id not in known]
        is_begun = run.request_id in known
        if not new or (run.is_undone and not is_begun):
            continue
        left += [*([] if is_begun else [HumanMessage(run.request, id=run.request_id)]), *new]
        known |= {one.id for one in left}
    return left


def _with_drops(received: Iterable[ReceivedInput], status: RunState) -> list[ReceivedInput]:
    """Return the inputs of a run; a message that waited at its cancellation was dropped."""
    is_cancelled = status == "cancelled"
    return [
        replace(one, reply=DROPPED)
        if is_cancelled and isinstance(one.content, Message) and one.reply is None
        else one
        for one in received
    ]
