"""Questions to the user: a step asks while other steps go on, or the run pauses until it is answered."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langgraph.types import interrupt

from maniple.langgraph_internals import task_of
from maniple.scope.answers import UserAnswer
from maniple.scope.context import configurable
from maniple.scope.run_scope import run_scope
from maniple.types import is_mapping

EDIT_KEY = "edited_by_user"
"""Marks a tool message that the user has a part in; holds the text that says so to the model.

The call ran with the user's arguments, or the user says something beside its result.
"""
POSITION_KEY = "position"
"""The key in a payload of the place of a call among those of the model's answer; without it, 0."""


async def ask_user(payload: Mapping[str, Any], key: str = "") -> UserAnswer:
    """Ask the user and return the answer; tools call this instead of LangGraph's `interrupt`.

    While other steps go on, it waits for the answer. Otherwise it raises `GraphInterrupt`: the run pauses,
    and calls it again once it is answered. `key` names the question within its run, the same in each
    execution; by default the task and the payload do.
    """
    asker = run_scope().asker
    if asker is None:
        return UserAnswer(interrupt(payload))
    return await asker.ask(payload, key or _make_key(payload))


def _make_key(payload: Mapping[str, Any]) -> str:
    text = json.dumps(payload, sort_keys=True, default=str)
    return f"{task_of(configurable())}?{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def in_order(pauses: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the questions of a pause, by their interrupts' ids, in the order of their calls.

    LangGraph returns them in any order.
    """
    return sorted(pauses.items(), key=lambda pause: _position_of(pause[1]))


def _position_of(payload: Any) -> int:
    position = payload.get(POSITION_KEY) if is_mapping(payload) else None
    return position if isinstance(position, int) else 0


def interrupt_of(question_id: str) -> str:
    """Return the id of LangGraph's interrupt in the id of a question (see `Inbox.make_id`)."""
    return question_id.partition("-")[0]
