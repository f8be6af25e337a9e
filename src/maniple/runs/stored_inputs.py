"""The inputs of a run as they are stored."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter

from maniple.redaction import Redactor
from maniple.runs.stored_json import redact_json
from maniple.scope.inputs import (
    Cancel,
    Message,
    PlanChange,
    ReceivedInput,
    Reply,
    Resume,
    Retry,
    RunInput,
    Sender,
    StepAnswer,
)
from maniple.store import InputRecord, InputTable

_KINDS: Mapping[type[RunInput], str] = {
    Message: "message",
    PlanChange: "plan_change",
    StepAnswer: "step_answer",
    Resume: "resume",
    Retry: "retry",
    Cancel: "cancel",
}
COMMAND = "command"
"""The kind of a record that asks the process which drives the run, and gets its answer as the reply."""
_FORMATS: Mapping[str, TypeAdapter[Any]] = {kind: TypeAdapter(format_) for format_, kind in _KINDS.items()}
_REPLY = TypeAdapter(Reply)


@dataclass(frozen=True, slots=True)
class StoredInputs:
    """Stores the inputs of one run without secrets (`InputLog`)."""

    table: InputTable
    run_id: str
    redactor: Redactor

    async def write(self, added: Sequence[ReceivedInput], settled: Sequence[ReceivedInput]) -> None:
        """Store new inputs and replies: all or none. Raises `StoreError`."""
        replies = {one.input_id: reply_json(one.reply, self.redactor) for one in settled if one.reply}
        await self.table.write(self.run_id, [as_record(one, self.redactor) for one in added], replies)


def as_record(one: ReceivedInput, redactor: Redactor) -> InputRecord:
    """Return the record of an input that is received now."""
    kind = _KINDS[type(one.content)]
    format_ = _FORMATS[kind]
    content = redact_json(redactor, format_, format_.dump_json(one.content).decode())
    reply = None if one.reply is None else reply_json(one.reply, redactor)
    return InputRecord(one.input_id, kind, one.sender, content, time.time(), reply)


def reply_json(reply: Reply, redactor: Redactor) -> str:
    """Return a reply as it is stored."""
    return redact_json(redactor, _REPLY, _REPLY.dump_json(reply).decode())


def from_record(one: InputRecord) -> ReceivedInput:
    """Return a stored input; raises `ValueError` for one that cannot be read."""
    return ReceivedInput(
        one.input_id,
        _FORMATS[one.kind].validate_json(one.content),
        cast("Sender", one.sender),
        None if one.reply is None else _REPLY.validate_json(one.reply),
    )


async def read_inputs(table: InputTable, run_id: str) -> list[ReceivedInput]:
    """Return the stored inputs of a run, oldest first; raises `ValueError` for one that cannot be read.

    A command is none: what is done with it is an input of its own.
    """
    return [from_record(one) for one in await table.list_by_run(run_id) if one.kind != COMMAND]
