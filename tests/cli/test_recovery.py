"""What becomes of a run whose program is killed, ended, or left by its reader."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import CTRL_C, ENTER, MAIN, PROMPT, environment, on_terminal, run, start
from tests.cli.scripts import HANGING, REPORT, hangs
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(HANGING) as running:
        yield running


async def ended_by(number: signal.Signals, server: OpenAIServer, folder: Path, *arguments: str) -> int | None:
    """Ask once, end the program by a signal while the coder works, and return its status."""
    return (await ended_with_notes(number, server, folder, *arguments))[0]


async def ended_with_notes(
    number: signal.Signals, server: OpenAIServer, folder: Path, *arguments: str
) -> tuple[int | None, str]:
    """As `ended_by`; return the notes, too."""
    env = environment(folder, server.base_url)
    process = await start(MAIN, *(arguments or ("1+3=?",)), folder=folder, env=env)
    try:
        await hangs(server)
        process.send_signal(number)
        async with asyncio.timeout(60):
            _, notes = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)
    return process.returncode, notes.decode()


async def test_a_killed_conversation_goes_on_at_the_next_start_and_is_shown_whole(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT, 40)
        terminal.type(f"1+3=?{ENTER}")
        await hangs(server)
        os.killpg(terminal.process.pid, signal.SIGKILL)
        await terminal.ended()
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(r'"1\+3=\?" was cut off .* Continuing', 40)
        for shown in (r"Plan: 1 \+ 3", r"python_repl_tool  print\(1\+3\)", r"1 \+ 3 = 4", r"answer is 4\.\s"):
            await terminal.see(shown)
        await terminal.see("✔ completed")
        await terminal.see(PROMPT)
        await terminal.enter("/save report.md", "Saved to")
        assert await terminal.leave() == 0

    assert (tmp_path / "report.md").read_text() == REPORT
    assert server.stats["by_role"]["planner"] == 1, "what was done is not done again"
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see("Ctrl-D quits", 40)
        await terminal.see(PROMPT)
        assert "cut off" not in terminal.text()


async def test_the_next_question_is_sent_immediately_and_the_killed_run_mentioned(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    assert await ended_by(signal.SIGKILL, server, tmp_path) == -9
    server.reset({**SIMPLE, "coordinator": [reply("Hello.")]})
    status, output, notes = await run("hello", folder=tmp_path, env=env)
    assert (status, output) == (0, "Hello.\n")
    assert re.search(r'^"1\+3=\?" was cut off .*: maniple chat --continue$', notes, re.M)

    status, output, notes = await run("--continue", folder=tmp_path, env=env)
    assert (status, output) == (0, REPORT)
    assert "Plan: 1 + 3" in notes.splitlines(), "it is shown from its beginning"
    status, output, notes = await run("--continue", folder=tmp_path, env=env)
    assert (status, output) == (0, "") and "No run was cut" in notes.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_program_that_is_ended_leaves_its_run_to_go_on(
    server: OpenAIServer, tmp_path: Path, number: signal.Signals
) -> None:
    status, notes = await ended_with_notes(number, server, tmp_path)
    assert status == 128 + number
    command = re.search(r"maniple chat (--thread \w+ --continue)$", notes.rstrip())
    assert command, notes
    env = environment(tmp_path, server.base_url)
    status, output, _ = await run(*command[1].split(), "--json", folder=tmp_path, env=env)
    lines = [json.loads(line) for line in output.splitlines()]
    assert status == 0
    assert [line["id"] for line in lines] == list(range(1, len(lines) + 1)), "told whole, each event once"


async def test_a_run_that_was_cancelled_does_not_go_on(server: OpenAIServer, tmp_path: Path) -> None:
    status, notes = await ended_with_notes(signal.SIGINT, server, tmp_path)
    assert status == 130
    assert "--continue" not in notes
    env = environment(tmp_path, server.base_url)
    assert "No run was cut" in (await run("--continue", folder=tmp_path, env=env))[2]


async def test_a_run_whose_reader_has_left_is_cancelled(tmp_path: Path) -> None:
    with serving({**SIMPLE, "coordinator": [reply("word " * 200, delay_seconds=0.05)]}) as server:
        env = environment(tmp_path, server.base_url)
        process = await start(MAIN, "--json", "hi", folder=tmp_path, env=env)
        assert process.stdout and process.stderr
        try:
            async with asyncio.timeout(60):
                await process.stdout.readline()
                process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
                await process.stderr.read()
                assert await process.wait() == 141
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert "No run was cut" in (await run("--continue", folder=tmp_path, env=env))[2]


async def test_a_closed_terminal_leaves_the_run_to_go_on(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT, 40)
        terminal.type(f"1+3=?{ENTER}")
        await hangs(server)
        terminal.close()
        assert await terminal.ended() == 128 + signal.SIGHUP
    status, output, _ = await run("--continue", folder=tmp_path, env=env)
    assert (status, output) == (0, REPORT)


async def test_a_run_that_goes_on_can_be_cancelled(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    await ended_by(signal.SIGKILL, server, tmp_path)
    server.reset({**SIMPLE, "coder": [{"hang": True}]})
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see("Continuing it now", 40)
        await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 1, 100)
        terminal.type(CTRL_C)
        await terminal.see("✘ cancelled")
        await terminal.see(PROMPT)
        assert await terminal.leave() == 0


@pytest.mark.slow
async def test_a_run_of_a_live_program_is_not_taken_over(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    first = await start(MAIN, "--json", "1+3=?", folder=tmp_path, env=env)
    assert first.stdout
    try:
        thread_id = json.loads(await first.stdout.readline())["data"]["thread_id"]
        await hangs(server)
        status, _, notes = await run("--thread", thread_id, "and 1+4?", folder=tmp_path, env=env)
        assert status == 1 and "Another process" in notes.splitlines()[-1]
        assert "No run was cut" in (await run("--continue", folder=tmp_path, env=env))[2]
    finally:
        first.kill()
        await first.communicate()


async def test_a_question_on_a_conversation_that_was_cut_off_comes_after_its_end(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    first = await start(MAIN, "--json", "1+3=?", folder=tmp_path, env=env)
    assert first.stdout
    try:
        thread_id = json.loads(await first.stdout.readline())["data"]["thread_id"]
        await hangs(server)
    finally:
        first.kill()
        await first.communicate()
    server.reset({**SIMPLE, "coordinator": [reply("And 5.")]})
    status, output, notes = await run("--thread", thread_id[:8], "and 1+4?", folder=tmp_path, env=env)
    assert (status, output) == (0, f"{REPORT}And 5.\n")
    assert re.search(r'"1\+3=\?" was cut off .* Continuing', notes)
    assert "The answer is **4**" in json.dumps(server.requests[-1])


@pytest.mark.slow
async def test_of_many_cut_off_runs_the_newest_goes_on_and_the_others_are_gone_on_with_or_dropped(
    tmp_path: Path,
) -> None:
    with serving({"coordinator": [{"hang": True}]}) as server:
        env = environment(tmp_path, server.base_url)
        for question in ("first", "second", "third"):
            process = await start(MAIN, question, folder=tmp_path, env=env)
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 1, 100)
            process.kill()
            await process.communicate()
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)
        server.reset({"coordinator": [reply("Hello.")]})
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see("cut off: 2", 40)
            await terminal.see('"third" was cut off just now')
            await terminal.see(r"Hello\.")
            await terminal.see(PROMPT)
            await terminal.enter(
                "/threads",
                "▸  1  .*  completed  third",
                " 2  .*  cut off    second",
                " 3  .*  cut off    first",
            )
            await terminal.enter("/cancel 2", 'Cancelled: "second"')
            await terminal.enter("/resume 3", '"first" was cut off just now', r"Hello\.")
            await terminal.enter("/threads", " 2  .*  cancelled  second", "▸  3  .*  completed  first")
            assert await terminal.leave() == 0
        assert server.stats["calls"] == 2, "the one that was cancelled asked no model"


async def test_a_tool_that_was_cut_off_is_not_run_again_without_a_word(tmp_path: Path) -> None:
    sleeps = call("python_repl_tool", code="import time; print('begun: ' + 'it'); time.sleep(25)")
    with serving({**SIMPLE, "coder": [sleeps, reply("1 + 3 = 4")]}) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"1+3=?{ENTER}")
            await terminal.see("begun: it")
            os.killpg(terminal.process.pid, signal.SIGKILL)
            await terminal.ended()
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see("Continuing it now", 40)
            await terminal.see("result is unknown")
            await terminal.see(r"code: import time; print\('begun: ' \+ 'it'\); time.sleep\(25\)")
            await terminal.see("again runs the tool")
            await terminal.see(PROMPT)
            await terminal.enter("result: It printed 4.", r"answer is 4\.\s")
            assert await terminal.leave() == 0
        assert "It printed 4." in json.dumps(server.requests)
