"""Middleware: a tool's failure is a message to the model, never the end of the run."""

from langchain.agents.middleware import ToolErrorMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from maniple.errors import BrowserError, ManipleError, ToolFailure, failure_words


def tool_failures() -> ToolErrorMiddleware:
    """Return the middleware; interrupts and cancellation pass it untouched."""
    return ToolErrorMiddleware(_words)


def failed(tool_name: str, error: Exception) -> str:
    """Return what the model is told of a tool that failed; the browser's words are those of its contract."""
    if isinstance(error, BrowserError):
        return failure_words(error)
    return f"{tool_name} failed: {failure_words(error)}"


def _words(error: Exception, request: ToolCallRequest) -> str | None:
    if isinstance(error, ManipleError) and not isinstance(error, ToolFailure):
        return None  # an endpoint, the store or the budget is the matter, not the tool: the run must say so
    return failed(request.tool_call["name"], error)
