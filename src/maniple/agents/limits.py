"""How far an agent may go in one step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The limits of one step; at each the agent or its team is told, and no run ends by them."""

    model_calls: int = 25
    tool_calls: int = 100
    tool_seconds: float = 600
    """Of one call of a tool that does not say its own `timeout_seconds`."""
