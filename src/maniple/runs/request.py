"""The request for a run, and its stored form."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from maniple.graph import RunOptions
from maniple.redaction import Redactor
from maniple.runs.stored_json import redact_json
from maniple.scope.budget import Budget
from maniple.scope.client_tools import ClientTool
from maniple.store import RunRecord

DoubleTexting = Literal["reject", "enqueue", "interrupt", "rollback", "steer"]
"""What a new run on a busy thread does (the terms of LangGraph's API, and `steer`)."""


def _read_messages(stored: Any) -> list[BaseMessage]:
    try:
        return messages_from_dict(stored)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("The stored messages are not in LangChain's format") from error


Messages = Annotated[Sequence[BaseMessage], PlainSerializer(messages_to_dict), PlainValidator(_read_messages)]
"""Messages, stored in LangChain's format."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for one turn: the conversation so far, or the newest message of a known thread.

    `owner` is the id of the requesting API key. Without a `thread_id`, a new thread is created.
    """

    messages: Messages
    thread_id: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    owner: str = ""
    when_busy: DoubleTexting = "enqueue"
    budget: Budget = field(default_factory=Budget)
    approval: Sequence[str] = ()
    """Tools that need the user's approval; stored with the run, so that changed settings do not affect it."""
    run_id: str = ""
    """The id that the run gets; "": a new one.

    A request with an id that exists gets that run: so it can be repeated without a second run. It never
    answers a run that waits, and raises `ThreadBusy` instead.
    """
    model: str = ""
    """The name of the configured model that does the work of the basic one; "": the basic one itself."""
    client_tools: Sequence[ClientTool] = ()
    """The functions that the client runs itself when a member calls them (`scope.client_tools`)."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a client of another protocol wrote on the run, as JSON values; the team does not see it."""

    @property
    def ends_others(self) -> bool:
        """Whether active runs on its thread are cancelled."""
        return self.when_busy in ("interrupt", "rollback")

    @property
    def is_message(self) -> bool:
        """Whether it is to be a message to a run that works on its thread: text alone can be one."""
        return self.when_busy == "steer" and isinstance(self.messages[-1].content, str)

    def to_json(self) -> str:
        """Return the JSON from which a recovery restarts the run."""
        return _REQUEST.dump_json(self, exclude=_OF_THE_ROW).decode()

    def without_secrets(self, redactor: Redactor) -> str:
        """Return `to_json` with every text in it redacted."""
        messages = redact_json(redactor, _MESSAGES, _MESSAGES.dump_json(self.messages).decode())
        rest = json.loads(redact_json(redactor, _REQUEST, replace(self, messages=()).to_json()))
        del rest["messages"]
        return f'{{"messages": {messages}, {json.dumps(rest, ensure_ascii=False)[1:]}'

    @classmethod
    def of(cls, run: RunRecord) -> "RunRequest":
        """Return the request of a stored run; raises `ValueError` if it cannot be read."""
        return replace(_REQUEST.validate_json(run.request), thread_id=run.thread_id, owner=run.owner)


_MESSAGES: TypeAdapter[Sequence[BaseMessage]] = TypeAdapter(Messages)
_REQUEST = TypeAdapter(RunRequest)
_OF_THE_ROW = {"thread_id", "owner", "when_busy", "run_id"}
"""Fields that are columns of the run's row, or are only used when the run is accepted."""


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run that was created or answered, or got a message; a client reads its events after number `after`.

    These are the new ones. For a request that became a message (`steer`) they are those of the newest
    segment, so that they begin with `run`.
    """

    run: RunRecord
    after: int
    message_id: str = ""
    """The id of the message that the run got; "" where the request was none."""

    @property
    def is_new(self) -> bool:
        """Whether the run is that of the request, which was no answer or message to another one."""
        return self.after == 0 and not self.message_id
