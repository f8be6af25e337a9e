"""The queue of runs in PostgreSQL: who drives which run, and what is asked of who drives it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from psycopg import AsyncConnection

from maniple.store.postgres.checkpoints import prune_checkpoints
from maniple.store.postgres.database import (
    APPLICATION_PREFIX,
    PostgresDatabase,
    execute_many,
    fetch_all,
    lock,
    lock_thread,
)
from maniple.store.postgres.processes import IS_ALIVE
from maniple.store.postgres.tables import NOW, add_inputs, change_run, insert_run, queue_run_again
from maniple.store.protocols import RunChange
from maniple.store.records import EventRecord, InputRecord, RunRecord
from maniple.store.rows import INPUT_COLUMNS, RUN_COLUMNS, UNFINISHED, make_run, split_batch
from maniple.types import RunState

CHANNEL = "maniple_events"
"""The channel on which runs ring: `run_id` and the newest event, or `input`, `reply` or `status`."""
QUEUE, TASK = "runs.1", "maniple.drive"
FOLLOWED_ROWS = 500
"""How many groups of events of a run are read at once for who follows it."""
Refusal = Literal["full", "owner_full", "busy", "changed"]
"""Why nothing was stored: too many runs, too many of the owner, a run on the thread, or another status."""
_DRIVEN = f"runs.job IS NOT NULL AND {IS_ALIVE}"
# One statement, or a process that slept between reading and giving back would take a run from a living one.
_GIVE_BACK = f"""
WITH dead AS (
    SELECT jobs.id FROM procrastinate_jobs jobs WHERE jobs.status = 'doing' AND jobs.task_name = '{TASK}'
    AND (
        EXISTS (SELECT FROM runs WHERE runs.job = jobs.id AND NOT {IS_ALIVE})
        OR NOT EXISTS (SELECT FROM runs WHERE runs.job = jobs.id)
        AND (SELECT max(at) FROM procrastinate_events WHERE job_id = jobs.id AND type = 'started')
            < clock_timestamp() - make_interval(secs => %(lease)s))
    FOR UPDATE OF jobs SKIP LOCKED)
SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM dead
"""
# Of a process that is cut off in the middle of a message, the server goes on to wait, with its locks.
_DISCONNECT = f"""
WITH dead AS MATERIALIZED (SELECT '{APPLICATION_PREFIX}' || runs.process AS name FROM runs
    WHERE runs.status = 'running' AND runs.process IS NOT NULL AND NOT {IS_ALIVE})
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE EXISTS (SELECT FROM dead) AND application_name IN (SELECT name FROM dead)
    AND datname = current_database() AND pid <> pg_backend_pid()
"""
# One statement, so that all events of a run that has ended are in what is read with its status. Each run is
# looked up (LIMIT): a join would be planned as one with all of them.
_FOLLOW = f"""
SELECT asked.place, runs.{UNFINISHED}, page.first, page.body
    FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY asked (run_id, after, place)
    JOIN LATERAL (SELECT status FROM runs WHERE runs.run_id = asked.run_id LIMIT 1) runs ON true
    LEFT JOIN LATERAL (
        SELECT first, last, body FROM events WHERE events.run_id = asked.run_id AND last > asked.after
        ORDER BY last LIMIT {FOLLOWED_ROWS}) page ON true
    ORDER BY asked.place, page.last
"""
# Runs whose job was lost: the oldest of a thread that has no job at all.
_LOST = f"""
SELECT DISTINCT thread_id FROM runs WHERE {UNFINISHED} AND kind = 'server' AND NOT ({_DRIVEN})
    AND NOT EXISTS (SELECT FROM procrastinate_jobs jobs WHERE jobs.lock = runs.thread_id
        AND jobs.status IN ('todo', 'doing'))
    AND NOT EXISTS (SELECT FROM runs older WHERE older.thread_id = runs.thread_id
        AND older.position < runs.position AND older.status IN ('queued', 'running', 'interrupted')) LIMIT 100
