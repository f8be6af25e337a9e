"""The calls of a step that succeeded: the evidence for what its answer says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.agents.tool_observations import PROGRAM_ARGUMENTS


@dataclass(frozen=True, slots=True)
class DoneCall:
    """A call that succeeded: what ran, and what it returned."""

    name: str
    arguments: Mapping[str, Any]
    """Those that it ran with, which the user may have changed."""
    result: str
    written: Mapping[str, Any]
    """The arguments as the model wrote them."""

    def programs(self) -> list[str]:
        """Return the arguments that contain a program or a command."""
        return [value for key, value in self.arguments.items() if key in PROGRAM_ARGUMENTS and value]
