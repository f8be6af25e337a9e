"""What all processes share, as files and as rows: one contract."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from cryptography.fernet import Fernet

from maniple.config import Settings
from maniple.errors import ConfigError, StoreBusy, StoreError, StoreUnreachable
from maniple.locks import held_lock
from maniple.shared_texts import SharedTexts, TextFolder
from maniple.store.postgres.shared_texts import BlockingConnection, EncryptedTexts, TextRows
from maniple.store.shared_state import open_shared_state

pytestmark = pytest.mark.anyio
OpenTexts = Callable[..., SharedTexts]
"""Opens the same texts, as one more process does."""
KEY, OTHER_KEY = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.fixture(params=["files", "rows", "encrypted"])
def open_texts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenTexts]:
    with ExitStack() as stack:

        def open_rows(lock_seconds: float = 20.0) -> SharedTexts:
            connection = stack.enter_context(closing(BlockingConnection(url)))
            rows = TextRows(connection, "kind", lock_seconds)
            return rows if request.param == "rows" else EncryptedTexts(rows, [KEY])

        if request.param == "files":
            yield lambda lock_seconds=20.0: TextFolder(tmp_path / "texts", lock_seconds)
        else:
            url = request.getfixturevalue("postgres_url")
            yield open_rows


def test_a_text_is_what_was_written_last(open_texts: OpenTexts) -> None:
    texts = open_texts()
    assert (texts.read("a"), texts.stamp("a"), texts.names()) == (None, None, [])
    texts.write("b", "1")
    texts.write("a", "2 é\U0001f600 \\ %s ?")
    texts.write("b", "3")
    again = open_texts()
    assert (again.read("a"), again.read("b"), again.names()) == ("2 é\U0001f600 \\ %s ?", "3", ["a", "b"])
    texts.delete("a")
    texts.delete("a")
    assert (again.read("a"), again.names()) == (None, ["b"])


def test_each_write_changes_the_stamp_of_its_text_alone(open_texts: OpenTexts) -> None:
    texts, other = open_texts(), open_texts()
    texts.write("a", "1")
    other.write("b", "1")
    stamps = {(texts.stamp("a"), texts.stamp("b"))}
    for _ in range(3):
        other.write("a", "1")
        stamps.add((texts.stamp("a"), texts.stamp("b")))
    assert len(stamps) == 4
    assert len({b for _, b in stamps}) == 1
    assert texts.stamp("a") == other.stamp("a")


def test_many_that_change_a_text_under_its_lock_lose_nothing(open_texts: OpenTexts) -> None:
    def count() -> None:
        texts = open_texts()
        for _ in range(10):
            with texts.locked("a"):
                texts.write("a", str(int(texts.read("a") or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert open_texts().read("a") == "40"


def test_who_waits_too_long_for_a_lock_is_told_and_other_names_are_free(open_texts: OpenTexts) -> None:
    texts, other = open_texts(), open_texts(lock_seconds=0.2)
    with texts.locked("a"):
        with pytest.raises(StoreBusy), other.locked("a"):
            pass
        with other.locked("b"):
            pass
    with other.locked("a"):
        pass


async def test_a_caller_that_was_cancelled_while_it_waited_does_not_keep_the_lock(
    open_texts: OpenTexts,
) -> None:
    texts, other = open_texts(), open_texts()

    async def wait() -> None:
        async with held_lock(other.locked("a")):
            raise AssertionError("Two have the lock.")

    async with held_lock(texts.locked("a")):
        waiting = asyncio.create_task(wait())
        done, _ = await asyncio.wait({waiting}, timeout=0.1)
        assert not done
        waiting.cancel()
        await asyncio.wait({waiting})
    async with asyncio.timeout(15), held_lock(open_texts().locked("a")):
        pass


async def test_an_error_of_the_body_is_raised_and_frees_the_lock(open_texts: OpenTexts) -> None:
    with pytest.raises(ZeroDivisionError):
        async with held_lock(open_texts().locked("a")):
            raise ZeroDivisionError
    with pytest.raises(StoreBusy):
        async with held_lock(open_texts().locked("a")), held_lock(open_texts(lock_seconds=0.1).locked("a")):
            pass


def test_a_lock_is_lost_with_its_connection(postgres_url: str) -> None:
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> "
        "pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with closing(BlockingConnection(postgres_url)) as connection:
        texts = TextRows(connection, "kind", 20)
        with texts.locked("a"):
            with psycopg.connect(postgres_url) as killer:
                assert len(killer.execute(end.encode()).fetchall()) == 1
            with texts.locked("a"):
                pass


def test_a_connection_that_was_lost_is_made_again(postgres_url: str) -> None:
    with closing(BlockingConnection(postgres_url)) as connection:
        texts = TextRows(connection, "kind")
        texts.write("a", "1")
        with psycopg.connect(postgres_url) as killer:
            killer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database()"
            )
        assert texts.read("a") == "1"
    with pytest.raises(StoreError, match="closed"):
        texts.read("a")


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with closing(BlockingConnection(f"postgresql://u:hidden@/d?host={tmp_path}")) as connection:
        texts = TextRows(connection, "kind")
        for call in (lambda: texts.read("a"), lambda: texts.locked("a").__enter__()):
            with pytest.raises(StoreUnreachable) as caught:
                call()
            assert "hidden" not in str(caught.value)


def test_a_text_is_encrypted_in_the_database_and_needs_its_key(postgres_url: str) -> None:
    with closing(BlockingConnection(postgres_url)) as connection:
        rows = TextRows(connection, "login")
        EncryptedTexts(rows, [KEY]).write("a", "a secret token")
        assert "secret" not in (rows.read("a") or "")
        assert EncryptedTexts(rows, [OTHER_KEY, KEY]).read("a") == "a secret token"
        with pytest.raises(StoreError, match="MANIPLE_SECRET_KEY"):
            EncryptedTexts(rows, [OTHER_KEY]).read("a")
        EncryptedTexts(rows, [OTHER_KEY, KEY]).write("a", "another one")
        assert EncryptedTexts(rows, [OTHER_KEY]).read("a") == "another one"
        for call in (lambda one: one.read("a"), lambda one: one.write("a", "plain")):
            with pytest.raises(ConfigError, match="MANIPLE_SECRET_KEY"):
                call(EncryptedTexts(rows, []))


def settings_of(folder: Path, url: str, key: str | None = KEY) -> Settings:
    store = {"backend": "postgres", "url": url}
    folders = {"data_dir": folder / "data", "cache_dir": folder / "cache"}
    return Settings.model_validate({"store": store, "secret_key": key, **folders})


def test_files_of_an_earlier_version_become_rows_and_tokens_leave_the_disk(
    postgres_url: str, tmp_path: Path
) -> None:
    logins, accepted = tmp_path / "data/mcp/logins/s.json", tmp_path / "data/mcp/accepted/s.json"
    learned = tmp_path / "cache/capabilities.json"
    for file in (logins, accepted, learned):
        file.parent.mkdir(parents=True)
        file.write_text(f"earlier {file.parent.name}")
    for _ in range(2):
        with open_shared_state(settings_of(tmp_path, postgres_url)) as state:
            assert state.logins.read("s") == "earlier logins"
            assert state.accepted_tools.read("s") == "earlier accepted"
            assert state.endpoints.read("capabilities") == "earlier cache"
        assert [file.exists() for file in (logins, accepted, learned)] == [False, True, True]
    accepted.write_text("older than the row")
    with open_shared_state(settings_of(tmp_path, postgres_url)) as state:
        assert state.accepted_tools.read("s") == "earlier accepted"


def test_a_login_of_an_earlier_version_stays_while_there_is_no_key(postgres_url: str, tmp_path: Path) -> None:
    file, accepted = tmp_path / "data/mcp/logins/s.json", tmp_path / "data/mcp/accepted/s.json"
    for one in (file, accepted):
        one.parent.mkdir(parents=True)
        one.write_text("earlier")
    with open_shared_state(settings_of(tmp_path, postgres_url, None)) as state:
        assert state.logins.names() == []
        assert state.accepted_tools.read("s") == "earlier"
    assert file.exists()


@pytest.mark.parametrize("key", ["short", "x" * 44 + "!", "a" * 40, "é" * 32])
def test_a_key_of_another_length_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="openssl rand -base64 32"):
        Settings.model_validate({"secret_key": key})


def test_a_login_in_postgresql_takes_a_key() -> None:
    server = {"url": "https://s.example/mcp", "auth": "oauth"}
    given = {"store": {"backend": "postgres", "url": "postgresql://h/d"}, "mcpServers": {"s": server}}
    with pytest.raises(ValueError, match="MANIPLE_SECRET_KEY"):
        Settings.model_validate(given)
    assert Settings.model_validate({**given, "secret_key": "+/" * 21 + "+="}).secret_keys
    assert Settings.model_validate({**given, "mcpServers": {"s": {**server, "disabled": True}}})
