"""What the user wants changed in the plan of a run while it is worked through."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast, get_args
from uuid import uuid4

ChangeAction = Literal["skip", "redo", "edit", "add", "move"]
ACTIONS: tuple[ChangeAction, ...] = get_args(ChangeAction)
_TEXTS = ("title", "description", "agent_name")


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One step to be skipped, done again, edited, added or moved; what an edit leaves out stays as it is.

    `after` is the step behind which one that is added or moved goes, 0 for the beginning. The plan remembers
    the `change_id` of each change that is in it, so that none is applied twice.
    """

    action: ChangeAction
    step_id: int = 0
    title: str | None = None
    description: str | None = None
    agent_name: str | None = None
    after: int | None = None
    change_id: str = field(default_factory=lambda: str(uuid4()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, to be kept as JSON until the run has ended."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PlanChange":
        """Read what `to_dict` wrote, or a client's own words; raises `ValueError` with what is wrong."""
        step_id, after = data.get("step_id", 0), data.get("after")
        action = data.get("action")
        if action not in ACTIONS:
            raise ValueError(f"action must be one of {', '.join(ACTIONS)}")
        if type(step_id) is not int:
            raise ValueError("step_id must be the number of a step of the plan")
        if after is not None and type(after) is not int:
            raise ValueError("after must be the number of a step of the plan, or 0")
        texts = {name: data.get(name) for name in _TEXTS}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise ValueError(f"{name} must be text")
        change_id = str(data.get("change_id") or uuid4())
        return cls(cast("ChangeAction", action), step_id, **texts, after=after, change_id=change_id)


class PendingPlanEdits:
    """The changes that one running run has not taken up yet.

    It takes them while its plan is worked through, from its first step to its end; before and after that
    nobody would fulfil them, so they are refused. `waiting` are those that were accepted before a restart.
    """

    def __init__(self, waiting: Iterable[PlanChange] = ()) -> None:
        self._waiting = list(waiting)
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether the run still takes changes."""
        return self._is_open

    def open(self) -> None:
        """Take changes from here on."""
        self._is_open = True

    def put(self, change: PlanChange) -> None:
        """Hand a change to the run; raises `ValueError` when it takes none."""
        if not self._is_open:
            raise ValueError("The run is not working through a plan now, so nothing of it can be changed.")
        self._waiting.append(change)

    def take(self) -> list[PlanChange]:
        """Return what waits, oldest first; it waits no longer."""
        taken, self._waiting = self._waiting, []
        return taken

    def close(self) -> bool:
        """Take no more changes, unless one waits; return whether that is so."""
        self._is_open = bool(self._waiting)
        return not self._is_open
