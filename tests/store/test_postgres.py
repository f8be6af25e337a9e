"""What only a store in PostgreSQL does: its schema, a server that goes away, and bells."""

import asyncio
import os
from contextlib import aclosing
from importlib import resources

import anyio
import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from maniple.errors import StoreBusy, StoreError, StoreUnreachable
from maniple.redaction import Redactor
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.postgres import database as database_module
from maniple.store.postgres.migrations import load_migrations, migrate, share_a_session
from maniple.store.postgres.store import open_postgres
from maniple.store.redaction import RedactingSerializer
from maniple.store.waiting import StoreWait, WaitLimit, waiting
from tests.postgres import running_cluster
from tests.runs.workers import until
from tests.store.samples import a_thread, some_events, stored_run

pytestmark = pytest.mark.anyio
SECOND = "ALTER TABLE threads ADD COLUMN colour text NOT NULL DEFAULT 'grey';"
PLACE = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def empty_url(cluster):
    """The URL of a database without tables."""
    url = cluster.create()
    yield url
    cluster.drop(url)


def opened(url, tmp_path, **given):
    return open_postgres(url, ArtifactFiles(tmp_path / "artifacts"), **({"server": True, "pool": 2} | given))


async def refusal(url, tmp_path, **given) -> str:
    with pytest.raises(StoreError) as raised:
        async with opened(url, tmp_path, **given):
            raise AssertionError("it was opened")
    return str(raised.value)


async def test_a_database_is_migrated_once_by_many_at_the_same_time(empty_url, tmp_path):
    versions = load_migrations()
    done = await asyncio.gather(*(migrate(empty_url, versions) for _ in range(6)))
    newest = len(versions)
    assert sorted(done) == [(0, newest), *[(newest, newest)] * 5]
    async with opened(empty_url, tmp_path) as store:
        await stored_run(store)
    assert await migrate(empty_url, [*versions, SECOND]) == (newest, newest + 1)
    assert "A newer maniple" in await refusal(empty_url, tmp_path)
    with pytest.raises(StoreError, match="newer"):
        await migrate(empty_url, versions)


_OF_THE_QUEUE = ("job", "tag", "is_given_back", "repeats", "claimed_checkpoint", "claimed_event")


async def test_both_databases_have_the_same_columns(postgres_store, sqlite_store):
    sql = (
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' "
        "AND t.name NOT IN ('checkpoints', 'writes') AND t.name NOT LIKE 'run_words%' "
        # The indexes of FTS5; PostgreSQL has a column instead.
        "AND t.name NOT LIKE 'run_trigrams%' AND t.name <> 'sqlite_sequence'"
    )
    in_file = set(await sqlite_store._database.fetch(sql))
    sql = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'maniple' "
        "AND table_name = ANY(%s)"
    )
    tables = [*{table for table, _ in in_file}]
    of_the_queue = {("runs", name) for name in _OF_THE_QUEUE} | {("run_texts", "words")}
    assert set(await postgres_store.database.fetch(sql, (tables,))) - of_the_queue == in_file


def test_the_schema_of_procrastinate_is_that_of_the_installed_version():
    ours = resources.files("maniple.store.postgres") / "schema" / "0002_procrastinate.sql"
    theirs = resources.files("procrastinate") / "sql" / "schema.sql"
    assert ours.read_text() == theirs.read_text(), "a new version of it needs a migration"


async def test_a_version_that_fails_leaves_the_one_before_it(empty_url, tmp_path):
    versions = load_migrations()
    with pytest.raises(StoreError):
        await migrate(empty_url, [*versions, SECOND, f"{SECOND} SELECT nonsense"])
    assert await migrate(empty_url, [*versions, SECOND]) == (len(versions) + 1, len(versions) + 1)


async def test_a_database_without_tables_is_not_opened(empty_url, tmp_path):
    assert "maniple db migrate" in await refusal(empty_url, tmp_path)


async def test_a_pooler_that_shares_sessions_is_known(postgres_url):
    async with (
        await psycopg.AsyncConnection.connect(postgres_url) as first,
        await psycopg.AsyncConnection.connect(postgres_url) as second,
    ):
        assert not await share_a_session(first, second)
        assert await share_a_session(first, first)


async def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path):
    url = f"postgresql://ann:s3cret-word@/mine?host={tmp_path}"
    with pytest.raises(StoreUnreachable) as raised:
        async with opened(url, tmp_path):
            raise AssertionError("it was opened")
    assert str(tmp_path) in str(raised.value)
    assert "s3cret" not in str(raised.value)


