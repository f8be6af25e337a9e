"""A ledger without secrets."""

from maniple.redaction import Redactor
from maniple.store.protocols import Ledger
from maniple.store.records import ToolCallRecord


class RedactedLedger:
    """Masks secrets in what `ledger` is given; see `protocols.Ledger`.

    Ids, which endpoints choose, are masked as `RedactingSerializer` does it: a call that is read back from a
    checkpoint finds its record.
    """

    def __init__(self, ledger: Ledger, redactor: Redactor) -> None:
        self._ledger = ledger
        self._redactor = redactor

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        masked = self._redactor.text(arguments)
        return await self._ledger.begin(run_id, self._id(tool_call_id), tool_name, masked)

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        await self._ledger.end(run_id, self._id(tool_call_id), self._redactor.text(result))

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        return await self._ledger.of_run(run_id)

    def _id(self, tool_call_id: str) -> str:
        masked = self._redactor.same_length(tool_call_id.encode("utf-8", "surrogatepass"))
        return masked.decode("utf-8", "surrogatepass")