"""
_STUCK = f"""
SELECT {RUN_COLUMNS} FROM runs WHERE {UNFINISHED} AND waiting_for IS NULL AND (
    status = 'running' AND NOT {IS_ALIVE}
    OR {NOW} - greatest(coalesce(started_at, created_at), created_at) > %(seconds)s AND status = 'queued')
    ORDER BY position LIMIT %(limit)s
"""
# Sequences count what was refused, too, and so they count on while this reads.
_FIGURES = """
SELECT count(*), coalesce(extract(epoch FROM max(clock_timestamp() - events.at)), 0)::float8,
    (SELECT last_value - 1 + is_called::integer FROM take_overs),
    (SELECT last_value - 1 + is_called::integer FROM fenced_writes)
    FROM procrastinate_jobs jobs
    JOIN procrastinate_events events ON events.job_id = jobs.id AND events.type = 'deferred'
    WHERE jobs.status = 'todo'
"""
# Nothing for a job that was given back meanwhile.
_LOCK_RUN = f"""
WITH held AS MATERIALIZED (SELECT FROM procrastinate_jobs WHERE id = %(job)s AND status = 'doing' FOR SHARE)
SELECT status = 'running' OR waiting_for IS NOT NULL, is_given_back FROM runs
    WHERE run_id = %(run)s AND {UNFINISHED} AND (%(job)s = 0 OR EXISTS (SELECT FROM held)) FOR UPDATE
"""
_CLAIM = f"""
WITH here AS (SELECT claimed_checkpoint AS earlier,
    (SELECT coalesce(max(position), 0) FROM checkpoints WHERE thread_id = runs.thread_id) AS checkpoint,
    (SELECT coalesce(max(last), 0) FROM events WHERE run_id = runs.run_id) AS event
    FROM runs WHERE run_id = %(run)s)
UPDATE runs SET process = %(own)s, job = %(job)s, recoveries = recoveries + %(begun)s, is_given_back = false,
    repeats = CASE WHEN here.earlier IS DISTINCT FROM here.checkpoint THEN 0 ELSE repeats END
        + coalesce(%(taken)s AND claimed_event < here.event, false)::integer,
    claimed_checkpoint = here.checkpoint, claimed_event = here.event
    FROM here WHERE run_id = %(run)s
    RETURNING here.earlier IS DISTINCT FROM here.checkpoint, repeats,
        EXISTS (SELECT FROM run_inputs sent WHERE sent.run_id = runs.run_id AND reply IS NULL), {RUN_COLUMNS}
"""
# Start-time fair queueing: a run comes after what its owner has waiting, and not before what is at work.
_TAG = f"""
UPDATE runs SET tag = greatest(0, (SELECT max(tag) FROM runs WHERE status = 'running'),
    1 + (SELECT max(tag) FROM runs WHERE owner = %(owner)s AND {UNFINISHED} AND run_id <> %(run)s))
    WHERE run_id = %(run)s
"""


_FollowedRow = tuple[bool, int | None, str]
"""Whether a run is unfinished, and the first number and the text of a group of events, None without one."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The maximum of unfinished runs, of all owners and of this one; None is no limit."""

    all_runs: int
    of_owner: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that this process drives now; `is_taken_over` from one that had begun it and has died."""

    run: RunRecord
    is_taken_over: bool
    has_moved: bool
    """Whether it has come to a new checkpoint since it was claimed before."""
    repeats: int
    """How often in a row it was taken over since its newest checkpoint, from processes that worked on it."""
    has_pending: bool
    """Whether something that it was sent has no reply."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What the metrics report of the whole queue."""

    waiting: int
    """How many jobs wait."""
    oldest_seconds: float
    """How long the oldest of them has waited."""
    take_overs: int
    """How often a run of a dead process went on elsewhere, in the life of the database."""
    fenced_writes: int
    """How many writes of processes that had lost their run were refused, in the life of the database."""


