"""Schedules and their ticks, as every database stores them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal, Protocol

from maniple.store.records import make_thread_name
from maniple.store.statements import Statements, column_names, column_value, conditions, insert_sql

Overlap = Literal["skip", "queue", "cancel"]
"""What a tick does while the run of an earlier one has not ended."""
TickState = Literal["pending", "started", "skipped", "missed", "failed"]
_PENDING_PAGE = 500


@dataclass(frozen=True, slots=True)
class Schedule:
    """When runs are started: by a cron expression in a time zone, or once (`cron` is "").

    `request` (JSON) is what each run starts from. Without a `thread_id`, each run has a new thread.
    `catch_up`: after a downtime, one run is started for all ticks that were missed; otherwise none.
    """

    schedule_id: str
    owner: str
    name: str
    cron: str
    zone: str
    overlap: Overlap
    catch_up: bool
    thread_id: str | None
    request: str
    created_at: float
    next_at: float | None
    """The next tick, Unix seconds; None after the last one."""
    paused_at: float | None = None

    @property
    def thread_name(self) -> str | None:
        """The name of the thread that all runs continue; None if each has a new one."""
        return make_thread_name(self.thread_id, self.owner) if self.thread_id else None


@dataclass(frozen=True, slots=True)
class ScheduleTick:
    """One time of a schedule, and what became of it; `reason` says why no run was started."""

    schedule_id: str
    tick: float
    run_id: str
    state: TickState = "pending"
    reason: str = ""


class ScheduleTable(Protocol):
    """Schedules, each with its ticks."""

    async def add(self, schedule: Schedule) -> None:
        """Store a new schedule."""
        ...

    async def get(self, schedule_id: str, owner: str | None) -> Schedule | None:
        """Return a schedule of this owner; None stands for any owner."""
        ...

    async def list(self, owner: str | None, limit: int = 1_000) -> Sequence[Schedule]:
        """Return the owner's schedules, newest first."""
        ...

    async def count(self, owner: str) -> int:
        """Return how many schedules an owner has."""
        ...

    async def update(self, schedule: Schedule) -> bool:
        """Replace the fields of a schedule but its owner and its ticks; return whether it exists."""
        ...

    async def delete(self, schedule_id: str, owner: str) -> bool:
        """Delete a schedule with its ticks; return whether it existed. Its runs stay."""
        ...

    async def list_due(self, now: float, limit: int = 100) -> Sequence[Schedule]:
        """Return the schedules with a tick at or before `now` that are not paused, the oldest tick first."""
        ...

    async def advance(self, schedule_id: str, due: float, following: float | None) -> None:
        """Set the next tick of a schedule to `following` if it is `due` still."""
        ...

    async def add_tick(self, tick: ScheduleTick) -> None:
        """Store a tick, unless it is known."""
        ...

    async def settle(self, tick: ScheduleTick) -> None:
        """Store what became of a pending tick: its new state and its reason."""
        ...

    async def list_pending(self) -> Sequence[ScheduleTick]:
        """Return pending ticks of schedules that are not paused, oldest first, a few hundred at most."""
        ...

    async def list_ticks(
        self, schedule_id: str, limit: int = 20, state: TickState | None = None
    ) -> Sequence[ScheduleTick]:
        """Return the newest ticks of a schedule, newest first, only those of `state` if given."""
        ...


_COLUMNS = column_names(Schedule)
_SELECTED = ", ".join(_COLUMNS)
_TICK_COLUMNS = column_names(ScheduleTick)
_TICKS = ", ".join(_TICK_COLUMNS)
_CHANGED = tuple(name for name in _COLUMNS if name not in ("schedule_id", "owner", "created_at"))


