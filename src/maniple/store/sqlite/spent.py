"""What owners have used: by runs that are there, and by runs that were deleted."""

import sqlite3
import time
from dataclasses import fields

from maniple.store.records import Usage

RETENTION_SECONDS = 2 * 24 * 3600.0
"""How long the usage of a deleted run is stored: longer than the daily window of a quota."""
USAGE = tuple(field.name for field in fields(Usage))
"""The columns of a usage, in the order of its fields."""
_COLUMNS = ", ".join(("owner", "created_at", "ended_at", *USAGE))
# Each side names the owner, so that each is found by an index of its own.
_WITHIN = " OR ".join(f"(owner = ?1 AND {at} > ?2 AND {at} <= ?3)" for at in ("created_at", "ended_at"))
# A run that waits has no end yet; its thread was touched when it began to wait.
_TOUCHED = "(SELECT updated_at FROM threads WHERE threads.thread_id = runs.thread_id)"
_WAITS = f"(owner = ?1 AND status = 'interrupted' AND {_TOUCHED} > ?2 AND {_TOUCHED} <= ?3)"


def used(connection: sqlite3.Connection, owner: str, since: float, until: float) -> Usage:
    """Add up what the runs of an owner used (see `protocols.RunTable.used`)."""
    both = " UNION ALL ".join(
        f"SELECT {', '.join(USAGE)} FROM {table} WHERE {where}"
        for table, where in (("runs", f"{_WITHIN} OR {_WAITS}"), ("spent", _WITHIN))
    )
    sums = ", ".join(f"total({name})" for name in USAGE)
    row = connection.execute(f"SELECT {sums} FROM ({both})", (owner, since, until)).fetchone()
    calls, tools, input_tokens, output_tokens, seconds, cost = row
    return Usage(int(calls), int(tools), int(input_tokens), int(output_tokens), seconds, cost)


def keep_used(connection: sqlite3.Connection, thread_id: str) -> None:
    """Keep what the runs of a thread that is about to be deleted have used; forget what no window reaches."""
    ended = f"CASE status WHEN 'interrupted' THEN {_TOUCHED} ELSE ended_at END"
    selected = f"SELECT owner, created_at, {ended}, {', '.join(USAGE)} FROM runs WHERE thread_id = ?"
    connection.execute(f"INSERT INTO spent ({_COLUMNS}) {selected}", (thread_id,))
    now = time.time()
    connection.execute(
        "DELETE FROM spent WHERE coalesce(ended_at, created_at) NOT BETWEEN ? AND ?",
        (now - RETENTION_SECONDS, now + RETENTION_SECONDS),
    )