async def test_a_second_server_is_refused_while_the_first_one_lives(postgres_url, tmp_path):
    async with (
        opened(postgres_url, tmp_path, times=database_module.ProcessTimes(0.5)),
        opened(postgres_url, tmp_path, server=False),
    ):
        with pytest.raises(StoreBusy, match=rf"pid {os.getpid()}\b"):
            async with opened(postgres_url, tmp_path):
                raise AssertionError("two servers on one database")
    async with opened(postgres_url, tmp_path):
        pass


class LosesFirstAnswer(database_module.PostgresDatabase):
    """Loses the answer to the first thing that was done, as a connection that breaks after the commit."""

    lost = 0

    async def _try(self, work, *patience):
        async def work_and_lose(connection):
            result = await work(connection)
            if not self.lost:
                self.lost += 1
                raise psycopg.OperationalError("the connection was lost")
            return result

        return await super()._try(work_and_lose, *patience)


@pytest.fixture
async def losing(postgres_url, tmp_path):
    """Return a function that makes a store lose its next answer."""
    async with opened(postgres_url, tmp_path) as store:

        def lose():
            store.database.__class__ = LosesFirstAnswer
            store.database.lost = 0
            return store

        yield lose


async def test_what_was_done_before_its_answer_was_lost_is_done_once(losing):
    thread = await losing().threads.create(a_thread())
    store = losing()
    run = await stored_run(store)
    assert store.database.lost == 1
    assert len(await store.threads.list(None)) == 2
    for attempts in (1, 2):
        begun = await losing().ledger.begin(run.run_id, "c", "bash_tool", "{}")
        assert (begun.attempts, begun.tool_name) == (attempts, "bash_tool")
        assert await store.ledger.list_by_run(run.run_id) == [begun]
    for numbers in ((1, 2), (3, 3)):
        await losing().events.append([(run.run_id, some_events(*numbers))])
    other = await stored_run(store)
    await losing().events.append([(run.run_id, some_events(4, 4)), (other.run_id, some_events(1, 1))])
    assert await store.events.read(run.run_id) == some_events(1, 4)
    await store.threads.touch(thread.thread_id, history="digest")
    assert await losing().threads.take_history("", "digest") is not None
    key, _ = await losing().keys.add("key")
    assert await losing().keys.revoke(key.key_id)
    assert (await losing().runs.claim(run)).recoveries == 1
    assert (await losing().runs.change(run.run_id, process="another")).process == "another"
    assert await losing().threads.delete(thread.thread_id)


async def test_a_server_that_crashes_delays_calls_and_nothing_is_lost_or_done_twice(tmp_path):
    with running_cluster() as cluster:
        url = cluster.create()
        await migrate(url, load_migrations())
        async with opened(url, tmp_path, pool=4) as store:
            runs = [await stored_run(store, status="running") for _ in range(4)]

            async def work(run):
                for number in range(1, 41):
                    await store.events.append([(run.run_id, some_events(number, number))])
                    await store.ledger.begin(run.run_id, f"c{number}", "bash_tool", "{}")
                    await store.checkpointer.aput(PLACE, empty_checkpoint(), {}, {})

            with waiting(StoreWait(WaitLimit(60))):
                working = [asyncio.create_task(work(run)) for run in runs]
            for _ in range(2):
                await asyncio.wait(working, timeout=0.1)
                await asyncio.to_thread(cluster.stop)
                await asyncio.to_thread(cluster.start)
            await asyncio.gather(*working)
            for run in runs:
                assert await store.events.read(run.run_id) == some_events(1, 40)
                assert [call.attempts for call in await store.ledger.list_by_run(run.run_id)] == [1] * 40
            assert await store.runs.list_orphaned("server", [run.run_id for run in runs]) == []
            await asyncio.to_thread(cluster.stop)
            with pytest.raises(StoreUnreachable):
                await store.probe()
            await asyncio.to_thread(cluster.start)
            await store.threads.touch(runs[0].thread_id, "It goes on")


