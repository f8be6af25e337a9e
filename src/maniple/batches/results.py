"""The results of a batch: one line of JSON, or one row, for each item."""

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from maniple.batches.tasks import MAX_ITEMS
from maniple.report_files import read_answer
from maniple.store import Batch, BatchItem, Store

CSV_COLUMNS = ("number", "state", "input", "answer", "reason", "run_id", "attempt", "tokens", "cost")
_PAGE_ITEMS = 100
"""An item may have 100,000 characters."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


async def read_results(
    store: Store, batch: Batch, after: int = 0, limit: int = MAX_ITEMS
) -> AsyncIterator[dict[str, Any]]:
    """Yield the results of the items after number `after`, at most `limit`, in their order.

    `answer` is empty unless it was given. One page of items is in memory at a time.
    """
    left = limit
    while items := await store.batches.list_items(batch.batch_id, after=after, limit=min(_PAGE_ITEMS, left)):
        for item in items:
            yield await _read_result(store, item)
        after, left = items[-1].number, left - len(items)


async def _read_result(store: Store, item: BatchItem) -> dict[str, Any]:
    answer = ""
    if item.state in ("accepted", "rejected") and (run := await store.runs.get(item.run_id)) is not None:
        answer = await read_answer(store, run) or ""
    values: dict[str, Any] = {name: getattr(item, name) for name in CSV_COLUMNS if name != "answer"}
    return {**values, "answer": answer}


def write_json_line(result: Mapping[str, Any]) -> str:
    """Return a result as one line of JSON."""
    return json.dumps(result, ensure_ascii=False) + "\n"


def write_csv(result: Mapping[str, Any] | None) -> str:
    """Return the row of a result, or that of the column names for None (RFC 4180).

    A text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    out = io.StringIO()
    csv.writer(out).writerow(CSV_COLUMNS if result is None else [_cell(result[one]) for one in CSV_COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
