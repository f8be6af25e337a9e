"""`maniple mcp serve` as hosts start it: a process whose output carries the protocol alone."""

import asyncio
import json
import signal
import sqlite3
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from maniple.errors import McpError
from maniple.mcp.stdio import stdio_transport
from tests.cli.processes import MANIPLE, environment, start
from tests.mcp_server.hosts import ERAS, HANGING, HELLO, QUESTION, Host
from tests.openai_server import SIMPLE, OpenAIServer
from tests.serving import ROOT

pytestmark = [pytest.mark.anyio]


class Pipes:
    """The server's ends, as the client's transport wants them."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self.process = process
        self.reader, self.writer = process.stdout, process.stdin
        self.reason = ""

    def take_errors(self) -> str:
        return ""

    async def stop(self) -> None:
        """End it as hosts do: its input ends."""
        self.writer.close()
        await self.process.wait()


async def begun(model: OpenAIServer, home: Path, **more: str) -> Process:
    env = environment(home, model.base_url, MANIPLE_SANDBOX__BACKEND="off", PYTHONPATH=str(ROOT), **more)
    return await start(MANIPLE, "mcp", "serve", folder=home, env=env, stdin=PIPE)


@asynccontextmanager
async def hosted(model: OpenAIServer, home: Path, mode: Any = "auto") -> AsyncIterator[tuple[Host, Process]]:
    process = await begun(model, home)
    try:
        async with Client(stdio_transport(Pipes(process)), mode=mode) as client:
            yield Host(client), process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("mode", ERAS)
async def test_a_host_asks_the_team_and_receives_progress(model, tmp_path, mode):
    async with hosted(model, tmp_path, mode) as (host, process):
        run = await host.run(**QUESTION)
        assert "The answer is **4**." in run["answer"]
        assert "coder begins" in host.told
        assert not (await host.call("ask_team")).structured_content
    assert process.returncode == 0


async def test_a_run_whose_server_was_killed_goes_on_with_the_next_one(model, tmp_path):
    model.reset(HANGING)
    hears = asyncio.Event()
    with pytest.raises(McpError, match="its program ended"):
        async with hosted(model, tmp_path) as (host, process):

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                if message == "coder begins":
                    hears.set()

            asking = asyncio.ensure_future(
                host.client.call_tool("ask_team", QUESTION, progress_callback=hear)
            )
            await hears.wait()
            process.kill()
            await asking
    run_id = newest_run(tmp_path)
    model.reset(SIMPLE)
    async with hosted(model, tmp_path) as (host, _):
        left = await host.run("get_run", run_id=run_id)
        await host.run(
            question="And 1+4?", thread_id=left["thread_id"]
        )  # its turn comes after the other's end
        host.told.clear()
        run = await host.run("get_run", run_id=run_id)
    assert run["status"] == "completed"
    assert "The answer is **4**." in run["answer"]
    assert sum("You are the planner" in str(one) for one in model.requests) == 1  # of the second question


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None], ids=str)
async def test_a_server_that_is_ended_leaves_its_run_to_go_on_later(model, tmp_path, number):
    model.reset(HANGING)
    process = await begun(model, tmp_path)
    pipes = Pipes(process)
    await exchange(pipes, HELLO)
    call = {"name": "ask_team", "arguments": QUESTION, "_meta": {"progressToken": 7}}
    pipes.writer.write(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    pipes.writer.write(line({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
    while (await read_message(pipes))["params"]["message"] != "coder begins":
        pass
    if number is None:
        pipes.writer.close()
    else:
        process.send_signal(number)
    async with asyncio.timeout(60):
        rest, log = await process.communicate()
    assert process.returncode == 0, log.decode()
    assert all(json.loads(one)["jsonrpc"] for one in rest.splitlines())
    assert statuses(tmp_path) == ["running"]


async def test_the_output_carries_messages_alone_and_odd_input_ends_nothing(model, tmp_path):
    process = await begun(model, tmp_path, MANIPLE_LOGGING__LEVEL="DEBUG")
    pipes = Pipes(process)
    for odd in (b"\n", b"not json\n", b'{"jsonrpc": "2.0"}\n', b"[1]\n", b"\xff\xfe\n", b"{" * 5_000 + b"\n"):
        pipes.writer.write(odd)
    answer = await exchange(pipes, HELLO)
    assert answer["result"]["serverInfo"]["name"] == "maniple"
    pipes.writer.write(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    call = {"name": "ask_team", "arguments": QUESTION}
    answer = await exchange(pipes, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    assert (answer["id"], answer["result"]["isError"]) == (2, False)
    pipes.writer.close()
    async with asyncio.timeout(60):
        rest, log = await process.communicate()
    assert (process.returncode, rest) == (0, b"")
    assert b"The run begins" in log
    assert b"sk-canary" not in log


async def test_without_a_model_each_call_returns_the_reason(model, tmp_path):
    absent = {"MANIPLE_EMBEDDED__ENABLED": "false", "MANIPLE_EMBEDDED__DISCOVER": "false", "BASIC_MODEL": ""}
    process = await begun(model, tmp_path, **absent, BASIC_API_KEY="", BASIC_BASE_URL="")
    pipes = Pipes(process)
    await exchange(pipes, HELLO)
    pipes.writer.write(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    call = {"name": "ask_team", "arguments": QUESTION}
    answer = await exchange(pipes, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    assert answer["result"]["isError"] is True
    assert "No model is configured" in answer["result"]["content"][0]["text"]
    pipes.writer.close()
    async with asyncio.timeout(60):
        rest, log = await process.communicate()
    assert (process.returncode, rest) == (1, b"")
    assert b"No model is configured" in log


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def read_message(pipes: Pipes) -> dict[str, Any]:
    async with asyncio.timeout(60):
        return json.loads(await pipes.reader.readline())


async def exchange(pipes: Pipes, message: dict[str, Any]) -> dict[str, Any]:
    """Send a request, and return the answer: with no token there is nothing else."""
    pipes.writer.write(line(message))
    return await read_message(pipes)


def newest_run(home: Path) -> str:
    with closing(sqlite3.connect(home / "data/maniple.db")) as database, database:
        [(run_id,)] = database.execute("SELECT run_id FROM runs").fetchall()
    database.close()
    return run_id


def statuses(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "data/maniple.db")) as database, database:
        found = [status for (status,) in database.execute("SELECT status FROM runs")]
    database.close()
    return found


async def test_without_a_host_the_command_ends_and_names_the_remedy(tmp_path: Path) -> None:
    env = environment(tmp_path, "http://127.0.0.1:9/v1", PYTHONPATH=str(ROOT))
    process = await start(MANIPLE, "mcp", "serve", folder=tmp_path, env=env, stdin=DEVNULL)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"--http" in errors
