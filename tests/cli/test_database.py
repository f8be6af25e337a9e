import json
import shutil
from pathlib import Path

import pytest

from maniple.store import Thread, open_store
from tests.cli.processes import environment, maniple, run
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio
DATABASE = "data/maniple.db"


async def filled(folder: Path) -> None:
    async with open_store(folder / DATABASE, folder / "data/artifacts", server=False) as store:
        for name in ("first", "second"):
            await store.threads.create(Thread(f"{name}-thread", "", name, 1.0, 1.0))


async def test_the_database_is_checked_and_vacuumed_while_a_server_has_it_open(tmp_path: Path) -> None:
    await filled(tmp_path)
    env = environment(tmp_path, "")
    async with open_store(tmp_path / DATABASE, tmp_path / "data/artifacts", server=True):
        status, output, _ = await maniple("db", "check", folder=tmp_path, env=env)
        assert status == 0 and output.startswith(f"✔ {tmp_path}/{DATABASE} ")
        status, output, _ = await maniple("db", "vacuum", folder=tmp_path, env=env)
        assert status == 0
        assert output.startswith(f"{tmp_path}/{DATABASE}: ")


async def test_conversations_are_exported_as_lines_of_json(tmp_path: Path) -> None:
    await filled(tmp_path)
    env = environment(tmp_path, "")
    status, output, notes = await maniple("db", "export", folder=tmp_path, env=env)
    lines = [json.loads(line) for line in output.splitlines()]
    assert (status, [line["title"] for line in lines]) == (0, ["second", "first"])
    assert f"{tmp_path}/{DATABASE}" in notes

    arguments = ("db", "export", "--thread", "first", "--output", "first.jsonl")
    status, output, notes = await maniple(*arguments, folder=tmp_path, env=env)
    assert (status, output, notes.splitlines()[-1]) == (0, "", "Wrote 1 record to first.jsonl.")
    assert json.loads((tmp_path / "first.jsonl").read_text())["thread_id"] == "first-thread"
    status, _, notes = await maniple(*arguments, folder=tmp_path, env=env)
    assert status == 2 and notes.startswith("first.jsonl exists")
    status, _, notes = await maniple("db", "export", "--thread", "third", folder=tmp_path, env=env)
    assert status == 2 and "no conversation 'third'" in notes.splitlines()[-1]


async def test_a_backup_made_beside_a_server_holds_all_that_is_retained(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    async with open_store(tmp_path / DATABASE, tmp_path / "data/artifacts", server=True) as store:
        run = await stored_run(store)
        await store.events.append([(run.run_id, some_events(1, 5))])
        made = await store.artifacts.add(run, "a.txt", "text/plain", b"content")
        _, secret = await store.keys.add("somebody")
        status, output, _ = await maniple("db", "backup", "copies/1", folder=tmp_path, env=env)
        assert status == 0 and output.endswith(" copies/1.\n")
        status, _, notes = await maniple("db", "backup", "copies/1", folder=tmp_path, env=env)
        assert status == 2 and notes.startswith("copies/1 exists")
    copy = tmp_path / "copies/1"
    assert [oct(path.stat().st_mode & 0o777) for path in (copy, copy / "maniple.db")] == ["0o700", "0o600"]
    async with open_store(copy / "maniple.db", copy / "artifacts", server=True) as store:
        assert await store.check() == []
        [left] = await store.runs.list_orphaned("server")
        assert left.run_id == run.run_id
        assert len(await store.events.read(run.run_id)) == 5
        assert await (await store.artifacts.open(made)).read() == b"content"
        assert await store.keys.find(secret) is not None


async def test_a_backup_of_a_database_elsewhere_holds_its_own_artifacts_and_no_others(tmp_path: Path) -> None:
    file, shared = tmp_path / "other.db", tmp_path / "data/artifacts"
    env = environment(tmp_path, "", MANIPLE_STORE__PATH=str(file))
    async with open_store(tmp_path / DATABASE, shared, server=False) as anothers:
        await anothers.artifacts.add(await stored_run(anothers), "x", "text/plain", b"another's")
    async with open_store(file, tmp_path / "other.db.artifacts", server=False) as store:
        own = await store.artifacts.add(await stored_run(store), "b", "text/plain", b"own")
    assert (await maniple("db", "backup", "copy", folder=tmp_path, env=env))[0] == 0
    copy = tmp_path / "copy"
    assert {path.name for path in (copy / "artifacts").iterdir()} == {own.artifact_id}
    async with open_store(copy / "maniple.db", copy / "artifacts", server=False) as store:
        assert await store.check() == []


async def test_a_backup_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with open_store(tmp_path / DATABASE, tmp_path / "data/artifacts", server=True) as store:
        await store.artifacts.add(await stored_run(store), "a.txt", "text/plain", b"content")
    shutil.rmtree(tmp_path / "data/artifacts")
    (tmp_path / "data/artifacts").write_text("no folder")
    status, _, notes = await maniple("db", "backup", "copy", folder=tmp_path, env=environment(tmp_path, ""))
    assert (status, "Traceback" in notes, "artifacts could not be" in notes) == (1, False, True)
    assert not (tmp_path / "copy").exists()


async def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    status, output, _ = await maniple("db", "check", folder=tmp_path, env=environment(tmp_path, ""))
    assert (status, output) == (0, f"There is no database yet: {tmp_path}/{DATABASE} does not exist.\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "settings", "words"),
    [
        ("no database\n" * 1000, {}, "is damaged or not a database"),
        ("", {"MANIPLE_STORE__PATH": "/proc/none/maniple.db"}, "/proc/none"),
        ("", {"MANIPLE_STORE__PATH": "/dev/full"}, "/dev/full"),
    ],
)
async def test_a_database_that_cannot_be_used_is_a_sentence_at_the_start(
    tmp_path: Path, content: str, settings: dict[str, str], words: str
) -> None:
    (tmp_path / "data").mkdir()
    if content:
        (tmp_path / DATABASE).write_text(content)
    env = environment(tmp_path, "http://127.0.0.1:1/v1", **settings)
    status, output, notes = await run("hello", folder=tmp_path, env=env)
    assert (status, output) == (1, "")
    assert words in notes and "Traceback" not in notes


async def test_a_damaged_database_is_found_and_left_as_it_is(tmp_path: Path) -> None:
    await filled(tmp_path)
    file = tmp_path / DATABASE
    damaged = file.read_bytes()[:1000] + b"x" * 20_000
    file.write_bytes(damaged)
    status, output, notes = await maniple("db", "check", folder=tmp_path, env=environment(tmp_path, ""))
    assert status == 1
    assert f"{file}" in notes + output and "Traceback" not in notes
    assert file.read_bytes() == damaged