class SqlSchedules:
    """See `ScheduleTable`."""

    def __init__(self, database: Statements) -> None:
        self._database = database

    async def add(self, schedule: Schedule) -> None:
        await self._database.execute(insert_sql("schedules", _COLUMNS), _values(schedule))

    async def get(self, schedule_id: str, owner: str | None) -> Schedule | None:
        where, values = conditions({"schedule_id = ?": schedule_id, "owner = ?": owner})
        rows = await self._database.fetch(f"SELECT {_SELECTED} FROM schedules {where}", values)
        return _make_schedule(*rows[0]) if rows else None

    async def list(self, owner: str | None, limit: int = 1_000) -> Sequence[Schedule]:
        where, values = conditions({"owner = ?": owner})
        sql = f"SELECT {_SELECTED} FROM schedules {where} ORDER BY position DESC LIMIT ?"
        return [_make_schedule(*row) for row in await self._database.fetch(sql, (*values, limit))]

    async def count(self, owner: str) -> int:
        ((count,),) = await self._database.fetch("SELECT count(*) FROM schedules WHERE owner = ?", (owner,))
        return count

    async def update(self, schedule: Schedule) -> bool:
        assigned = ", ".join(f"{name} = ?" for name in _CHANGED)
        sql = f"UPDATE schedules SET {assigned} WHERE schedule_id = ? RETURNING 1"
        values = [column_value(getattr(schedule, name)) for name in _CHANGED]
        return bool(await self._database.execute(sql, (*values, schedule.schedule_id)))

    async def delete(self, schedule_id: str, owner: str) -> bool:
        sql = "DELETE FROM schedules WHERE schedule_id = ? AND owner = ? RETURNING 1"
        return bool(await self._database.execute(sql, (schedule_id, owner)))

    async def list_due(self, now: float, limit: int = 100) -> Sequence[Schedule]:
        due = "paused_at IS NULL AND next_at IS NOT NULL AND next_at <= ?"
        sql = f"SELECT {_SELECTED} FROM schedules WHERE {due} ORDER BY next_at LIMIT ?"
        return [_make_schedule(*row) for row in await self._database.fetch(sql, (now, limit))]

    async def advance(self, schedule_id: str, due: float, following: float | None) -> None:
        sql = "UPDATE schedules SET next_at = ? WHERE schedule_id = ? AND next_at = ?"
        await self._database.execute(sql, (following, schedule_id, due))

    async def add_tick(self, tick: ScheduleTick) -> None:
        # Nothing is stored for a schedule that was deleted meanwhile.
        values = [column_value(one) for one in astuple(tick)[1:]]
        typed = "CAST(? AS DOUBLE PRECISION), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT)"
        selected = f"SELECT schedule_id, {typed} FROM schedules WHERE schedule_id = ?"
        sql = f"INSERT INTO schedule_ticks ({_TICKS}) {selected} ON CONFLICT DO NOTHING"
        await self._database.execute(sql, (*values, tick.schedule_id))

    async def settle(self, tick: ScheduleTick) -> None:
        sql = (
            "UPDATE schedule_ticks SET state = ?, reason = ? "
            "WHERE schedule_id = ? AND tick = ? AND state = 'pending'"
        )
        values = (tick.state, column_value(tick.reason), tick.schedule_id, tick.tick)
        await self._database.execute(sql, values)

    async def list_pending(self) -> Sequence[ScheduleTick]:
        active = "SELECT 1 FROM schedules s WHERE s.schedule_id = t.schedule_id AND s.paused_at IS NULL"
        sql = (
            f"SELECT {_TICKS} FROM schedule_ticks t WHERE state = 'pending' AND EXISTS ({active}) "
            "ORDER BY tick LIMIT ?"
        )
        return [ScheduleTick(*row) for row in await self._database.fetch(sql, (_PENDING_PAGE,))]

    async def list_ticks(
        self, schedule_id: str, limit: int = 20, state: TickState | None = None
    ) -> Sequence[ScheduleTick]:
        where, values = conditions({"schedule_id = ?": schedule_id, "state = ?": state})
        sql = f"SELECT {_TICKS} FROM schedule_ticks {where} ORDER BY tick DESC LIMIT ?"
        return [ScheduleTick(*row) for row in await self._database.fetch(sql, (*values, limit))]


def _values(schedule: Schedule) -> list[Any]:
    return [column_value(getattr(schedule, name)) for name in _COLUMNS]


def _make_schedule(*row: Any) -> Schedule:
    named: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    named["catch_up"] = bool(named["catch_up"])
    return Schedule(**named)