async def test_the_time_in_which_the_server_was_away_makes_nobody_dead(tmp_path):
    with running_cluster() as cluster:
        url = cluster.create()
        await migrate(url, load_migrations())
        async with opened(url, tmp_path) as store, opened(url, tmp_path, server=False) as other:
            run = await stored_run(other, status="running")
            await store.database.execute(
                "UPDATE processes SET beat_at = clock_timestamp() - interval '1 min'"
            )
            await asyncio.to_thread(cluster.stop)
            await asyncio.to_thread(cluster.start)
            assert await store.runs.list_orphaned("server") == []
            assert await store.runs.claim(run) is None


async def test_a_bell_names_the_run_and_its_newest_event(postgres_store):
    run = await stored_run(postgres_store)
    async with aclosing(postgres_store.database.listen("maniple_events")) as bells:
        assert await anext(bells) == "", "one looks for oneself first"
        await postgres_store.events.append([(run.run_id, some_events(1, 3))])
        assert await anext(bells) == f"{run.run_id} 3"


async def test_a_listener_looks_again_after_its_connection_was_lost(postgres_store):
    async with aclosing(postgres_store.database.listen("maniple_events")) as bells:
        assert await anext(bells) == ""
        await postgres_store.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
        )
        assert await anext(bells) == ""


async def test_no_value_of_a_checkpoint_holds_a_secret(postgres_store):
    saver, secret = postgres_store.checkpointer, "sk-canary-0123456789"
    saver.serde = RedactingSerializer(Redactor([secret]))
    values = {"text": f"my key is {secret}\0", "list": [secret]}
    versions = {name: saver.get_next_version(None, None) for name in values}
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    place = await saver.aput(PLACE, checkpoint, {}, versions)
    await saver.aput_writes(place, [("text", secret)], "task")
    rows = await postgres_store.database.fetch(
        "SELECT c::text, encode(b.blob, 'escape'), encode(w.blob, 'escape') "
        "FROM checkpoints c, checkpoint_blobs b, checkpoint_writes w"
    )
    assert len(rows) == 2
    assert secret not in str(rows)
    read = await saver.aget_tuple(place)
    assert read.checkpoint["channel_values"]["text"] == f"my key is {'*' * len(secret)}\0"


async def test_a_character_that_postgresql_does_not_store_is_replaced(postgres_store):
    thread = await postgres_store.threads.create(a_thread(title="a\0b"))
    assert (await postgres_store.threads.get(thread.thread_id, None)).title == "a\ufffdb"


async def test_the_runs_of_a_process_that_has_ended_are_orphans(postgres_store):
    run = await stored_run(postgres_store, status="running")
    await postgres_store.runs.change(run.run_id, process="ended")
    insert = "INSERT INTO processes (process, is_server, host, pid) VALUES ('ended', false, 'host', 1)"
    await postgres_store.database.execute(insert)
    assert await postgres_store.runs.list_orphaned(None) == []
    await postgres_store.database.execute("DELETE FROM processes WHERE process = 'ended'")
    (orphan,) = await postgres_store.runs.list_orphaned(None)
    assert (await postgres_store.runs.claim(orphan)).recoveries == 1


async def test_a_read_whose_caller_is_cancelled_again_and_again_keeps_its_connection(cluster, postgres_store):
    database = postgres_store.database
    own = "SELECT pid, query FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
    name = f"{database_module.APPLICATION_PREFIX}{postgres_store.process}"

    async with await psycopg.AsyncConnection.connect(cluster.url("postgres"), autocommit=True) as watching:

        async def connections() -> dict[int, str]:
            return dict(await (await watching.execute(own, (name,))).fetchall())

        before = await connections()
        for _ in range(8):
            with anyio.move_on_after(0.005) as scope:
                await database.fetch("SELECT pg_sleep(0.1)")
            assert scope.cancelled_caught
        assert await database.fetch("SELECT 1") == [(1,)]
        assert {*before} <= {*await connections()}


async def test_a_long_read_ends_soon_after_its_caller_has_left(cluster, postgres_store):
    with anyio.move_on_after(0.005) as scope:
        await postgres_store.database.fetch("SELECT pg_sleep(600)")
    assert scope.cancelled_caught
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(600)'"
    async with await psycopg.AsyncConnection.connect(cluster.url("postgres"), autocommit=True) as watching:

        async def has_ended() -> bool:
            return not await (await watching.execute(sleeping)).fetchall()

        await until(has_ended, 30)


async def test_a_store_that_closes_leaves_no_call_behind(open_postgres_again):
    async with open_postgres_again(server=True) as store:
        with anyio.move_on_after(0.005):
            await store.database.fetch("SELECT pg_sleep(600)")
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "store call"]
