import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from maniple.store import open_store
from tests.cli.processes import SERVER, environment, maniple, start
from tests.openai_server import SIMPLE, OpenAIServer, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as running:
        yield running


@asynccontextmanager
async def service(
    folder: Path, base_url: str, *arguments: str, **variables: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """`server.py` on a free port, from the moment in which it says where."""
    arguments = arguments or ("--port", "0")
    process = await start(
        SERVER, *arguments, folder=folder, env={**environment(folder, base_url), **variables}
    )
    assert process.stderr
    try:
        async with asyncio.timeout(40):
            said = b""
            while not (found := re.search(rb"Serving on (http://[0-9.]+:\d+) ", said)):
                line = await process.stderr.readline()
                assert line, said
                said += line
        yield found[1].decode(), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_page_is_opened_in_the_browser_if_wanted(server: OpenAIServer, tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o700)
    arguments = ("--port", "0", "--open")
    async with service(tmp_path, server.base_url, *arguments, BROWSER=f"{browser} %s") as (url, _):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
            assert (await client.get("/healthz")).status_code == 200
    assert opened.read_text(encoding="utf-8").strip() == url


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_service_answers_and_a_signal_stops_it(
    server: OpenAIServer, tmp_path: Path, number: signal.Signals
) -> None:
    async with service(tmp_path, server.base_url) as (url, process):
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            health = await client.get("/healthz")
            body = {"messages": [{"role": "user", "content": "1+3=?"}]}
            answer = await client.post("/api/chat/stream", json=body, timeout=60)
        process.send_signal(number)
        async with asyncio.timeout(60):
            status = await process.wait()

    assert (health.status_code, status) == (200, 0)
    assert "event: final_session_state" in answer.text


async def test_a_taken_port_is_a_sentence(server: OpenAIServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = await start(
            SERVER, "--port", port, folder=tmp_path, env=environment(tmp_path, server.base_url)
        )
        _, notes = await process.communicate()

    assert process.returncode == 2
    assert f"Cannot serve on 127.0.0.1, port {port}: Address already in use." in notes.decode()
    assert "Traceback" not in notes.decode()


async def test_a_server_beyond_this_machine_refuses_to_start(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    process = await start(SERVER, "--host", "0.0.0.0", "--port", "0", folder=tmp_path, env=env)
    _, notes = await process.communicate()
    assert process.returncode == 2
    assert "no API key" in notes.decode()
    assert "maniple keys add NAME" in notes.decode() and "--insecure" in notes.decode()


@pytest.mark.slow
async def test_a_server_beyond_this_machine_starts_when_there_is_a_key_that_is_valid(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    _, secret, notes = await maniple("keys", "add", "alice", folder=tmp_path, env=env)
    host = ("--host", "0.0.0.0", "--port", "0")
    async with service(tmp_path, server.base_url, *host) as (url, process):
        local = url.replace("0.0.0.0", "127.0.0.1")
        async with httpx.AsyncClient(base_url=local, trust_env=False) as client:
            body = {"messages": [{"role": "user", "content": "1+3=?"}]}
            refused = await client.post("/api/chat/stream", json=body)
            headers = {"x-api-key": secret.strip()}
            answer = await client.post("/api/chat/stream", json=body, headers=headers, timeout=60)
        process.terminate()
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    assert (refused.status_code, answer.status_code) == (401, 200)
    await maniple("keys", "revoke", notes.split("Created key ")[1].split()[0], folder=tmp_path, env=env)
    process = await start(SERVER, *host, folder=tmp_path, env=env)
    _, notes = await process.communicate()
    assert (process.returncode, b"no API key" in notes) == (2, True)


async def test_a_server_with_only_revoked_keys_warns_that_it_refuses_all_requests(
    server: OpenAIServer, tmp_path: Path
) -> None:
    async with open_store(tmp_path / "data/maniple.db", tmp_path / "artifacts", server=False) as store:
        key, _ = await store.keys.add("only")
        await store.keys.revoke(key.key_id)
    async with service(tmp_path, server.base_url) as (url, process):
        assert process.stderr
        async with asyncio.timeout(60):
            said = (await process.stderr.readline()).decode()
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            refused = await client.get("/api/threads")
    assert "maniple keys add NAME" in said and "maniple keys forget" in said
    assert refused.status_code == 401


async def test_a_second_server_on_the_same_database_is_refused_with_words(
    server: OpenAIServer, tmp_path: Path
) -> None:
    async with service(tmp_path, server.base_url) as (_, first):
        env = environment(tmp_path, server.base_url)
        second = await start(SERVER, "--port", "0", folder=tmp_path, env=env)
        _, notes = await second.communicate()
        assert first.returncode is None
    assert second.returncode == 1
    assert f"Another server (pid {first.pid}) has {tmp_path}/data/maniple.db open." in notes.decode()
    assert "Traceback" not in notes.decode()


async def test_a_stopping_server_sends_every_client_the_end(tmp_path: Path) -> None:
    with serving({**SIMPLE, "coder": [{"hang": True}]}) as model:
        async with service(tmp_path, model.base_url) as (url, process):
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
                body = {"messages": [{"role": "user", "content": "1+3=?"}]}
                answer = asyncio.create_task(client.post("/api/chat/stream", json=body))
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1, 100)
                process.send_signal(signal.SIGTERM)
                text = (await answer).text
            async with asyncio.timeout(60):
                status = await process.wait()
    assert '"code": "stopping"' in text
    assert text.rstrip().rpartition("event: ")[2].startswith("final_session_state")
    assert status == 0
