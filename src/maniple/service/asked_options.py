"""What a run was asked with, for clients that show it while the run works."""

from typing import Literal

from pydantic import BaseModel

from maniple.runs import RunRequest
from maniple.store import RunRecord
from maniple.types import Effort


class BudgetView(BaseModel):
    """The limits of a run, as far as it has any."""

    tokens: int | None = None
    seconds: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    cost: float | None = None


class AskedView(BaseModel):
    """What a run was asked with; an answer or a message to it changes none of this.

    `model` and `effort` are "" if they were left to the service. `budget` has the limits of the service, too.
    """

    model: str
    effort: Effort | Literal[""]
    budget: BudgetView

    @classmethod
    def of(cls, run: RunRecord) -> "AskedView | None":
        """Return the view of a stored run; None if its request cannot be read."""
        try:
            request = RunRequest.of(run)
        except ValueError:
            return None
        budget = BudgetView.model_validate(request.budget, from_attributes=True)
        return cls(model=request.model, effort=request.options.effort, budget=budget)
