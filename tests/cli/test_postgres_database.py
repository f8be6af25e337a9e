"""The commands and the server on a PostgreSQL database."""

import asyncio
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import MANIPLE, SERVER, environment, maniple, start
from tests.cli.test_serve import service
from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.postgres import Cluster

pytestmark = pytest.mark.anyio
PASSWORD = "s3cret-pass-0123"


@pytest.fixture
def empty(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder whose `.env` names a database without tables."""
    url = cluster.create()
    named = url.replace("postgres@", f"postgres:{PASSWORD}@")
    (tmp_path / ".env").write_text(f"MANIPLE_STORE__BACKEND=postgres\nMANIPLE_STORE__URL={named}\n")
    yield tmp_path
    cluster.drop(url)


@pytest.mark.slow
async def test_a_database_is_migrated_before_anything_uses_it(empty: Path) -> None:
    env = environment(empty, "")
    process = await start(SERVER, "--port", "0", folder=empty, env=env)
    _, notes = await process.communicate()
    assert (process.returncode, b"maniple db migrate" in notes, b"Traceback" in notes) == (1, True, False)
    told = [notes.decode()]
    for words in (("migrate",), ("migrate",), ("check",), ("vacuum",), ("export",)):
        status, output, notes = await maniple("db", *words, folder=empty, env=env)
        assert status == 0, (words, output, notes)
        told += [output, notes]
    assert "schema 0 and" in told[1]
    assert "schema 0" not in told[3]
    status, output, notes = await maniple("doctor", folder=empty, env=env)
    assert "✔ database " in output
    told += [output, notes]
    status, output, notes = await maniple("db", "backup", "copy", folder=empty, env=env)
    assert (status, "pg_dump" in notes) == (2, True)
    assert PASSWORD not in "".join(told) + output + notes
    assert not (empty / "data/maniple.db").exists()


@pytest.mark.slow
async def test_a_server_answers_from_postgresql_and_tells_the_run_after_its_restart(
    empty: Path,
) -> None:
    with serving(SIMPLE) as model:
        await answered_and_restarted(model, empty)


async def answered_and_restarted(server: OpenAIServer, empty: Path) -> None:
    env = environment(empty, server.base_url)
    assert (await maniple("db", "migrate", folder=empty, env=env))[0] == 0
    async with service(empty, server.base_url) as (url, _):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            body = {"messages": [{"role": "user", "content": f"1+3=? {PASSWORD}"}]}
            answer = await client.post("/api/chat/stream", json=body)
            assert answer.status_code == 200
            (thread,) = (await client.get("/api/threads")).json()["threads"]
    async with service(empty, server.base_url) as (url, _):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            (again,) = (await client.get("/api/threads")).json()["threads"]
    assert again["thread_id"] == thread["thread_id"]
    assert PASSWORD not in answer.text


async def test_a_worker_shows_its_figures_where_it_is_told(empty: Path) -> None:
    env = environment(empty, "http://127.0.0.1:9/v1")
    assert (await maniple("db", "migrate", folder=empty, env=env))[0] == 0
    process = await start(MANIPLE, "work", "--metrics-port", "0", folder=empty, env=env)
    assert process.stderr
    async with asyncio.timeout(60):
        while b"Metrics: " not in (line := await process.stderr.readline()):
            assert line, "the worker has ended"
    url = line.decode().split()[-1]
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        figures = (await client.get(url)).text
    assert "maniple_runs_running 0.0" in figures
    assert "maniple_queue_take_overs_total" in figures
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, _, notes = await maniple("work", "--metrics-port", port, folder=empty, env=env)
    assert (status, "--metrics-port" in notes, "Traceback" in notes) == (2, True, False)
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "ready"),
    [
        (("work",), b"Driving up to"),
        (("serve", "--port", "0", "--role", "api"), b"Serving on"),
    ],
)
async def test_a_service_that_starts_before_its_database_waits_for_it(
    cluster: Cluster, postgres_url: str, tmp_path: Path, arguments: tuple[str, ...], ready: bytes
) -> None:
    env = environment(tmp_path, "http://127.0.0.1:9/v1")
    env |= {"MANIPLE_STORE__BACKEND": "postgres", "MANIPLE_STORE__URL": postgres_url}
    await asyncio.to_thread(cluster.stop, "fast")
    try:
        process = await start(MANIPLE, *arguments, folder=tmp_path, env=env)
        notes = await read_to(process, b"Waiting for the store")
    finally:
        await asyncio.to_thread(cluster.start)
    notes += await read_to(process, ready)
    process.send_signal(signal.SIGTERM)
    _, rest = await process.communicate()
    assert process.returncode in (0, 128 + signal.SIGTERM)
    assert [(notes + rest).count(text) for text in (b"Waiting for the store", b"Traceback")] == [1, 0]


async def read_to(process: Process, text: bytes) -> bytes:
    """Read what a process notes, up to the line with this text."""
    assert process.stderr
    notes = b""
    async with asyncio.timeout(90):
        while text not in (line := await process.stderr.readline()):
            assert line, notes
            notes += line
    return notes + line
