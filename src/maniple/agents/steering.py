"""Messages that the user sends to a running run, the lead's decision about each, and their recipients."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Disposition = Literal[
    "answered", "plan_changed", "passed_on", "replanned", "finishing", "next_run", "dropped"
]
"""The outcome of a message.

`replanned`: the planner writes the rest of the plan again. `finishing`: the report is written with the
present results. `next_run`: the message becomes a run of its own. `dropped`: the run was cancelled before a
decision.
"""


@dataclass(frozen=True, slots=True)
class MessageDecision:
    """The lead's decision about a message.

    `reply` is its text for the user. `steps` are the ids of the steps whose members get the message. If the
    plan is written again, they are the ids of the steps that were at work then and go on.
    """

    disposition: Disposition
    reply: str = ""
    steps: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message to a running run; `decision` is None until the lead has decided."""

    message_id: str
    text: str
    decision: MessageDecision | None = None

    @property
    def is_passed_on(self) -> bool:
        """Whether members get the message."""
        return self.decision is not None and self.decision.disposition == "passed_on"

    @property
    def is_of_this_run(self) -> bool:
        """Whether it was decided and belongs to this run: it is neither the next run nor dropped."""
        return self.decision is not None and self.decision.disposition not in ("next_run", "dropped")


class RunMessages:
    """The messages to one run, in order, and those that wait for the lead.

    The lead is asked only while the run executes a plan, between `open` and `close`. `messages` are those
    that were stored before a restart.
    """

    def __init__(self, messages: Iterable[UserMessage] = ()) -> None:
        self._messages = {one.message_id: one for one in messages}
        self._begun_with: dict[int, set[str]] = {}
        self._taken: dict[int, set[str]] = {}
        self._is_open = False
        self._changed = asyncio.Event()

    @property
    def decided(self) -> list[UserMessage]:
        """The messages of this run that the lead has decided, oldest first."""
        return [one for one in self._messages.values() if one.is_of_this_run]

    @property
    def undecided(self) -> list[UserMessage]:
        """The messages that wait for the lead, oldest first."""
        return [one for one in self._messages.values() if one.decision is None]

    def put(self, message: UserMessage) -> None:
        """Add a message."""
        self._messages[message.message_id] = message
        self._wake()

    def decide(self, message_id: str, decision: MessageDecision) -> None:
        """Set the decision about a message."""
        self._messages[message_id] = replace(self._messages[message_id], decision=decision)
        self._wake()

    def open(self) -> None:
        """Allow the lead to be asked from now on."""
        if not self._is_open:
            self._is_open = True
            self._wake()

    def close(self) -> bool:
        """Stop asking the lead, unless a message waits; return whether it is stopped now."""
        self._is_open = bool(self.undecided)
        return not self._is_open

    async def next(self) -> UserMessage:
        """Wait for a message that the lead has to decide; return the oldest."""
        while not (self._is_open and self.undecided):
            await self._changed.wait()
        return self.undecided[0]

    async def settled(self) -> None:
        """Wait until no message waits for the lead."""
        while self.undecided:
            await self._changed.wait()

    @property
    def begun_steps(self) -> Collection[int]:
        """The ids of the steps that have begun in this process."""
        return self._begun_with.keys()

    def begin_step(self, step_id: int) -> list[str]:
        """Return the texts of all messages passed on so far; a starting step gets all of them."""
        passed_on = [one for one in self._messages.values() if one.is_passed_on]
        self._begun_with[step_id] = {one.message_id for one in passed_on}
        return [one.text for one in passed_on]

    def has_new(self, step_id: int) -> bool:
        """Return whether a message for a step has not been returned by `take_new` yet."""
        return bool(self._new(step_id))

    def take_new(self, step_id: int) -> list[UserMessage]:
        """Return the messages for a step, each once.

        This includes the messages from its start, because after a restart an agent may have started without
        them.
        """
        new = self._new(step_id)
        self._taken.setdefault(step_id, set()).update(one.message_id for one in new)
        return new

    def _new(self, step_id: int) -> list[UserMessage]:
        begun_with, taken = self._begun_with.get(step_id, set()), self._taken.get(step_id, set())
        return [
            one
            for one in self._messages.values()
            if one.is_passed_on
            and one.decision is not None
            and (step_id in one.decision.steps or one.message_id in begun_with)
            and one.message_id not in taken
        ]

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
