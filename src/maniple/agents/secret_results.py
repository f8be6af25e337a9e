"""Middleware: no secret of the settings reaches a model, or the record, by what a tool returns."""

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from maniple.agents.wrapping import ChangedResults
from maniple.redaction import Redactor


class SecretResults(ChangedResults):
    """Masks secrets in results, such as a key that a server repeats in its error."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        masked = self._redactor.value(result.content)
        return result if masked is result.content else result.model_copy(update={"content": masked})
