"""What can be sent to a run (messages, plan changes, answers, retries, a cancellation), and the replies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args
from uuid import uuid4

from maniple.scope.budget import Budget
from maniple.types import RunStatus

ChangeAction = Literal["skip", "redo", "edit", "add", "move"]
RETRY = "retry"
"""Does again what failed and what was skipped. The engine makes this change itself, when a run is retried."""
PlanAction = ChangeAction | Literal["retry"]
ACTIONS: tuple[PlanAction, ...] = (*get_args(ChangeAction), RETRY)
SKIPPED = "the user skipped it"
"""The reason of a step that the user skipped."""
_TEXTS = ("title", "description", "agent_name")

Sender = Literal["user", "lead"]
MessageDisposition = Literal[
    "answered", "plan_changed", "passed_on", "replanned", "finishing", "next_run", "dropped", "refused"
]
"""What became of a message, or that a change of the plan was refused.

`replanned`: the planner writes the rest of the plan again. `finishing`: the report is written with the
present results. `next_run`: the message becomes a run of its own. `dropped`: the run was cancelled before a
decision; this is shown and not stored, and a retry decides.
"""
Disposition = MessageDisposition | Literal["taken"]
"""What became of an input; of a message or of any other."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user to the team at work."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A request to skip, repeat, edit, add or move one step. Fields that an edit omits stay unchanged.

    `after` is the step after which an added or moved step goes, 0 for the beginning. `needs` are the ids of
    the steps whose results an added step is given; `None` means all before it. The plan stores the
    `change_id` of each applied change, so that no change is applied twice.
    """

    action: PlanAction
    step_id: int = 0
    title: str | None = None
    description: str | None = None
    agent_name: str | None = None
    after: int | None = None
    needs: Sequence[int] | None = None
    change_id: str = field(default_factory=lambda: str(uuid4()))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PlanChange":
        """Parse a client's input.

        Raises `ValueError` that names the wrong field.
        """
        step_id, after = data.get("step_id", 0), data.get("after")
        action = data.get("action")
        if action not in ACTIONS:
            raise ValueError(f"action must be one of {', '.join(ACTIONS)}")
        if type(step_id) is not int:
            raise ValueError("step_id must be the number of a step of the plan")
        if after is not None and type(after) is not int:
            raise ValueError("after must be the number of a step of the plan, or 0")
        needs = _read_needs(data.get("needs"))
        texts = {name: data.get(name) for name in _TEXTS}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise ValueError(f"{name} must be text")
        change_id = str(data.get("change_id") or uuid4())
        return cls(action, step_id, **texts, after=after, needs=needs, change_id=change_id)


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """The answer to the question of a step that waits while other steps go on."""

    question: str
    """The key of the question, the same in each execution of the step."""
    interrupt_id: str
    answer: Any
    form: Any = None
    """The question as the user was shown it."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The answer with which a paused run continues."""

    interrupt_id: str
    """The id of the question, as clients know it."""
    answer: Any
    after: int
    """The number of the run's newest event when it was answered."""
    form: Any = None
    """The question as the user was shown it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Continues a run that has ended, and does again what it lacks."""

    after: int
    """The number of the run's newest event when it was retried."""
    budget: Budget
    """The budget of the whole run from now on."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ends the run."""

    undoes: bool = False
    """Whether the thread is to return to its state before the run."""


RunInput = Message | PlanChange | StepAnswer | Resume | Retry | Cancel


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of an input.

    `text` is what the user is told: the lead's words, or the reason. `steps` are the ids of the steps whose
    members get a message. If the plan is written again, they are the ids of the steps that were at work then
    and go on.
    """

    disposition: Disposition
    text: str = ""
    steps: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ReceivedInput:
    """An input with its sender and its reply, which is None while it waits."""

    input_id: str
    content: RunInput
    sender: Sender = "user"
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message to a run at work; `reply` is None until the lead has decided."""

    message_id: str
    text: str
    reply: Reply | None = None

    @property
    def is_passed_on(self) -> bool:
        """Whether members get the message."""
        return self.reply is not None and self.reply.disposition == "passed_on"

    @property
    def is_of_this_run(self) -> bool:
        """Whether it was decided and belongs to this run: it is neither the next run nor dropped."""
        return self.reply is not None and self.reply.disposition not in ("next_run", "dropped")

    @property
    def may_become_run(self) -> bool:
        """Whether it becomes a run of its own, unless the lead decides otherwise."""
        return self.reply is None or self.reply.disposition == "next_run"


def find_changes(received: Iterable[ReceivedInput]) -> tuple[PlanChange, ...]:
    """Return the changes of the plan among inputs, in order; a retry is one."""
    made = ((one.input_id, one.content) for one in received)
    return tuple(
        PlanChange(RETRY, change_id=input_id) if isinstance(content, Retry) else content
        for input_id, content in made
        if isinstance(content, Retry | PlanChange)
    )


def _read_needs(value: Any) -> Sequence[int] | None:
    numbers = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    if value is not None and any(type(number) is not int for number in numbers):
        raise ValueError("needs must be a list of numbers of steps of the plan")
    return None if value is None else tuple(cast("list[int]", numbers))


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run of the thread that has ended, as its log has it."""

    run_id: str
    request_id: str
    """The id of the message with its request."""
    request: str
    status: RunStatus
    error: str = ""
    """"" for none."""
    received: Sequence[ReceivedInput] = ()
    """What was sent to it."""
    members: Sequence[str] = ()
    """The agents to which its steps could be assigned."""
    work: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    """The newest texts and calls of the steps that it did not finish, by the ids of the steps."""

    @property
    def changes(self) -> Sequence[PlanChange]:
        """The changes of its plan, oldest first."""
        return find_changes(self.received)

    @property
    def is_undone(self) -> bool:
        """Whether the thread was to return to its state before the run."""
        return any(isinstance(one.content, Cancel) and one.content.undoes for one in self.received)
