"""Middleware: a tool's failure is a message to the model, never the end of the run."""

from langchain.agents.middleware import ToolErrorMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from maniple.errors import ModelError, failure_words


def tool_failures() -> ToolErrorMiddleware:
    """Return the middleware; interrupts and cancellation pass it untouched."""
    return ToolErrorMiddleware(_words)


def _words(error: Exception, request: ToolCallRequest) -> str | None:
    if isinstance(error, ModelError):
        return None  # the endpoint is the matter, not the tool: the run must say so
    return f"{request.tool_call['name']} failed: {failure_words(error)}"