@dataclass(frozen=True, slots=True)
class FollowedPage:
    """The next events of a run."""

    events: Sequence[EventRecord]
    has_more: bool
    """Whether more are stored than were read at once."""
    is_unfinished: bool
    """Whether others may come."""


class RunQueue:
    """Changes runs and their jobs together. Every call may raise `StoreError`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @property
    def is_away(self) -> bool:
        """Whether the database does not answer, or takes no writes."""
        contact = self._database.contact
        return (contact.failure or contact.refusal) is not None

    async def submit(self, run: RunRecord, limits: QueueLimits, *, rejects: bool) -> RunRecord | Refusal:
        """Store a new run, with its place in the fair order; `rejects` if another one is on its thread.

        Returns the stored run if there is one of this id: two processes may submit the same one at once.
        """

        async def submit(connection: AsyncConnection) -> RunRecord | Refusal:
            refusal = await _refuse(connection, run.owner, limits)
            if (known := await _find(connection, run)) is not None:
                return known
            if refusal:
                return refusal
            await lock_thread(connection, run.thread_id)
            if rejects and await _unfinished(connection, run.thread_id):
                return "busy"
            added = await insert_run(connection, run)
            await fetch_all(connection, _TAG, {"owner": run.owner, "run": run.run_id})
            await defer_next(connection, run.thread_id)
            return added

        return await self._database.write(submit)

    async def continue_run(
        self, run: RunRecord, sent: InputRecord, limits: QueueLimits, *, retries: bool = False
    ) -> RunRecord | Refusal:
        """Queue a run that has paused, or ended if it `retries`, with the input that continues it."""
        reset = ", job = NULL"
        if retries:
            reset += ", ended_at = NULL, error_code = NULL, error = NULL, stalls = 0, retries = retries + 1"
            reset += ", repeats = 0, claimed_checkpoint = NULL"

        async def queue(connection: AsyncConnection) -> RunRecord | Refusal:
            if refusal := await _refuse(connection, run.owner, limits):
                return refusal
            await lock_thread(connection, run.thread_id)
            if retries and await _unfinished(connection, run.thread_id):
                return "busy"
            status: RunState = run.status
            changed = await queue_run_again(connection, self._database.process, (run.run_id, status), reset)
            if changed is None:
                return "changed"
            await add_inputs(connection, run.run_id, [sent])
            await defer_next(connection, run.thread_id)
            return changed

        return await self._database.write(queue)

    async def send(
        self, run: RunRecord, sent: InputRecord, may_take: Callable[[], Awaitable[None]] | None = None
    ) -> bool:
        """Send an unfinished run an input; return False if it is not unfinished any more.

        `may_take` raises what prevents it, while nobody else sends the run something and it does not end.
        """

        async def send(connection: AsyncConnection) -> bool:
            await lock_thread(connection, run.thread_id)
            sql = f"SELECT 1 FROM runs WHERE run_id = %s AND {UNFINISHED}"
            if not await fetch_all(connection, sql, (run.run_id,)):
                return False
            if may_take is not None:
                await may_take()
            await add_inputs(connection, run.run_id, [sent])
            return True

        return await self._database.write(send)

    async def claim(self, run_id: str, job: int) -> ClaimedRun | None:
        """Let this process drive the run of a job; None if there is nothing to drive."""

        async def claim(connection: AsyncConnection) -> ClaimedRun | None:
            return await self._claim(connection, run_id, job)

        return await self._database.repeat(claim)

    async def claim_to_end(self, run: RunRecord, sent: InputRecord) -> RunRecord | None:
        """Let this process end a run with this input; None if somebody drives it."""
        jobs = "procrastinate_jobs WHERE lock = %s AND args ->> 'run_id' = %s AND status"
        values = (run.thread_id, run.run_id)

        async def claim(connection: AsyncConnection) -> RunRecord | None:
            await lock_thread(connection, run.thread_id)
            await fetch_all(connection, f"DELETE FROM {jobs} = 'todo'", values)
            if await fetch_all(connection, f"SELECT 1 FROM {jobs} = 'doing' FOR SHARE", values):
                await defer_next(connection, run.thread_id)
                return None
            if run.status == "interrupted":
                own = self._database.process
                if (
                    await queue_run_again(connection, own, (run.run_id, "interrupted"), ", job = NULL")
                    is None
                ):
                    return None
            await add_inputs(connection, run.run_id, [sent])
            claimed = await self._claim(connection, run.run_id, 0)
            return claimed.run if claimed is not None else None

        return await self._database.write(claim)

    async def _claim(self, connection: AsyncConnection, run_id: str, job: int) -> ClaimedRun | None:
        rows = await fetch_all(connection, _LOCK_RUN, {"run": run_id, "job": job})
        if not rows:
            return None
        is_begun, is_given_back = rows[0]
        is_taken_over = is_begun and not is_given_back
        if is_taken_over:
            await connection.execute("SELECT nextval('take_overs')")
        values = {"own": self._database.process, "job": job, "begun": int(is_begun), "run": run_id}
        ((has_moved, repeats, has_pending, *row),) = await fetch_all(
            connection, _CLAIM, {**values, "taken": is_taken_over}
        )
        return ClaimedRun(make_run(*row), is_taken_over, has_moved, repeats, has_pending)

    async def give_back(self, run_id: str) -> None:
        """Take note that this process gives a run back on purpose: who goes on with it takes nothing over."""
        sql = "UPDATE runs SET is_given_back = true WHERE run_id = %s AND process = %s"
        await self._database.execute(sql, (run_id, self._database.process))

    async def end(
        self,
        run: RunRecord,
        change: RunChange,
        settle: Callable[[Sequence[InputRecord]], tuple[Mapping[str, str], Sequence[RunRecord]]],
        *,
        prunes: bool = False,
    ) -> RunRecord | None:
        """Store the end, or the pause, of a run, and give the next one of its thread a job.

        `prunes` if the checkpoints of the thread are not needed any more (`CheckpointHistory.prune`).

        `settle` is given the inputs without a reply, and returns replies by their ids and the runs that
        follow. Returns None if the run was deleted. Raises `RunTakenOver`.
        """
        sql = "UPDATE run_inputs SET reply = %s WHERE run_id = %s AND input_id = %s AND reply IS NULL"
        own = self._database.process

        async def end(connection: AsyncConnection) -> RunRecord | None:
            await lock_thread(connection, run.thread_id)
            ended = await change_run(connection, own, run.run_id, change)
            if ended is None:
                return None
            if prunes:
                await prune_checkpoints(connection, run.thread_id)
            pending = [one for _, one in await _list_pending(connection, [run.run_id])]
            replies, following = settle(pending)
            await execute_many(connection, sql, [(reply, run.run_id, one) for one, reply in replies.items()])
            for one in following:
                if not await fetch_all(connection, "SELECT 1 FROM runs WHERE run_id = %s", (one.run_id,)):
                    await insert_run(connection, one)
                    await fetch_all(connection, _TAG, {"owner": one.owner, "run": one.run_id})
            await defer_next(connection, run.thread_id)
            return ended

        return await self._database.write(end)

    async def list_pending(self, run_ids: Sequence[str]) -> list[tuple[str, InputRecord]]:
        """Return the inputs of these runs that have no reply, oldest first, with the ids of the runs."""

        async def select(connection: AsyncConnection) -> list[tuple[str, InputRecord]]:
            return await _list_pending(connection, run_ids)

        return await self._database.read(select)

    async def read_reply(self, run_id: str, input_id: str) -> str | None:
        """Return the reply to an input; None while there is none."""
        sql = "SELECT reply FROM run_inputs WHERE run_id = %s AND input_id = %s"
        rows = await self._database.fetch(sql, (run_id, input_id))
        return rows[0][0] if rows else None

    async def sweep(self) -> int:
        """Give back the jobs of dead processes and replace lost jobs; return how many are given back."""

        async def sweep(connection: AsyncConnection) -> int:
            ((is_elected,),) = await fetch_all(
                connection, "SELECT pg_try_advisory_xact_lock(hashtextextended('sweep', 0))"
            )
            # Also without the lock: a process that was cut off while it swept may hold it.
            await fetch_all(connection, _DISCONNECT)
            if not is_elected:
                return 0
            lease = {"lease": self._database.lease_seconds}
            given_back = len(await fetch_all(connection, _GIVE_BACK, lease))
            for (thread_id,) in await fetch_all(connection, _LOST):
                await lock_thread(connection, thread_id)
                await defer_next(connection, thread_id, may_be_driven=False)
            return given_back

        return await self._database.repeat(sweep)

    async def follow(self, asked: Sequence[tuple[str, int]]) -> list[FollowedPage]:
        """Return for each run, and a number, the events after that number, and whether others may come."""
        columns = [[run_id for run_id, _ in asked], [after for _, after in asked]]
        found: list[list[_FollowedRow]] = [[] for _ in asked]
        for place, is_unfinished, first, body in await self._database.fetch(_FOLLOW, columns):
            found[int(place) - 1].append((is_unfinished, first, body))
        return [_make_page(*one, rows) for one, rows in zip(asked, found, strict=True)]

    async def list_stuck(self, seconds: float, limit: int = 100) -> list[RunRecord]:
        """Return the runs that began in a process which is dead, or have waited for so long, oldest first."""
        rows = await self._database.fetch(_STUCK, {"seconds": seconds, "limit": limit})
        return [make_run(*row) for row in rows]

    async def measure(self) -> QueueFigures:
        """Return the figures of the queue."""
        return QueueFigures(*(await self._database.fetch(_FIGURES))[0])


async def defer_next(connection: AsyncConnection, thread_id: str, *, may_be_driven: bool = True) -> None:
    """Give the oldest unfinished run of a thread a job unless it has one. The caller locks the thread."""
    await fetch_all(connection, "SELECT defer_next(%s, %s)", (thread_id, may_be_driven))


def _make_page(run_id: str, after: int, rows: Sequence[_FollowedRow]) -> FollowedPage:
    """Return the events of a run after a number, from the rows of its groups."""
    events = [
        record
        for _, first, body in rows
        if first is not None
        for record in split_batch(run_id, first, body)
        if record.number > after
    ]
    return FollowedPage(events, len(rows) == FOLLOWED_ROWS, bool(rows and rows[0][0]))


async def _find(connection: AsyncConnection, run: RunRecord) -> RunRecord | None:
    sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = %s AND owner = %s"
    rows = await fetch_all(connection, sql, (run.run_id, run.owner))
    return make_run(*rows[0]) if rows else None


async def _refuse(connection: AsyncConnection, owner: str, limits: QueueLimits) -> Refusal | None:
    await lock(connection, "owner", owner)
    sql = f"SELECT count(*), count(*) FILTER (WHERE owner = %s) FROM runs WHERE {UNFINISHED}"
    ((total, of_owner),) = await fetch_all(connection, sql, (owner,))
    if total >= limits.all_runs:
        return "full"
    return "owner_full" if limits.of_owner is not None and of_owner >= limits.of_owner else None


async def _unfinished(connection: AsyncConnection, thread_id: str) -> bool:
    sql = f"SELECT 1 FROM runs WHERE thread_id = %s AND {UNFINISHED} LIMIT 1"
    return bool(await fetch_all(connection, sql, (thread_id,)))


async def _list_pending(connection: AsyncConnection, run_ids: Iterable[str]) -> list[tuple[str, InputRecord]]:
    columns = ", ".join(INPUT_COLUMNS)
    sql = (
        f"SELECT run_id, {columns} FROM run_inputs WHERE run_id = ANY(%s) AND reply IS NULL ORDER BY position"
    )
    return [(run_id, InputRecord(*row)) for run_id, *row in await fetch_all(connection, sql, ([*run_ids],))]
