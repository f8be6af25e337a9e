"""What a run may cost, where it can be told."""

from maniple.agents.budget import Budget
from maniple.config import ModelsSettings
from maniple.errors import ManipleError


class PricesUnknown(ManipleError):
    """The cost of a run is to be limited, and some model has no price."""

    code = "prices_unknown"


def accountable(budget: Budget, models: ModelsSettings) -> Budget:
    """Return the budget; raises `PricesUnknown` if it has a limit that would never be reached."""
    if budget.cost is not None and models.unpriced:
        raise PricesUnknown(
            f"The cost cannot be limited: no price is set here for {', '.join(models.unpriced)}. "
            "Limit tokens instead, or have price_input and price_output set."
        )
    return budget
