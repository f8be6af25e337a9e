"""A data folder of an earlier version with a row in each table, and what a move has made of it."""

import sqlite3
import tarfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from maniple.store import open_store
from tests.upgrade.make_data_folder import ARCHIVE

DERIVED = {"run_texts", "run_words", "run_trigrams"}
"""What the search reads, which a server makes again."""
OF_LANGGRAPH = {"checkpoints", "writes", "checkpoint_blobs", "checkpoint_writes"}
"""The tables in which LangGraph's two savers differ: tests read them by the savers."""
OF_POSTGRES = {"processes", "schema_versions", "shared_texts", "write_receipts"}
"""Tables of PostgreSQL alone, beside those of the queue. Who adds one says here how a move treats it."""
OF_QUEUE = "procrastinate_"
_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
_POSTGRES_TABLES = (
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema = 'maniple' AND table_type = 'BASE TABLE'"
)
Row = tuple[Any, ...]


def unpack_data(folder: Path) -> Path:
    """Return the database of an earlier version, whose runs wait, are queued, and were cut off."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "data" / "maniple.db"


async def make_full(file: Path) -> None:
    """Bring a database to today's schema, and give each table a row."""
    async with open_store(file, file.parent / "artifacts", server=False):
        pass
    fill(file)
    empty = [one for one in list_tables(file) if read_file(file, f"SELECT count(*) FROM {one}") == [(0,)]]
    assert not empty, f"{empty} are new tables without a row: give them one in `fill`"


def list_tables(file: Path) -> set[str]:
    """Return the tables of a SQLite database whose rows a move copies alike."""
    names = {name for (name,) in read_file(file, _TABLES) if not name.startswith("sqlite_")}
    return names - DERIVED - OF_LANGGRAPH


def require_same(file: Path, url: str) -> None:
    """Assert that both databases have the same rows in all tables, in the same order."""
    tables = list_tables(file)
    known = tables | DERIVED | OF_LANGGRAPH | OF_POSTGRES
    stored = {name for (name,) in read_postgres(url, _POSTGRES_TABLES) if not name.startswith(OF_QUEUE)}
    assert stored <= known, f"a move forgets {stored - known}"
    for table in sorted(tables):
        sql = select_all(file, table)
        before, after = (without_zeros(rows) for rows in (read_file(file, sql), read_postgres(url, sql)))
        # Where no column gives the order, each database sorts texts in its own one.
        is_ordered = "position" in sql.partition("ORDER BY")[2]
        assert after == before if is_ordered else sorted(after, key=repr) == sorted(before, key=repr), table
    writes = read_file(file, "SELECT count(*) FROM writes")
    assert read_postgres(url, "SELECT count(*) FROM checkpoint_writes") == writes
    checkpoints = "SELECT checkpoint_id FROM checkpoints ORDER BY "
    assert read_postgres(url, f"{checkpoints} position") == read_file(file, f"{checkpoints} rowid")


def require_same_files(file: Path, back: Path) -> None:
    """Assert that a file that came back has the same rows in all tables, in the same order."""
    for table in sorted(list_tables(file)):
        sql = select_all(file, table)
        assert read_file(back, sql) == without_zeros(read_file(file, sql)), table
    keys = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY rowid"
    assert read_file(back, keys) == read_file(file, keys) != []
    writes = "SELECT thread_id, checkpoint_id, task_id, idx, value FROM writes ORDER BY 1, 2, 3, 4"
    assert read_file(back, writes) == read_file(file, writes) != []


def require_empty(file: Path, url: str) -> None:
    """Assert that a PostgreSQL database has no row of the tables that a move fills, or no table."""
    stored = {name for (name,) in read_postgres(url, _POSTGRES_TABLES)}
    for table in stored & (list_tables(file) | OF_LANGGRAPH):
        assert read_postgres(url, f"SELECT count(*) FROM {table}") == [(0,)], table


def select_all(file: Path, table: str) -> str:
    """Return the statement that reads all rows of a table, without the positions, which a move gives anew."""
    names = [name for (name,) in read_file(file, f"SELECT name FROM pragma_table_info('{table}')")]
    order = "position" if "position" in names else ", ".join(names)
    columns = ", ".join(name for name in names if name != "position")
    return f"SELECT {columns} FROM {table} ORDER BY {order}"


def without_zeros(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose texts have what PostgreSQL stores for a character that it does not take."""
    return [
        tuple(one.replace("\0", "\ufffd") if isinstance(one, str) else one for one in row) for row in rows
    ]


def ignore(table: str, done: int, total: int) -> None:
    """Report nothing."""


def read_file(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def read_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options="-c search_path=maniple") as connection:
        return connection.execute(sql.encode()).fetchall()


def fill(file: Path) -> None:
    """Give each table of today's schema that the folder has empty a row with unusual values."""
    now = "1764400000.5"
    with closing(sqlite3.connect(file)) as connection:
        ((run,),) = connection.execute("SELECT run_id FROM runs ORDER BY position LIMIT 1").fetchall()
        page = "'https://example.org/\u00e9\U0001f600', 'a\tb\\n\nc'"
        for statement in (
            f"INSERT INTO api_keys VALUES (1, 'k', 'n\\', 'd', {now}, NULL, '{{}}')",
            f"INSERT INTO spent VALUES ('', {now}, NULL, 1, 2, 3, 9007199254740993, 0.1, 1e-9)",
            f"INSERT INTO source_texts VALUES ('{run}', 's', 3, 'x' || char(0) || 'y')",
            f"INSERT INTO sources VALUES ('{run}', 1, {page}, 't', 'web', {now}, 's', 1, '', '', '')",
            f"INSERT INTO source_aliases VALUES (1, '{run}', 1, {page}, 0)",
            f"INSERT INTO readings VALUES (1, '{run}', 1, '{run}', 's')",
            f"INSERT INTO unread_pages VALUES (1, '{run}', {page}, 'r', {now})",
            f"INSERT INTO findings VALUES (1, '{run}', 1, 's', 'q', 's', 0, 3, {now}, 0)",
            f"INSERT INTO page_attempts VALUES (1, '{run}', 1, {page})",
            "INSERT INTO schedules VALUES (1, 's', '', 'n', 'c', 'UTC', 'skip', 1, NULL, '', 0.5, 0, 1)",
            f"INSERT INTO schedule_ticks VALUES ('s', {now}, '{run}', 'started', '')",
            f"INSERT INTO webhooks VALUES (1, 'w', '', 'u', ',completed,', 's', {now}, '')",
            "INSERT INTO webhook_deliveries (delivery_id, webhook_id, run_id, thread_id, status, at, "
            f"next_at) VALUES ('d', 'w', 'r', 't', 'completed', {now}, {now})",
            f"INSERT INTO batches VALUES (1, 'b', '', 'server', 'n', '{{}}', '{{}}', '{{}}', 1, 1, {now}, 1)",
            "INSERT INTO batch_items VALUES ('b', 1, 'i', 'waiting', 0, '', '', 7, 0, 0, 0.1, 0)",
        ):
            connection.execute(statement)
        connection.commit()
