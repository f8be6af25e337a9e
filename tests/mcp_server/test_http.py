"""The team's MCP server over streamable HTTP: whom it lets in, and what they find."""

import asyncio
import re
import signal
from asyncio.subprocess import Process
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.cli.processes import MANIPLE, environment, maniple, start
from tests.mcp_server.hosts import ASKING, ERAS, HANGING, HELLO, QUESTION, Host, Person, words
from tests.mcp_server.site import Site, site
from tests.openai_server import BRIEF, SIMPLE, OpenAIServer, reply
from tests.serving import ROOT

pytestmark = pytest.mark.anyio
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
async def here(model: OpenAIServer, tmp_path: Path):
    model.reset(SIMPLE)
    async with site(model.base_url, tmp_path) as found:
        yield found


async def address(process: Process) -> str:
    """Return where the process says that it serves."""
    assert process.stderr is not None
    said = b""
    async with asyncio.timeout(60):
        while not (found := re.search(rb"Serving MCP on (http://127\.0\.0\.1:\d+/mcp)\.", said)):
            piece = await process.stderr.readline()
            assert piece, said.decode()
            said += piece
    return found[1].decode()


async def test_the_command_serves_until_it_is_stopped(model, tmp_path):
    model.reset(SIMPLE)
    env = environment(tmp_path, model.base_url, MANIPLE_SANDBOX__BACKEND="off", PYTHONPATH=str(ROOT))
    process = await start(MANIPLE, "mcp", "serve", "--http", "--port", "0", folder=tmp_path, env=env)
    try:
        url = await address(process)
        async with Client(url, mode="legacy") as client:
            host = Host(client)
            assert "The answer is **4**." in (await host.run(**QUESTION))["answer"]
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
        assert (process.returncode, output) == (0, b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--http", "--host", "0.0.0.0"], "there is no API key"),
        (["--port", "9000"], "--http"),
    ],
)
async def test_what_would_be_unsafe_or_senseless_is_refused(tmp_path, options, told):
    env = environment(tmp_path, "http://127.0.0.1:9/v1")
    status, output, notes = await maniple("mcp", "serve", *options, folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    assert told in " ".join(notes.split())


@pytest.mark.parametrize("mode", ERAS)
async def test_a_host_starts_a_run_follows_it_and_answers_its_question(model, tmp_path, mode):
    model.reset(ASKING)
    person = Person(["2026"])
    async with site(model.base_url, tmp_path) as here:
        async with here.host(mode=mode, person=person) as host:
            run = await host.run(**QUESTION)
            assert run["status"] == "completed"
            assert person.asked == ["Which year?\n- 2025\n- 2026"]
            if mode == "legacy":  # the newest protocol numbers each round of the call anew
                assert {"planner begins", "calls ask_human", "reporter begins"} <= {*host.told}


async def test_once_a_key_exists_requests_without_one_are_refused(here: Site):
    _, secret = await here.key("alice")
    async with httpx.AsyncClient(headers=ACCEPT) as client:
        for headers in ({}, {"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}):
            response = await client.post(here.url, json=HELLO, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Bearer")
        response = await client.post(here.url, json=HELLO, headers={"x-api-key": secret})
        assert response.status_code == 200


@pytest.mark.parametrize("mode", ERAS)
async def test_another_keys_run_and_conversation_are_not_found(here: Site, mode):
    _, alice = await here.key("alice")
    _, bob = await here.key("bob")
    async with here.host(alice, mode=mode) as host:
        run = await host.run(**QUESTION)
        assert (await host.run("get_run", run_id=run["run_id"]))["status"] == "completed"
    async with here.host(bob, mode=mode) as host:
        result = await host.call("get_run", run_id=run["run_id"])
        assert (result.is_error, words(result)) == (True, "The run does not exist.")
        own = await host.run(thread_id=run["thread_id"], **QUESTION)
        assert "assistant" not in str(own["answer"])
    [asked] = await here.service.store.runs.list_by_thread(run["thread_id"], 10)
    assert asked.run_id == run["run_id"]


async def test_another_keys_session_is_not_found(here: Site):
    _, alice = await here.key("alice")
    _, bob = await here.key("bob")
    async with httpx.AsyncClient(headers=ACCEPT) as client:
        response = await client.post(here.url, json=HELLO, headers={"x-api-key": alice})
        session = {"mcp-session-id": response.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        answers = [
            await client.post(here.url, json=listing, headers={"x-api-key": secret, **session})
            for secret in (alice, bob)
        ]
    assert [answer.status_code for answer in answers] == [200, 404]


async def test_a_revoked_key_receives_no_more_events(model, tmp_path):
    model.reset(HANGING)
    async with site(model.base_url, tmp_path) as here:
        key_id, secret = await here.key("alice")
        async with here.host(secret, mode="legacy") as host:
            began = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                if message == "coder begins":
                    began.set()

            asking = asyncio.ensure_future(
                host.client.call_tool("ask_team", QUESTION, progress_callback=hear)
            )
            await began.wait()
            await here.service.store.keys.revoke(key_id)
            result = await asking
            assert (result.is_error, words(result)) == (True, "The API key was revoked. The run continues.")
            with pytest.raises(MCPError):
                await host.call("get_run", run_id="x")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.test"}, 400),
        ({"origin": "https://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "https://desk.test"}, 200),
        ({}, 200),
    ],
)
async def test_pages_of_strangers_reach_nothing(model, tmp_path, headers, status):
    server = {"cors_origins": ["https://desk.test"]}
    async with site(model.base_url, tmp_path, server=server) as here:
        async with httpx.AsyncClient(headers=ACCEPT) as client:
            assert (await client.post(here.url, json=HELLO, headers=headers)).status_code == status


async def test_too_large_a_request_is_refused(here: Site):
    async with httpx.AsyncClient(headers=ACCEPT) as client:
        response = await client.post(here.url, json={**HELLO, "more": "x" * 1_100_000})
    assert response.status_code == 413


@pytest.mark.parametrize("mode", ERAS)
async def test_a_host_that_gives_up_waiting_leaves_its_run(model, tmp_path, mode):
    model.reset(HANGING)
    async with site(model.base_url, tmp_path) as here:
        async with here.host(mode=mode) as host:
            began = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                if message == "coder begins":
                    began.set()

            async with anyio.create_task_group() as calls:
                calls.start_soon(lambda: host.client.call_tool("ask_team", QUESTION, progress_callback=hear))
                await began.wait()
                calls.cancel_scope.cancel()
        async with here.host(mode=mode) as host:  # another connection of the same caller
            run = await host.run("get_run")
            assert run["status"] == "running"
            assert (await host.run("cancel_run", run_id=run["run_id"]))["status"] == "cancelled"


async def test_another_keys_run_is_neither_the_newest_nor_to_be_cancelled(here: Site):
    (_, mine), (_, other) = await here.key("mine"), await here.key("other")
    async with here.host(mine) as host:
        run = await host.run(**QUESTION)
    async with here.host(other) as host:
        assert (await host.call("get_run")).is_error
        assert (await host.call("cancel_run", run_id=run["run_id"])).is_error


@pytest.mark.slow
async def test_twenty_hosts_at_once_each_get_their_own_answer(model, tmp_path):
    model.reset({**BRIEF, "reporter": [reply("The report of {run}.")]})

    async def ask(number: int) -> str:
        async with here.host() as host:
            return (await host.run(question=f"1+3=? #run=r{number}"))["answer"]

    async with site(model.base_url, tmp_path) as here:
        answers = await asyncio.gather(*map(ask, range(20)))
    assert answers == [f"The report of r{number}." for number in range(20)]
