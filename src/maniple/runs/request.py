"""What is asked of the team, and how it is kept."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from pydantic import TypeAdapter

from maniple.agents.budget import Budget
from maniple.agents.wishes import PlanChange
from maniple.graph import RunOptions
from maniple.redaction import Redactor
from maniple.store import RunRecord

DoubleTexting = Literal["reject", "enqueue", "interrupt", "rollback"]
"""What a second run on a busy thread does (LangGraph's words)."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One turn for the team: the conversation so far, or its newest message on a known thread.

    `owner` is the id of the API key that asks. Without a `thread_id` the run gets a thread of its own.
    """

    messages: Sequence[BaseMessage]
    thread_id: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    owner: str = ""
    when_busy: DoubleTexting = "enqueue"
    budget: Budget = field(default_factory=Budget)
    approval: Sequence[str] = ()
    """Tools that run only with a person's word; kept with the run, whatever the settings say later."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """What the run was answered last, by interrupt id."""
    answered_after: int = 0
    """The number of the run's newest event when it was answered."""
    wishes: Sequence[PlanChange] = ()
    """What the user wanted changed in the plan while it was worked through."""
    stalls: int = 0
    """How often it was taken over from a dead process without having come further."""

    def to_json(self) -> str:
        """Return what is needed to run it again after a crash, as JSON."""
        kept = _Kept(
            messages_to_dict(self.messages),
            self.options,
            self.budget,
            list(self.approval),
            dict(self.answers),
            self.answered_after,
            [wish.to_dict() for wish in self.wishes],
            self.stalls,
        )
        return _KEPT.dump_json(kept).decode()

    def without_secrets(self, redactor: Redactor) -> str:
        """Return `to_json` with every text in it redacted."""
        kept = self.to_json()
        clean = json.dumps(redactor.value(json.loads(kept)), ensure_ascii=False)
        try:
            RunRequest.from_json(clean, thread_id="", owner="")
        except ValueError:
            return kept  # a secret that is also a word of the format, such as `human`
        return clean

    @classmethod
    def from_json(cls, text: str, *, thread_id: str, owner: str) -> "RunRequest":
        """Read what `to_json` wrote."""
        kept = _KEPT.validate_json(text)
        messages = messages_from_dict(kept.messages)
        return cls(
            messages,
            thread_id,
            kept.options,
            owner,
            budget=kept.budget,
            approval=kept.approval,
            answers=kept.answers,
            answered_after=kept.answered_after,
            wishes=[PlanChange.from_dict(wish) for wish in kept.wishes],
            stalls=kept.stalls,
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run that was begun, or goes on with an answer; its events follow number `after`."""

    run: RunRecord
    after: int


@dataclass(frozen=True, slots=True)
class _Kept:
    messages: list[dict[str, Any]]
    options: RunOptions
    budget: Budget
    # What came later has a default: rows of an older version are read, too.
    approval: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    answered_after: int = 0
    wishes: list[dict[str, Any]] = field(default_factory=list)
    stalls: int = 0


_KEPT = TypeAdapter(_Kept)
