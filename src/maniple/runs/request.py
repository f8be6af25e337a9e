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
"""What a second run on a busy thread does (LangGraph's words)."""


def _read_messages(kept: Any) -> list[BaseMessage]:
    try:
        return messages_from_dict(kept)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("the messages are not in LangChain's format") from error


Messages = Annotated[Sequence[BaseMessage], PlainSerializer(messages_to_dict), PlainValidator(_read_messages)]
"""Stored in LangChain's own form."""
StoredPlanEdit = Annotated[
    PlanChange, PlainSerializer(PlanChange.to_dict), PlainValidator(PlanChange.from_dict)
]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One turn for the team: the conversation so far, or its newest message on a known thread.

    `owner` is the id of the API key that asks. Without a `thread_id` the run gets a thread of its own.
    """

    messages: Messages
    thread_id: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    owner: str = ""
    when_busy: DoubleTexting = "enqueue"
    budget: Budget = field(default_factory=Budget)
    approval: Sequence[str] = ()
    """Tools that need a person's approval; stored with the run, so that later settings do not change it."""
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The last answers, by interrupt id."""
    answered_after: int = 0
    """The number of the run's newest event when it was answered."""
    wishes: Sequence[StoredPlanEdit] = ()
    """The user's changes of the plan during its execution."""
    stalls: int = 0
    """How often the run was recovered without progress."""

    @property
    def ends_others(self) -> bool:
        """Whether active runs on its thread are cancelled."""
        return self.when_busy in ("interrupt", "rollback")

    def to_json(self) -> str:
        """Return the JSON from which a recovery starts the run again."""
        return _REQUEST.dump_json(self, exclude=_OF_THE_ROW).decode()

    def without_secrets(self, redactor: Redactor) -> str:
        """Return `to_json` with every text in it redacted."""
        kept = self.to_json()
        clean = _readable(redactor, kept)
        if clean is not None:
            return clean
        # One secret equals a word of the format, such as `human`: the others are masked separately.
        for one in redactor.each():
            kept = _readable(one, kept) or kept
        return kept

    @classmethod
    def of(cls, run: RunRecord) -> "RunRequest":
        """Return the request of a stored run; raises `ValueError` when it cannot be read."""
        return replace(_REQUEST.validate_json(run.request), thread_id=run.thread_id, owner=run.owner)


def _readable(redactor: Redactor, kept: str) -> str | None:
    """Return the JSON of a request without secrets; None if that could not be read."""
    clean = json.dumps(redactor.value(json.loads(kept)), ensure_ascii=False)
    try:
        _REQUEST.validate_json(clean)
    except ValueError:
        return None
    return clean


_REQUEST = TypeAdapter(RunRequest)
_OF_THE_ROW = {"thread_id", "owner", "when_busy"}
"""Stored in columns of the row, or only used when the run is accepted."""


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run that was created or answered; its new events follow number `after`."""

    run: RunRecord
    after: int
