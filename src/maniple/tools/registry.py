"""Tools whose arguments are not for everybody's eyes."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

Arguments = Mapping[str, Any]


class RedactedArgsTool(StructuredTool):
    """A tool that says what of its arguments may be told: callbacks, so events and traces, get only that."""

    told: Callable[[Arguments], dict[str, Any]] = Field(exclude=True)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        # LangChain's one place where what callbacks are given parts from what the tool gets.
        return self.told(super()._filter_injected_args(tool_input))


def redact_arguments(tool: BaseTool | None, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of a call as they may be told and recorded."""
    return tool.told(arguments) if isinstance(tool, RedactedArgsTool) else dict(arguments)
