"""The request for a run, and its stored form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter

from maniple.agents.budget import Budget
from maniple.agents.plan_edits import RETRY, PlanChange
from maniple.agents.steering import MessageDecision, UserMessage
from maniple.graph import RunOptions
from maniple.redaction import Redactor
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
    """The last answers, by the ids of LangGraph's interrupts."""
    answered: str = ""
    """The id of the question that they answer, as clients know it."""
    answered_after: int = 0
    """The number of the run's newest event when it was answered."""
    plan_changes: Annotated[Sequence[StoredPlanEdit], Field(alias="wishes")] = ()
    """The user's changes of the plan during its execution, under the key `wishes` in stored requests."""
    user_messages: Sequence[UserMessage] = ()
    """What the user wrote while the run worked, with what the lead has decided about it."""
    step_answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The answers that steps were given while the run worked, by the keys of their questions."""
    is_retry: bool = False
    """Whether the run was retried after event `answered_after`, later than it was answered."""
    stalls: int = 0
    """How often the run was recovered without progress."""

    @property
    def ends_others(self) -> bool:
        """Whether active runs on its thread are cancelled."""
        return self.when_busy in ("interrupt", "rollback")

    @property
    def was_retried(self) -> bool:
        """Whether the run was ever retried: before that it had failed, or its answer had gaps."""
        return any(change.action == RETRY for change in self.plan_changes)

    @property
    def is_message(self) -> bool:
        """Whether it is to be a message to a run that works on its thread: text alone can be one."""
        return self.when_busy == "steer" and isinstance(self.messages[-1].content, str)

    @property
    def possible_runs(self) -> int:
        """The number of messages that become runs of their own, unless the lead decides otherwise."""
        return sum(
            one.decision is None or one.decision.disposition == "next_run" for one in self.user_messages
        )

    def with_changes(self, changes: Sequence[PlanChange]) -> "RunRequest":
        """Return the request with further changes of the plan."""
        return replace(self, plan_changes=(*self.plan_changes, *changes)) if changes else self

    def with_message(self, message: UserMessage) -> "RunRequest":
        """Return the request with a further message of the user."""
        return replace(self, user_messages=(*self.user_messages, message))

    def without_message(self, message_id: str) -> "RunRequest":
        """Return the request without a message, which was not accepted."""
        left = tuple(one for one in self.user_messages if one.message_id != message_id)
        return replace(self, user_messages=left)

    def with_decision(self, message: UserMessage, decision: MessageDecision) -> "RunRequest":
        """Return the request with what the lead has decided about a message."""
        messages = tuple(
            replace(one, decision=decision) if one.message_id == message.message_id else one
            for one in self.user_messages
        )
        return replace(self, user_messages=messages)

    def with_rest_decided(self, decision: MessageDecision) -> "RunRequest":
        """Return the request with one decision about all messages that wait for the lead."""
        messages = tuple(
            replace(one, decision=decision) if one.decision is None else one for one in self.user_messages
        )
        return replace(self, user_messages=messages)

    def with_step_answer(self, key: str, answer: Any) -> "RunRequest":
        """Return the request with the answer to a step's question."""
        return replace(self, step_answers={**self.step_answers, key: answer})

    def without_step_answer(self, key: str) -> "RunRequest":
        """Return the request without an answer, which was not accepted."""
        return replace(
            self, step_answers={name: one for name, one in self.step_answers.items() if name != key}
        )

    def to_json(self) -> str:
        """Return the JSON from which a recovery restarts the run."""
        return _REQUEST.dump_json(self, exclude=_OF_THE_ROW, by_alias=True).decode()

    def without_secrets(self, redactor: Redactor, messages: str = "") -> str:
        """Return `to_json` with every text in it redacted.

        `messages` is the result of `messages_without_secrets`, if the caller has it: redacting a long history
        takes tens of milliseconds, and it does not change with the rest.
        """
        messages = messages or self.messages_without_secrets(redactor)
        rest = json.loads(_redact(redactor, _REQUEST, replace(self, messages=()).to_json()))
        del rest["messages"]
        return f'{{"messages": {messages}, {json.dumps(rest, ensure_ascii=False)[1:]}'

    def messages_without_secrets(self, redactor: Redactor) -> str:
        """Return the messages as JSON with every text in it redacted."""
        return _redact(redactor, _MESSAGES, _MESSAGES.dump_json(self.messages).decode())

    @classmethod
    def of(cls, run: RunRecord) -> "RunRequest":
        """Return the request of a stored run; raises `ValueError` if it cannot be read."""
        return replace(_REQUEST.validate_json(run.request), thread_id=run.thread_id, owner=run.owner)


def _redact(redactor: Redactor, format_: TypeAdapter[Any], stored: str) -> str:
    """Return JSON of a format without secrets, so that it can still be read."""
    clean = _redact_json(redactor, format_, stored)
    if clean is not None:
        return clean
    # A secret that equals a word of the format, such as `human`, made the JSON unreadable. Each secret
    # is masked separately then, and those that break the JSON are skipped.
    for one in redactor.each():
        stored = _redact_json(one, format_, stored) or stored
    return stored


def _redact_json(redactor: Redactor, format_: TypeAdapter[Any], stored: str) -> str | None:
    """Return the JSON without secrets; None if the result is not valid in its format."""
    clean = json.dumps(redactor.value(json.loads(stored)), ensure_ascii=False)
    try:
        format_.validate_json(clean)
    except ValueError:
        return None
    return clean


_MESSAGES: TypeAdapter[Sequence[BaseMessage]] = TypeAdapter(Messages)
_REQUEST = TypeAdapter(RunRequest)
_OF_THE_ROW = {"thread_id", "owner", "when_busy"}
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
