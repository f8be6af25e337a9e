"""A ledger of tool calls in a dict, shared by the graphs, models and tools of a test."""

from dataclasses import dataclass, field, replace

from maniple.store.records import ToolCallRecord


@dataclass
class MemoryLedger:
    """Implements `store.protocols.Ledger`; all its times are 0."""

    rows: dict[tuple[str, str], ToolCallRecord] = field(default_factory=dict)

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        key = (run_id, tool_call_id)
        known = self.rows.get(key)
        new = ToolCallRecord(run_id, tool_call_id, tool_name, arguments, None, 0.0)
        self.rows[key] = new if known is None else replace(known, attempts=known.attempts + 1)
        return self.rows[key]

    async def start(self, run_id: str, tool_call_id: str) -> None:
        row = self.rows[run_id, tool_call_id]
        if row.started_at is None:
            self.rows[run_id, tool_call_id] = replace(row, started_at=0.0)

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        row = self.rows[run_id, tool_call_id]
        if row.result is None:
            self.rows[run_id, tool_call_id] = replace(row, result=result, ended_at=0.0)

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        return [row for (run, _), row in self.rows.items() if run == run_id]

    def of_tool(self, name: str) -> list[ToolCallRecord]:
        return [row for row in self.rows.values() if row.tool_name == name]
