"""The request for a run, and its stored form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from maniple.agents.budget import Budget
from maniple.agents.plan_edits import PlanChange
from maniple.graph import RunOptions
from maniple.redaction import Redactor
from maniple.store import RunRecord

DoubleTexting = Literal["reject", "enqueue", "interrupt", "rollback"]
"""What a new run on a busy thread does (the terms of LangGraph's API)."""


def _read_messages(stored: Any) -> list[BaseMessage]:
    try:
        return messages_from_dict(stored)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("The stored messages are not in LangChain's format") from error


Messages = Annotated[Sequence[BaseMessage], PlainSerializer(messages_to_dict), PlainValidator(_read_messages)]
"""Messages, stored in LangChain's format."""
StoredPlanEdit = Annotated[
    PlanChange, PlainSerializer(PlanChange.to_dict), PlainValidator(PlanChange.from_dict)
]


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
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The last answers, by interrupt id."""
    answered_after: int = 0
    """The number of the run's newest event when it was answered."""
    wishes: Sequence[StoredPlanEdit] = ()
    """The user's changes of the plan during its execution. The name is the key in stored requests."""
    is_retry: bool = False
    """Whether the run was retried after event `answered_after`, later than it was answered."""
    stalls: int = 0
    """How often the run was recovered without progress."""

    @property
    def ends_others(self) -> bool:
        """Whether active runs on its thread are cancelled."""
        return self.when_busy in ("interrupt", "rollback")

    def to_json(self) -> str:
        """Return the JSON from which a recovery restarts the run."""
        return _REQUEST.dump_json(self, exclude=_OF_THE_ROW).decode()

    def without_secrets(self, redactor: Redactor) -> str:
        """Return `to_json` with every text in it redacted."""
        stored = self.to_json()
        clean = _redact_json(redactor, stored)
        if clean is not None:
            return clean
        # A secret that equals a word of the format, such as `human`, made the JSON unreadable. Each secret
        # is masked separately then, and those that break the JSON are skipped.
        for one in redactor.each():
            stored = _redact_json(one, stored) or stored
        return stored

    @classmethod
    def of(cls, run: RunRecord) -> "RunRequest":
        """Return the request of a stored run; raises `ValueError` if it cannot be read."""
        return replace(_REQUEST.validate_json(run.request), thread_id=run.thread_id, owner=run.owner)


def _redact_json(redactor: Redactor, stored: str) -> str | None:
    """Return the JSON of a request without secrets; None if the result is no valid request."""
    clean = json.dumps(redactor.value(json.loads(stored)), ensure_ascii=False)
    try:
        _REQUEST.validate_json(clean)
    except ValueError:
        return None
    return clean


_REQUEST = TypeAdapter(RunRequest)
_OF_THE_ROW = {"thread_id", "owner", "when_busy"}
"""Fields that are columns of the run's row, or are only used when the run is accepted."""


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run that was created or answered; its new events follow number `after`."""

    run: RunRecord
    after: int
