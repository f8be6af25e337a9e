"""How long calls of tools took and whether they succeeded: the ledger knows, the events do not."""

import json
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from maniple.run_page.lenient import mapping, number, parsed
from maniple.run_page.story import Step
from maniple.store import ToolCallRecord


def enter_times(calls: Iterable[tuple[Step, Any]], rows: Iterable[ToolCallRecord]) -> None:
    """Enter into each call of a tool what the ledger says of it.

    The two know a call by different ids: a row belongs to the first call of its tool with its arguments, and
    where the arguments were changed by the user, to the first that is left.
    """
    known: dict[tuple[str, str], deque[ToolCallRecord]] = defaultdict(deque)
    for row in rows:
        if "?" not in row.tool_call_id:  # a question to the user about a call
            known[row.tool_name, _canonical(parsed(row.arguments))].append(row)
    without = []
    for step, given in calls:
        found = known.get((step.action, _canonical(given)))
        if found:
            _enter(step, found.popleft())
        else:
            without.append(step)
    left: dict[str, deque[ToolCallRecord]] = defaultdict(deque)
    for (name, _), more in known.items():
        left[name] += more
    for step in without:
        if left[step.action]:
            _enter(step, left[step.action].popleft())


def _canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def _enter(step: Step, row: ToolCallRecord) -> None:
    step.started = number(row.begun_at)
    if row.ended_at is not None:
        step.seconds = number(max(row.ended_at - row.begun_at, 0.0))
    status = mapping(parsed(row.result)).get("status")
    step.success = {"success": True, "error": False}.get(status) if isinstance(status, str) else None
