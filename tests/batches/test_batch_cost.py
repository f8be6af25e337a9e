"""What a batch costs does not grow with it: each look, each item and each page of results reads as much."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from maniple.batches import BatchRunner, read_results
from maniple.runs import Engine, RunRequest
from maniple.scope.budget import Budget
from maniple.store import Batch, BatchItem, Store, open_store
from maniple.store.batches import SqlBatches
from maniple.store.statements import Statements
from tests.store.samples import a_run, a_thread

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
FEW, MANY = 60, 5_000
PARALLEL = 4
SPARE = 2.0
"""A tree of an index has one more level for many rows."""
Cost = Callable[[str, Sequence[Any]], int]


@dataclass
class RecordedStatements:
    """The statements that a table runs, with their values and their rows."""

    inner: Statements
    done: list[tuple[str, Sequence[Any], int]] = field(default_factory=list[tuple[str, Sequence[Any], int]])

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._note(sql, values, await self.inner.execute(sql, values))

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._note(sql, values, await self.inner.fetch(sql, values))

    def _note(self, sql: str, values: Sequence[Any], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self.done.append((sql, values, len(rows)))
        return rows


class InstantEngine:
    """Stands for an engine: each run has failed as soon as it is submitted."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def submit(self, request: RunRequest) -> None:
        thread = await self._store.threads.create(a_thread())
        made = replace(
            a_run(thread, self._store.process, status="failed", error="No."), run_id=request.run_id
        )
        await self._store.runs.add(made)


def steps_of_sqlite(path: Path) -> Cost:
    """Return what counts the steps of SQLite's virtual machine for a statement, which is rolled back."""

    def cost(sql: str, values: Sequence[Any]) -> int:
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.set_progress_handler(step, 1)
            connection.execute(sql, values).fetchall()
            connection.set_progress_handler(None, 0)
            connection.execute("ROLLBACK")
        return steps

    return cost


def rows_of_postgres(url: str) -> Cost:
    """Return what counts the rows that PostgreSQL reads for a statement, which is rolled back."""

    def read(node: dict[str, Any]) -> float:
        own = [node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter")]
        return sum(own) * node["Actual Loops"] + sum(map(read, node.get("Plans", ())))

    def cost(sql: str, values: Sequence[Any]) -> int:
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql.replace('?', '%s')}"
        with psycopg.connect(url, options="-c search_path=maniple") as connection:
            ((found,),) = connection.execute(explained.encode(), values).fetchall()
            connection.rollback()
        return round(read(found[0]["Plan"]))

    return cost


@dataclass
class Scene:
    store: Store
    recorded: RecordedStatements
    cost: Cost
    analyze: Callable[[], None]

    async def add(self, count: int) -> Batch:
        """Store a batch of `count` items, of which all but a few have been accepted."""
        request = RunRequest([HumanMessage("")]).to_json()
        budget = json.dumps(asdict(Budget(tokens=10**9)))
        batch = Batch(f"b{count}", "", "server", "", request, budget, "{}", PARALLEL, 1, 1.0)
        new = range(count - 3 * PARALLEL + 1, count + 1)
        items = [BatchItem(number, f"{number}+3=?", "accepted", 1) for number in range(1, new.start)]
        items += [BatchItem(number, f"{number}+3=?") for number in new]
        await self.store.batches.add(batch, items)
        self.analyze()
        self.recorded.done.clear()
        return batch

    def costs(self) -> tuple[int, int]:
        """Return the cost of the dearest recorded statement, and how many rows it may have returned."""
        return max(self.cost(sql, values) for sql, values, _ in self.recorded.done), max(
            rows for _, _, rows in self.recorded.done
        )


@pytest.fixture(params=["sqlite", "postgres"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "sqlite":
        path = tmp_path / "maniple.db"
        opening, cost = open_store(path, tmp_path / "artifacts", server=True), steps_of_sqlite(path)
    else:
        opening = request.getfixturevalue("open_postgres_again")(server=True)
        cost = rows_of_postgres(request.getfixturevalue("postgres_url"))

    def analyze() -> None:
        if request.param == "postgres":
            with psycopg.connect(request.getfixturevalue("postgres_url"), autocommit=True) as connection:
                connection.execute("ANALYZE maniple.batch_items")
                connection.execute("ANALYZE maniple.batch_totals")

    async with opening as store:
        recorded = RecordedStatements(vars(store.batches)["_database"])
        vars(store)["batches"] = SqlBatches(recorded)
        yield Scene(store, recorded, cost, analyze)


async def test_an_item_costs_as_much_in_a_large_batch_as_in_a_small_one(scene: Scene) -> None:
    found: dict[int, tuple[int, int, int]] = {}
    for count in (FEW, MANY):
        batch = await scene.add(count)
        runner = BatchRunner(scene.store, cast("Engine", InstantEngine(scene.store)), "server")
        while await runner.advance(batch):
            pass
        assert (await scene.store.batches.total(batch.batch_id)).counts["failed"] == 3 * PARALLEL
        found[count] = (len(scene.recorded.done), *scene.costs())
    (few, cost, rows), (many, cost_of_many, rows_of_many) = found[FEW], found[MANY]
    assert many == few, "more statements for the same items"
    assert rows_of_many <= rows <= max(PARALLEL, 6)
    assert cost_of_many <= SPARE * cost


async def test_a_page_at_the_end_of_the_results_costs_as_much_as_the_first(scene: Scene) -> None:
    batch = await scene.add(MANY)
    costs: list[int] = []
    for after in (0, MANY - 50):
        read = [one["number"] async for one in read_results(scene.store, batch, after, 20)]
        assert read == [*range(after + 1, after + 21)]
        costs.append(scene.costs()[0])
        scene.recorded.done.clear()
    assert costs[1] <= SPARE * costs[0]


async def test_the_results_are_read_in_pages_in_the_order_of_the_items(scene: Scene) -> None:
    batch = await scene.add(MANY)
    read = [one["number"] async for one in read_results(scene.store, batch)]
    assert read == [*range(1, MANY + 1)]
    assert {rows for _, _, rows in scene.recorded.done} == {0, 100}
    assert len(scene.recorded.done) == MANY / 100 + 1
