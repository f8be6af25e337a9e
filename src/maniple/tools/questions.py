"""Questions to the user: a step asks while other steps go on, or the run pauses until it is answered."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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
    """Return the id of LangGraph's interrupt in the id of a question (see `RunQuestions.make_id`)."""
    return question_id.partition("-")[0]


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question that is shown to the user while the run works."""

    key: str
    interrupt_id: str
    """The id by which it is answered, the same if the run pauses with the question."""
    answered: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Ends when the answer is stored."""
    is_taken: bool = False
    """Whether an answer is being stored."""
    is_parked: bool = False
    """Whether its step has stopped to wait. It takes the answer when the graph is executed again."""


class RunQuestions:
    """The questions of a run at work, and the answers that it was given while it worked.

    `answers` are those that are stored, by the keys of their questions.
    """

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self._answers = dict(answers or {})
        self._open: list[OpenQuestion] = []
        self._answered: Counter[str] = Counter()
        self._is_closed = False
        self._being_stored = 0
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def is_closed(self) -> bool:
        """Whether the run has come to its end or its pause, so that it takes no answers meanwhile."""
        return self._is_closed

    @property
    def open(self) -> Sequence[OpenQuestion]:
        """The questions that can be answered, oldest first."""
        return [] if self._is_closed else [one for one in self._open if not one.is_taken]

    def answer_to(self, key: str) -> UserAnswer | None:
        """Return the stored answer to a question; None if there is none."""
        return UserAnswer(self._answers[key], is_live=True) if key in self._answers else None

    def count_answer(self) -> None:
        """Count an answer that LangGraph has no record of, in the task that is executed."""
        self._answered[task_of(configurable())] += 1

    def make_id(self, interrupt_id: str) -> str:
        """Return the id of the next question of the task, whose interrupt has this id.

        LangGraph numbers the questions of a task by the answers that it has given to it. Answers that were
        given while the run worked are not among them: then it is `ID-1`, `ID-2` …, so that no answer reaches
        a question that its author was not shown.
        """
        answered = self._answered[task_of(configurable())]
        return f"{interrupt_id}-{answered}" if answered else interrupt_id

    def show(self, question: OpenQuestion) -> None:
        """Let a question be answered from now on. It replaces an earlier one with its key."""
        self.withdraw(question.key)
        self._open.append(question)

    def withdraw(self, key: str) -> None:
        """Let a question not be answered any more."""
        self._open = [one for one in self._open if one.key != key]

    @asynccontextmanager
    async def taking(self, question: OpenQuestion, answer: Any) -> AsyncGenerator[None]:
        """Take an answer, which the body stores. If it raises, the question stays open.

        Begins without `await`, so that no question is answered twice.
        """
        question.is_taken = True
        self._being_stored += 1
        self._settled.clear()
        try:
            yield
            self._answers[question.key] = answer
            question.answered.set_result(None)
        finally:
            question.is_taken = question.answered.done()
            self._being_stored -= 1
            if not self._being_stored:
                self._settled.set()

    async def close(self) -> bool:
        """Take no more answers, unless a parked question was answered; return whether it is so.

        Then those that are parked take their answers when the graph is executed again.
        """
        while self._being_stored:
            await self._settled.wait()
        self._is_closed = not any(one.is_parked and one.answered.done() for one in self._open)
        self._open = []
        return self._is_closed
