"""What libraries warn of does not disturb the person who chats, and is not lost."""

import asyncio
import shlex
import stat
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from tests.cli.processes import MAIN, PROMPT, environment, on_terminal, run
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"
# Read by Python itself when it starts: a library of ours that warns when a run begins.
LIBRARY = f"""
import logging, warnings
import maniple.runs.driver as driver

def info(words, *_):
    logging.getLogger("somelib").warning("a library's warning with {KEY}")
    warnings.warn("a Python warning", RuntimeWarning)
    logging.getLogger("somelib").info("a library's chatter")

driver._LOG.info = info
"""


@pytest.fixture
def env(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(LIBRARY, encoding="utf-8")
    with serving(SIMPLE) as server:
        yield environment(tmp_path, server.base_url, PYTHONPATH=str(tmp_path))


async def test_at_a_terminal_warnings_go_to_a_file_and_nothing_of_them_is_shown(tmp_path, env):
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT, 40)
        await terminal.enter("1+3=?", "completed")
        assert await terminal.leave() == 0
        shown = terminal.text()
    assert "warning" not in shown
    assert "chatter" not in shown
    file = tmp_path / "data" / "chat.log"
    log = file.read_text(encoding="utf-8")
    assert "a library's warning with ***" in log
    assert "a Python warning" in log
    assert "a library's chatter" in log
    assert "[info" in log
    assert KEY not in log
    assert "\x1b" not in log, "a file takes no colours"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_the_level_that_is_set_counts_in_chat_too(tmp_path, env):
    async with on_terminal(
        "1+3=?", folder=tmp_path, env={**env, "MANIPLE_LOGGING__LEVEL": "ERROR"}
    ) as terminal:
        assert await terminal.ended(60) == 0
        assert "warning" not in terminal.text()
    assert not (tmp_path / "data" / "chat.log").exists(), "nothing was to be written"


async def test_no_log_line_is_between_the_lines_of_a_plan(tmp_path, env):
    status, _, notes = await run("chat", "1+3=?", folder=tmp_path, env=env)
    assert status == 0
    assert "warning" not in notes
    log = (tmp_path / "data" / "chat.log").read_text(encoding="utf-8")
    assert "a library's warning with ***" in log


@pytest.mark.parametrize(("format", "beginning"), [("console", "20"), ("json", '{"')])
async def test_a_program_gets_warnings_on_stderr_in_plain_lines(tmp_path, env, format, beginning):
    told = {**env, "MANIPLE_LOGGING__FORMAT": format}
    status, output, notes = await run("chat", "1+3=?", folder=tmp_path, env=told)
    assert status == 0
    assert "warning" not in output
    (line, *_) = [line for line in notes.splitlines() if "a library's warning with ***" in line]
    assert line.startswith(beginning)
    assert "chatter" not in notes
    assert KEY not in notes
    assert "\x1b" not in notes
    assert not (tmp_path / "data" / "chat.log").exists()


@pytest.mark.slow
async def test_without_a_stderr_the_team_answers_and_warnings_go_to_the_file(tmp_path, env):
    command = shlex.join([sys.executable, str(MAIN), "1+3=?"])
    process = await asyncio.create_subprocess_shell(
        f"exec {command} 2>&-", cwd=tmp_path, env=env, stdin=DEVNULL, stdout=PIPE
    )
    try:
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert "The answer is **4**" in output.decode()
    assert "a library's warning" in (tmp_path / "data" / "chat.log").read_text(encoding="utf-8")


async def test_an_unexpected_error_names_the_log_file(tmp_path, env):
    broken = "import maniple.cli.chat as chat\ndef broken(*_):\n    raise LookupError('a bug with {KEY}')\n"
    broken += "chat._attach_files = broken\n"
    (tmp_path / "sitecustomize.py").write_text(broken.replace("{KEY}", KEY), encoding="utf-8")
    async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
        assert await terminal.ended(60) == 1
        shown = terminal.text()
    assert "LookupError: a bug with ***" in shown
    assert f"Details are in {tmp_path / 'data' / 'chat.log'}" in shown.replace("\r\n", "\n")
    assert "Traceback" in (tmp_path / "data" / "chat.log").read_text(encoding="utf-8")
    assert KEY not in shown


async def test_a_full_log_is_set_aside(tmp_path, env):
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "chat.log"
    file.write_text("old line\n" * 200_000, encoding="utf-8")
    async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
        assert await terminal.ended(60) == 0
    assert file.stat().st_size < 10_000
    assert file.with_name("chat.log.1").stat().st_size == 9 * 200_000
