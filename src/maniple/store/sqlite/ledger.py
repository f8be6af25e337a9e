"""The table of tool calls."""

import time

from maniple.store.records import ToolCallRecord
from maniple.store.sqlite.connection import Database
from maniple.text import whole

_COLUMNS = "run_id, tool_call_id, tool_name, arguments, result, begun_at, ended_at, attempts"


class SqliteLedger:
    """See `protocols.Ledger`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        sql = (
            f"INSERT INTO tool_calls ({_COLUMNS}) VALUES (?, ?, ?, ?, NULL, ?, NULL, 1) "
            "ON CONFLICT (run_id, tool_call_id) DO UPDATE SET attempts = attempts + 1 "
            f"RETURNING {_COLUMNS}"
        )
        values = (run_id, tool_call_id, tool_name, whole(arguments), time.time())
        return ToolCallRecord(*(await self._database.execute(sql, values))[0])

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        sql = (
            "UPDATE tool_calls SET result = ?, ended_at = ? "
            "WHERE run_id = ? AND tool_call_id = ? AND result IS NULL"
        )
        values = (whole(result), time.time(), run_id, tool_call_id)
        await self._database.execute(sql, values)

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        sql = f"SELECT {_COLUMNS} FROM tool_calls WHERE run_id = ? ORDER BY position"
        rows = await self._database.read(lambda c: c.execute(sql, (run_id,)).fetchall())
        return [ToolCallRecord(*row) for row in rows]
