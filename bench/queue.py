"""The queue on PostgreSQL, three workers and a node, beside one process on SQLite: each figure with its bar.

    python -m bench.queue            all of it, 8 minutes on two idle cores
    python -m bench.queue --quick    with fewer runs, 2 minutes
    python -m bench.queue --batch 5000    instead: a batch whose processes are killed, on either store

The database is a private cluster without fsync, and a run is four calls of the scripted model. The times of
starts and hand-overs are the database's; those of cancels are a client's. CPU of PostgreSQL is that of all
its processes, without what it takes when there are no runs.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx

from bench.load import ask, cpu_seconds, floor_seconds, model_process, percentile_of, set_pace
from bench.model_server import IMMEDIATE, Pace
from bench.streams import words
from maniple.store.rows import split_batch
from tests.batches.surviving import Survived, on_postgres, on_sqlite, survive
from tests.openai_server import call, reply
from tests.postgres import Cluster, find_programs, running_cluster
from tests.runs.killing import together
from tests.runs.workers import (
    DRIVEN,
    WORKERS,
    Fetch,
    Workers,
    begin,
    cluster_of,
    connected,
    read_events,
    until,
    watch_driver,
)
from tests.serving import environment, server_process

PLACES = 88
"""How many runs a worker drives at once: three have room for all runs that are held or compared."""
MAX_RUNS = 600
KILLS, PARALLEL = 12, 16
"""Of a batch whose processes are killed: at most so many kills, and so many runs at a time."""
IDLE_SECONDS = 5.0
"""How long the nodes are watched without runs: what they take then is not counted as that of runs."""
SETTINGS: dict[str, Any] = {
    "MANIPLE_SERVER__MAX_RUNS": str(MAX_RUNS),
    "MANIPLE_SANDBOX__BACKEND": "off",
    "MANIPLE_BROWSER__ENABLED": "false",
}
_STEPS = [
    {"agent_name": "researcher", "title": "Find", "description": words(30)},
    {"agent_name": "reporter", "title": "Report", "description": words(20)},
]
SCRIPT = {
    "coordinator": [call("handoff_to_planner", task_title="1 + 3", locale="en")],
    "planner": [reply(json.dumps({"thought": words(20), "title": "1 + 3", "steps": _STEPS}))],
    "researcher": [reply(words(60))],
    "reporter": [reply(words(120))],
    "other": [reply("OK")],
}
ROLES = ("coordinator", "planner", "researcher", "reporter")
HELD = Pace(100.0, 1.0)
"""The model does not answer: what is asked stays at work. It is below the time limit of a call."""
WATCHED = Pace(0.2, 0.05)
"""Of the runs that are followed: 20 tokens a second each."""
STEADY = Pace(1.0, 0.005)
"""Of the runs of the batch."""
LIMITS = {
    "start_idle_p95_ms": 50,
    "start_beside_p95_ms": 50,
    "hand_over_p95_ms": 50,
    "cancel_p95_ms": 50,
    "take_over_p95_ms": 6_000,
    "live_p95_ms": 100,
    "live_gaps": 0,
    "postgres_64_cpu_ms": 25,
    "batch_of_ideal": 1.2,
}
"""At most this; the rest is reported."""
_CHECKPOINT_BYTES = "SELECT " + " + ".join(
    f"(SELECT coalesce(sum(pg_column_size(one.*)), 0) FROM {table} one)"
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
)
_RUNNING = "SELECT count(*) FROM runs WHERE run_id = ANY(%s) AND status = 'running'"
_TIMES = "SELECT created_at, started_at, ended_at FROM runs WHERE run_id = ANY(%s) ORDER BY position"
_GROUPS = "SELECT first, body FROM events WHERE run_id = %s ORDER BY first"
Figures = dict[str, float]


@dataclass(frozen=True)
class Sizes:
    """How many runs each part has."""

    starts: int = 40
    held: int = 64
    cancels: int = 40
    kills: int = 3
    watched: int = 64
    loads: Sequence[int] = (64, 256)
    batch: int = 96
    parallel: int = 16


WHOLE = Sizes()
QUICK = Sizes(starts=12, cancels=20, kills=1, watched=32, loads=(64,), batch=24, parallel=8)


@dataclass
class Bench:
    """The nodes that are measured, and their model."""

    sizes: Sizes
    cluster: Cluster
    model_url: str
    api: str
    workers: Workers
    fetch: Fetch
    client: httpx.AsyncClient
    process_url: str
    """Of the one process on SQLite."""
    process_pid: int
    url: str
    """Of the database."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def pace(self, pace: Pace) -> None:
        """Let the model write at this pace; who was held stays so."""
        set_pace(self.model_url, pace)

    def question(self) -> str:
        """Return a question that begins the model's script."""
        return f"1+3=? #run=q{next(self._numbers)}"

    async def begin(self, thread: str = "") -> str:
        """Begin a run and return its id."""
        return await begin(self.client, f"b{next(self._numbers)}", thread)

    async def end(self, run_ids: Sequence[str]) -> None:
        """Wait until the runs have ended."""
        await together(read_events(self.client, one) for one in run_ids)

    async def hold(self, number: int) -> list[str]:
        """Begin runs whose model does not answer; return their ids once all have asked it."""
        self.pace(HELD)
        run_ids = await together(self.begin() for _ in range(number))
        await self.asking(number)
        return run_ids

    async def asking(self, number: int) -> None:
        """Wait until so many calls, or more, wait for the model."""
        url = f"{self.model_url.removesuffix('/v1')}/admin/stats"

        async def are_there() -> bool:
            return (await self.client.get(url)).json()["active"] >= number

        await until(are_there, 120)

    async def cancel(self, run_id: str) -> float:
        """Cancel a run; return the seconds until it had ended."""
        begun = time.perf_counter()
        run = (await self.client.post(f"/api/runs/{run_id}/cancel")).raise_for_status().json()

        async def has_ended() -> bool:
            return (await self.client.get(f"/api/runs/{run_id}")).json()["status"] == "cancelled"

        if run["status"] != "cancelled":  # its worker has just died: it ends with the next one
            await until(has_ended)
        return time.perf_counter() - begun

    async def times(self, run_ids: Sequence[str]) -> list[tuple[float, float, float]]:
        """Return when runs were created, started and ended (seconds), in the order of the queue."""
        return [(row[0], row[1], row[2]) for row in await self.fetch(_TIMES, [*run_ids])]

    async def start_delays(self, number: int) -> list[float]:
        """Return the seconds from the creation of a run to its start, for runs one after another."""
        run_ids: list[str] = []
        for _ in range(number):
            run_ids.append(await self.begin())
            await self.end(run_ids[-1:])
        return [started - created for created, started, _ in await self.times(run_ids)]

    def postgres_seconds(self) -> float:
        """Return the CPU time of PostgreSQL, with its processes that have ended."""
        server = int((self.cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return _ended_children_seconds(server) + sum(cpu_seconds(int(pid)) for pid in (server, *children))


def _ended_children_seconds(pid: int) -> float:
    """Return the CPU time of the ended children of a process (cutime and cstime of proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def open_bench(sizes: Sizes) -> AsyncGenerator[Bench]:
    """Start PostgreSQL, the model, the node, the workers and the process that they are compared with."""
    from maniple.store.postgres.migrations import load_migrations, migrate

    with (
        running_cluster() as cluster,
        model_process(SCRIPT) as (model_url, _),
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as home,
    ):
        url = cluster.create()
        await migrate(url, load_migrations())
        env = environment(model_url, home, **SETTINGS)
        opened = cluster_of(url, model_url, Path(folder), places=PLACES, **SETTINGS)
        limits = httpx.Limits(max_connections=None)
        with server_process(env, Path(home), start=Popen) as process:
            async with (
                opened as (api, workers),
                connected(url) as fetch,
                httpx.AsyncClient(base_url=api, trust_env=False, timeout=300, limits=limits) as client,
            ):
                yield Bench(
                    sizes,
                    cluster,
                    model_url,
                    api,
                    workers,
                    fetch,
                    client,
                    process.url,
                    process.process.pid,
                    url,
                )


def _percentiles(name: str, seconds: Sequence[float]) -> Figures:
    values = [*seconds]
    return {f"{name}_p{one}_ms": round(1000 * percentile_of(values, one), 1) for one in (50, 95)}


async def measure_starts(bench: Bench) -> Figures:
    """Return how soon runs start: alone, and one after another on a thread."""
    bench.pace(IMMEDIATE)
    await bench.start_delays(WORKERS)  # what is loaded at first use is not what is measured
    idle = await bench.start_delays(bench.sizes.starts)
    first = await bench.begin()
    thread = (await bench.client.get(f"/api/runs/{first}")).json()["thread_id"]
    behind = [first, *[await bench.begin(thread) for _ in range(bench.sizes.starts)]]
    await bench.end(behind)
    times = await bench.times(behind)
    gaps = [started - ended for (_, _, ended), (_, started, _) in itertools.pairwise(times)]
    return _percentiles("start_idle", idle) | _percentiles("hand_over", gaps)


async def measure_held(bench: Bench) -> Figures:
    """Return how soon runs start beside others at work, and how soon those are cancelled."""
    held = await bench.hold(bench.sizes.held)
    bench.pace(IMMEDIATE)
    beside = await bench.start_delays(bench.sizes.starts)
    ((running,),) = await bench.fetch(_RUNNING, held)
    cancelled = [await bench.cancel(one) for one in held[: bench.sizes.cancels]]
    await together(bench.cancel(one) for one in held[bench.sizes.cancels :])
    return (
        {"held_runs": float(running)}
        | _percentiles("start_beside", beside)
        | _percentiles("cancel", cancelled)
    )


async def measure_take_over(bench: Bench) -> Figures:
    """Return how soon the runs of a worker that is killed (SIGKILL) go on in another one."""
    gaps: list[float] = []
    for _ in range(bench.sizes.kills):
        held = await bench.hold(8 * WORKERS)
        victim = bench.workers.running[0]
        driven = [run_id for (run_id,) in await bench.fetch(DRIVEN, victim.pid)]
        await bench.workers.kill(victim)
        gaps += await watch_driver(bench.fetch, driven, victim.pid, time.monotonic())
        await together(bench.cancel(one) for one in held)
        await bench.workers.add()
    return {"take_over_runs": float(len(gaps))} | _percentiles("take_over", gaps)


async def measure_live(bench: Bench) -> Figures:
    """Return how long after its event a client of the node sees it, and how many events it misses.

    Of that, "stored" is the time until the node hears of the event, and "sent" the rest. An event that is
    older than the connection of its client has not been waited for.
    """
    bench.pace(WATCHED)
    began, pids = time.perf_counter(), [one.pid for one in bench.workers.running]
    cpu = sum(map(cpu_seconds, pids)) + bench.postgres_seconds()
    async with _bells(bench.url) as heard:
        run_ids = await together(bench.begin() for _ in range(bench.sizes.watched))
        followed = await together(_follow(bench.client, one) for one in run_ids)
    cpu = sum(map(cpu_seconds, pids)) + bench.postgres_seconds() - cpu
    cores = cpu / (time.perf_counter() - began)
    delays, stored_after, sent_after, gaps = list[float](), list[float](), list[float](), 0
    for run_id, (since, came) in zip(run_ids, followed, strict=True):
        for first, body in await bench.fetch(_GROUPS, run_id):
            stored = split_batch(run_id, first, body)
            gaps += sum(one.number not in came for one in stored)
            bell = heard.get((run_id, stored[-1].number))
            for one in stored:
                if one.number in came and one.at is not None and one.at >= since:
                    delays.append(came[one.number] - one.at)
                    if bell is not None:
                        stored_after.append(bell - one.at)
                        sent_after.append(came[one.number] - bell)
    figures: Figures = {"live_events": float(len(delays)), "live_gaps": float(gaps)}
    figures |= _percentiles("live", delays)
    figures |= _percentiles("live_stored", stored_after) | _percentiles("live_sent", sent_after)
    return figures | {"live_workers_postgres_cores": round(cores, 2)}


@asynccontextmanager
async def _bells(url: str) -> AsyncGenerator[Mapping[tuple[str, int], float]]:
    """Yield when each group of events was rung, by its run and its last number, as it becomes known."""
    import psycopg

    from maniple.store.postgres.queue import CHANNEL

    heard: dict[tuple[str, int], float] = {}

    async def listen(connection: psycopg.AsyncConnection) -> None:
        async for bell in connection.notifies():
            run_id, _, what = bell.payload.partition(" ")
            if what.isdigit():
                heard[run_id, int(what)] = time.time()

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f"LISTEN {CHANNEL}".encode())
        listening = asyncio.create_task(listen(connection), name="bells")
        try:
            yield heard
        finally:
            listening.cancel()
            await asyncio.wait({listening})


async def _follow(client: httpx.AsyncClient, run_id: str) -> tuple[float, Mapping[int, float]]:
    """Return since when the client was connected, and when each event came, by its number."""
    came: dict[int, float] = {}
    async with client.stream("GET", f"/api/runs/{run_id}/events?view=live") as response:
        since = time.time()
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                came[int(line[4:])] = time.time()
    return since, came


async def measure_load(bench: Bench) -> Figures:
    """Return time and CPU of runs that begin together on the workers, and then in the one process."""
    bench.pace(IMMEDIATE)
    await ask(bench.process_url, bench.question())
    await _ask_together(bench, bench.api, 2 * WORKERS)
    before = bench.postgres_seconds()
    await asyncio.sleep(IDLE_SECONDS)  # the time is what is measured
    idle = (bench.postgres_seconds() - before) / IDLE_SECONDS
    figures: Figures = {"postgres_idle_cpu_share": round(idle, 3)}
    for number in bench.sizes.loads:
        ((bytes_before,),) = await bench.fetch(_CHECKPOINT_BYTES)
        pids = [one.pid for one in bench.workers.running]
        before, postgres = sum(map(cpu_seconds, pids)), bench.postgres_seconds()
        queue_seconds, queue_runs = await _ask_together(bench, bench.api, number)
        postgres = bench.postgres_seconds() - postgres - idle * queue_seconds
        worker_cpu = sum(map(cpu_seconds, pids)) - before
        ((bytes_after,),) = await bench.fetch(_CHECKPOINT_BYTES)
        before = cpu_seconds(bench.process_pid)
        process_seconds, process_runs = await _ask_together(bench, bench.process_url, number)
        process_cpu = cpu_seconds(bench.process_pid) - before
        figures |= {
            f"queue_{number}_s": round(queue_seconds, 2),
            f"process_{number}_s": round(process_seconds, 2),
            f"queue_{number}_of_process": round(queue_seconds / process_seconds, 2),
            f"queue_{number}_p95_s": round(percentile_of(queue_runs, 95), 2),
            f"process_{number}_p95_s": round(percentile_of(process_runs, 95), 2),
            f"workers_{number}_cpu_ms": round(1000 * worker_cpu / number, 1),
            f"process_{number}_cpu_ms": round(1000 * process_cpu / number, 1),
            f"postgres_{number}_cpu_ms": round(1000 * postgres / number, 1),
            f"checkpoints_{number}_bytes": round((int(bytes_after) - int(bytes_before)) / number),
        }
    return figures


async def _ask_together(bench: Bench, url: str, number: int) -> tuple[float, list[float]]:
    """Ask `number` times at once; return the seconds of all, and those of each run."""
    questions = [bench.question() for _ in range(number)]
    began = time.perf_counter()
    runs = await together(ask(url, one) for one in questions)
    return time.perf_counter() - began, [one.total for one in runs]


async def measure_batch(bench: Bench) -> Figures:
    """Return the time of a batch beside that of its model alone."""
    bench.pace(STEADY)
    number, parallel = bench.sizes.batch, bench.sizes.parallel
    items = [bench.question() for _ in range(number)]
    began = time.perf_counter()
    made = await bench.client.post("/api/batches", json={"items": items, "parallel": parallel})
    path = made.raise_for_status().headers["location"]

    async def is_done() -> bool:
        return (await bench.client.get(path)).json()["done"]

    await until(is_done, 600)
    took = time.perf_counter() - began
    counts = (await bench.client.get(path)).json()["counts"]
    ideal = -(-number // parallel) * floor_seconds(SCRIPT, ROLES, STEADY)
    return {
        "batch_accepted": float(counts.get("accepted", 0)),
        "batch_s": round(took, 2),
        "batch_ideal_s": round(ideal, 2),
        "batch_of_ideal": round(took / ideal, 2),
    }


PARTS = {
    "Starts, and the next run of a thread": measure_starts,
    "Beside runs at work, and their cancels": measure_held,
    "Runs of a killed worker": measure_take_over,
    "Events on another node": measure_live,
    "Runs that begin together": measure_load,
    "A batch": measure_batch,
}


async def measure_parts(sizes: Sizes) -> AsyncIterator[tuple[str, Figures]]:
    """Yield the figures of each part as soon as they are there; nothing without PostgreSQL."""
    if find_programs() is None:
        print("PostgreSQL is not installed: bash setup.sh dev", file=sys.stderr)
        return
    async with open_bench(sizes) as bench:
        for title, part in PARTS.items():
            yield title, await part(bench)


async def measure(sizes: Sizes = QUICK) -> Figures:
    """Return all figures."""
    found: Figures = {}
    async for _, figures in measure_parts(sizes):
        found |= figures
    return found


def format_table(title: str, figures: Figures) -> str:
    """Return the figures as a table, each with its bar."""
    rows = [f"{title:40} {'measured':>12}  at most"]
    for name, value in figures.items():
        limit = LIMITS.get(name)
        bar = "" if limit is None else f"{limit:g}{'' if value <= limit else '  MISSED'}"
        rows.append(f"  {name:38} {value:12,g}  {bar}".rstrip())
    return "\n".join(rows) + "\n"


async def _print(sizes: Sizes) -> bool:
    holds = True
    async for title, figures in measure_parts(sizes):
        print(format_table(title, figures), flush=True)
        holds = holds and all(figures[name] <= LIMITS[name] for name in figures.keys() & LIMITS.keys())
    return holds


async def measure_killed_batch(count: int) -> AsyncIterator[tuple[str, Figures]]:
    """Yield the figures of a batch whose processes are killed at random, on SQLite and on PostgreSQL.

    Raises AssertionError unless each item was done once.
    """
    from maniple.store.postgres.migrations import load_migrations, migrate

    kills, bound = max(2, min(KILLS, count // 20)), 60.0 + count
    with tempfile.TemporaryDirectory() as folder:
        async with on_sqlite(Path(folder)) as victims:
            yield "On SQLite", _figures_of(await survive(victims, count, kills, PARALLEL, bound))
    with tempfile.TemporaryDirectory() as folder, running_cluster() as cluster:
        url = cluster.create()
        await migrate(url, load_migrations())
        async with on_postgres(url, Path(folder)) as victims:
            yield "On PostgreSQL", _figures_of(await survive(victims, count, kills, PARALLEL, bound))


def _figures_of(done: Survived) -> Figures:
    done.require_each_once()
    return {
        "killed_batch_items": float(done.count),
        "killed_batch_kills": float(done.kills),
        "killed_batch_s": round(done.seconds, 1),
        "killed_batch_items_a_second": round(done.count / done.seconds, 2),
    }


async def _print_killed_batch(count: int) -> None:
    async for title, figures in measure_killed_batch(count):
        print(format_table(title, figures), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit status says whether all bars hold."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.queue",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="measure with fewer runs")
    parser.add_argument("--batch", type=int, metavar="N", help="do a batch of N items under kills instead")
    options = parser.parse_args(arguments)
    if options.batch:
        asyncio.run(_print_killed_batch(options.batch))
        return 0
    return 0 if asyncio.run(_print(QUICK if options.quick else WHOLE)) else 1


if __name__ == "__main__":
    sys.exit(main())
