"""The columns of the tables, and how records become rows and rows become records, in every database."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from maniple.store.protocols import RunChange
from maniple.store.records import ApiKey, EventRecord, InputRecord, KeyLimits, RunRecord, RunUsage, Thread
from maniple.text import fix_surrogates

RETENTION_SECONDS = 2 * 24 * 3600.0
"""How long the usage of a deleted run is stored: longer than the daily window of a quota."""
MICROSECOND = 1e-6

_THREAD_NAMES = tuple(field.name for field in fields(Thread))
THREAD_COLUMNS = ", ".join(_THREAD_NAMES)

USAGE_COLUMNS = tuple(field.name for field in fields(RunUsage))
_RUN_HEAD = ("run_id", "thread_id", "owner", "kind", "process", "status", "request")
_RUN_TIMES = ("created_at", "started_at", "ended_at")
_RUN_WAIT = ("waiting_for", "waiting_since", "waiting_until")
_RUN_TAIL = ("error_code", "error", "recoveries", "base_checkpoint", "stalls", "retries", *_RUN_WAIT)
NOT_WAITING = ", ".join(f"{name} = NULL" for name in _RUN_WAIT)
_RUN_NAMES = (*_RUN_HEAD, *_RUN_TIMES, *USAGE_COLUMNS, *_RUN_TAIL)
RUN_COLUMNS = ", ".join(_RUN_NAMES)
UNFINISHED = "status IN ('queued', 'running')"
SPENT_COLUMNS = ", ".join(("owner", "created_at", "ended_at", *USAGE_COLUMNS))
INPUT_COLUMNS = tuple(field.name for field in fields(InputRecord))
KEY_COLUMNS = "key_id, name, digest, created_at, revoked_at, limits"
CALL_COLUMNS = "run_id, tool_call_id, tool_name, arguments, result, begun_at, ended_at, attempts, started_at"
ARTIFACT_COLUMNS = "artifact_id, run_id, thread_id, owner, name, media_type, size, sha256, created_at"
SOURCE_COLUMNS = "number, url, title, kind, retrieved_at, sha256, published, author, publisher, inherited"

Row = tuple[Any, ...]
T = TypeVar("T")


def make_first(make: Callable[..., T], rows: Sequence[Row]) -> T | None:
    """Return `make` applied to the first row, None if there is no row."""
    return make(*rows[0]) if rows else None


def like_pattern(text: str) -> str:
    """Return the LIKE pattern that matches `text` anywhere."""
    return "%" + re.sub(r"[%_\\]", r"\\\g<0>", fix_surrogates(text)) + "%"


def thread_values(thread: Thread) -> Row:
    """Return the values of `THREAD_COLUMNS`."""
    return tuple(fix_surrogates(getattr(thread, name)) for name in _THREAD_NAMES)


def make_run(*row: Any) -> RunRecord:
    """Return the run of a row of `RUN_COLUMNS`."""
    named = dict(zip(_RUN_NAMES, row, strict=True))
    usage = RunUsage(**{name: named.pop(name) for name in USAGE_COLUMNS})
    return RunRecord(**named, usage=usage)


def run_values(run: RunRecord) -> Row:
    """Return the values of `RUN_COLUMNS`."""
    head = [fix_surrogates(getattr(run, name)) for name in (*_RUN_HEAD, *_RUN_TIMES)]
    return (*head, *astuple(run.usage), *(fix_surrogates(getattr(run, name)) for name in _RUN_TAIL))


def changed_columns(changes: RunChange) -> dict[str, Any]:
    """Return the columns of a change and their values. Raises `TypeError` for a field that never changes."""
    columns: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, RunUsage):
            columns |= dict(zip(USAGE_COLUMNS, astuple(value), strict=True))
        elif name in RunChange.__annotations__:
            columns[name] = fix_surrogates(value)
        else:
            raise TypeError(f"{name} of a run does not change")
    return columns


def make_key(*row: Any) -> ApiKey:
    """Return the key of a row of `KEY_COLUMNS`."""
    key_id, name, digest, created_at, revoked_at, limits = row
    return ApiKey(key_id, name, digest, created_at, revoked_at, KeyLimits(**json.loads(limits)))


def join_batch(run_id: str, records: Sequence[EventRecord]) -> str:
    """Return the events as text: one line `at @turn type json` each, without their numbers.

    The turn is `AGENT_ID#STEP_ID`, where a leading id of the run is left out; it is empty for an event of the
    run, and `#STEP_ID` may be absent. Raises `ValueError` for gaps in the numbers and data with line breaks.
    """
    first = records[0].number
    for number, record in enumerate(records, first):
        if record.number != number or "\n" in record.data or not _is_type(record.type):
            raise ValueError(f"event {record.number} ({record.type}) cannot be stored as number {number}")
    return fix_surrogates("\n".join(_format_line(run_id, record) for record in records))


def split_batch(run_id: str, first: int, text: str) -> list[EventRecord]:
    """Return the events of a text; the first one has the number `first`.

    Earlier versions wrote lines without a turn, and before that without a time: no type begins with a digit
    or with `@`.
    """
    # Not `splitlines`: JSON may contain other line separators than LF.
    return [_parse_line(run_id, number, line) for number, line in enumerate(text.split("\n"), first)]


def _format_line(run_id: str, record: EventRecord) -> str:
    line = f"{record.type} {record.data}"
    if record.agent_id is not None:
        step = "" if record.step_id is None else f"#{record.step_id}"
        line = f"@{_short_turn(run_id, record.agent_id)}{step} {line}"
    return line if record.at is None else f"{record.at:.3f} {line}"


def _parse_line(run_id: str, number: int, line: str) -> EventRecord:
    head, _, rest = line.partition(" ")
    at = None
    if head[:1].isdecimal():
        at = float(head)
        head, _, rest = rest.partition(" ")
    if not head.startswith("@"):
        return EventRecord(number, head, rest, at)
    short, _, step = head[1:].partition("#")
    kind, _, data = rest.partition(" ")
    return EventRecord(number, kind, data, at, _whole_turn(run_id, short), int(step) if step else None)


@lru_cache(maxsize=1_000)
def _short_turn(run_id: str, agent_id: str) -> str:
    """Return an agent's id without the run's; one that does not begin with it is given a slash."""
    short = agent_id.removeprefix(f"{run_id}_")
    is_foreign = bool(agent_id) and short == agent_id
    return f"/{quote(agent_id, safe='')}" if is_foreign else quote(short, safe="")


@lru_cache(maxsize=1_000)
def _whole_turn(run_id: str, short: str) -> str:
    if short.startswith("/"):
        return unquote(short[1:])
    return f"{run_id}_{unquote(short)}" if short else ""


def _is_type(word: str) -> bool:
    return " " not in word and not word.startswith("@") and not word[:1].isdecimal()
