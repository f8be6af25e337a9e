"""Questions to the user: a step asks while other steps go on, or the run pauses until it is answered."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.types import interrupt

from maniple.langgraph_internals import task_of
from maniple.tools.run_context import SCOPE_KEY, configurable


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """The answer to a question."""

    value: Any
    is_live: bool = False
    """Whether it was given while the run worked. LangGraph has no record of such an answer."""


class Asker(Protocol):
    """Asks the user for one step, while other steps go on."""

    async def ask(self, payload: Mapping[str, Any], key: str) -> UserAnswer:
        """Return the answer; raises `GraphInterrupt` once no other step runs."""
        ...


async def ask_user(payload: Mapping[str, Any], key: str = "") -> UserAnswer:
    """Ask the user and return the answer; tools call this instead of LangGraph's `interrupt`.

    While other steps go on, it waits for the answer. Otherwise it raises `GraphInterrupt`: the run pauses,
    and calls it again once it is answered. `key` names the question within its run, the same in each
    execution; by default the task and the payload do.
    """
    asker: Asker | None = getattr(configurable().get(SCOPE_KEY), "asker", None)
    if asker is None:
        return UserAnswer(interrupt(payload))
    return await asker.ask(payload, key or _make_key(payload))


def _make_key(payload: Mapping[str, Any]) -> str:
    text = json.dumps(payload, sort_keys=True, default=str)
    return f"{task_of(configurable())}?{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def interrupt_of(question_id: str) -> str:
    """Return the id of LangGraph's interrupt in the id of a question (see `Inbox.make_id`)."""
    return question_id.partition("-")[0]
