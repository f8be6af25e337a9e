"""Changes that the user requests to the plan of a running run."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast, get_args
from uuid import uuid4

ChangeAction = Literal["skip", "redo", "edit", "add", "move"]
RETRY = "retry"
"""Does again what failed and what was skipped. The engine makes this change itself, when a run is retried."""
PlanAction = ChangeAction | Literal["retry"]
ACTIONS: tuple[PlanAction, ...] = (*get_args(ChangeAction), RETRY)
SKIPPED = "the user skipped it"
"""The reason of a step that the user skipped."""
_TEXTS = ("title", "description", "agent_name")


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

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data, which is stored until the run has ended."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PlanChange":
        """Parse the result of `to_dict` or a client's input.

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


def _read_needs(value: Any) -> Sequence[int] | None:
    numbers = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    if value is not None and any(type(number) is not int for number in numbers):
        raise ValueError("needs must be a list of numbers of steps of the plan")
    return None if value is None else tuple(cast("list[int]", numbers))


class PendingPlanEdits:
    """The requested changes that a running run has not applied yet.

    Changes are accepted only while the run executes its plan, because nothing applies them before or after
    that. `waiting` are changes that were accepted before a restart.
    """

    def __init__(self, waiting: Iterable[PlanChange] = ()) -> None:
        self._waiting = list(waiting)
        self._is_open = False
        self._next: asyncio.Future[None] | None = None
        self.live_plan: Callable[[], Any] | None = None
        """Returns the plan (a `PlanProgress`) with the changes that wait, while steps run concurrently."""

    @property
    def is_open(self) -> bool:
        """Whether the run accepts changes."""
        return self._is_open

    @property
    def waiting(self) -> Sequence[PlanChange]:
        """The changes that wait, oldest first; they stay until they are taken."""
        return tuple(self._waiting)

    def next_change(self) -> asyncio.Future[None]:
        """Return a future that ends when the next change is requested."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    def has_new(self, applied: Iterable[str]) -> bool:
        """Return whether a change waits whose id is not among `applied`."""
        return not {change.change_id for change in self._waiting} <= set(applied)

    def open(self) -> None:
        """Accept changes from now on."""
        self._is_open = True

    def put(self, change: PlanChange) -> None:
        """Add a change; raises `ValueError` if the run does not accept changes now."""
        if not self._is_open:
            raise ValueError("The run is not executing a plan now, so its plan cannot be changed.")
        self._waiting.append(change)
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def take(self) -> list[PlanChange]:
        """Remove and return the waiting changes, oldest first."""
        self.live_plan = None
        taken, self._waiting = self._waiting, []
        return taken

    def close(self) -> bool:
        """Stop accepting changes, unless one is waiting; return whether changes are refused now."""
        self._is_open = bool(self._waiting)
        return not self._is_open
