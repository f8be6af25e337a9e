"""A ledger without secrets."""

from maniple.redaction import Redactor
from maniple.store.protocols import Ledger
from maniple.store.records import ToolCallRecord


class RedactedLedger:
    """Masks secrets in what `ledger` is given; see `protocols.Ledger`."""

    def __init__(self, ledger: Ledger, redactor: Redactor) -> None:
        self._ledger = ledger
        self._redactor = redactor

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        return await self._ledger.begin(run_id, tool_call_id, tool_name, self._redactor.text(arguments))

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        await self._ledger.end(run_id, tool_call_id, self._redactor.text(result))

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        return await self._ledger.of_run(run_id)
