"""Tools with arguments that must be masked in events and traces."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

Arguments = Mapping[str, Any]


class RedactedArgsTool(StructuredTool):
    """A tool whose callbacks, and therefore events and traces, get only redacted arguments."""

    redact: Callable[[Arguments], dict[str, Any]] = Field(exclude=True)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        # The only place where LangChain separates the arguments for callbacks from those for the tool.
        return self.redact(super()._filter_injected_args(tool_input))


def redact_arguments(tool: BaseTool | None, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of a call for events and records."""
    return tool.redact(arguments) if isinstance(tool, RedactedArgsTool) else dict(arguments)
