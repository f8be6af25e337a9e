"""A ledger without secrets."""

import json

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
        return await self._ledger.begin(run_id, self._id(tool_call_id), tool_name, self._masked(arguments))

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        await self._ledger.end(run_id, self._id(tool_call_id), self._masked(result))

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        return await self._ledger.of_run(run_id)

    def _masked(self, text: str) -> str:
        """Mask what the JSON `text` says and not its form: a secret may be a number or a word of the form."""
        try:
            told = json.loads(text)
        except ValueError:
            return self._redactor.text(text)
        if isinstance(told, dict):
            clean = {key: self._redactor.value(value) for key, value in told.items()}
        else:
            clean = self._redactor.value(told)
        return text if clean == told else json.dumps(clean, ensure_ascii=False)

    def _id(self, tool_call_id: str) -> str:
        masked = self._redactor.same_length(tool_call_id.encode("utf-8", "surrogatepass"))
        return masked.decode("utf-8", "surrogatepass")
