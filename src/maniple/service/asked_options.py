"""What a run was asked with, for clients that show it while the run works."""

from typing import Any, Literal

from pydantic import BaseModel

from maniple.runs import RunRequest
from maniple.store import RunRecord
from maniple.types import Depth, Effort, ReportStyle

_OF_REQUEST = ("model", "budget")
"""The fields that are no options of the graph."""


class BudgetView(BaseModel):
    """The limits of a run, as far as it has any."""

    tokens: int | None = None
    seconds: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    cost: float | None = None


class AskedView(BaseModel):
    """What a run was asked with; an answer or a message to it changes none of this.

    "" is what was left to the service, and so is an empty `team_members`: all. `budget` has the limits of the
    service, too.
    """

    model: str
    effort: Effort | Literal[""]
    budget: BudgetView
    deep_thinking_mode: bool
    search_before_planning: bool
    auto_accepted_plan: bool
    team_members: list[str]
    agent: str
    depth: Depth | Literal[""]
    locale: str
    report_style: ReportStyle | Literal[""]

    @classmethod
    def of(cls, run: RunRecord) -> "AskedView | None":
        """Return the view of a stored run; None if its request cannot be read."""
        try:
            request = RunRequest.of(run)
        except ValueError:
            return None
        options: dict[str, Any] = {
            name: getattr(request.options, name) for name in cls.model_fields if name not in _OF_REQUEST
        }
        budget = BudgetView.model_validate(request.budget, from_attributes=True)
        return cls(model=request.model, budget=budget, **options)
