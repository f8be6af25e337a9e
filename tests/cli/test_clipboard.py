"""`/copy`: the report in the clipboard, and what is said about it."""

import base64
import re
from pathlib import Path

import pytest

from maniple.cli.chat import clipboard
from maniple.cli.chat.clipboard import OSC_LIMIT, clipboard_programs, copy_text
from maniple.cli.chat.prompt import run_slash_command
from tests.cli.processes import PROMPT, environment, on_terminal
from tests.cli.scripts import REPORT
from tests.cli.test_commands import session_with
from tests.openai_server import SIMPLE, reply, serving

pytestmark = pytest.mark.anyio
OSC_52 = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


def program(folder: Path, script: str) -> None:
    folder.mkdir()
    file = folder / "xclip"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("environ", "platform", "names"),
    [
        ({}, "darwin", ["pbcopy"]),
        ({"SSH_CONNECTION": "a"}, "darwin", []),
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux", ["wl-copy", "xclip", "xsel"]),
        ({"SSH_CONNECTION": "a"}, "linux", []),
        ({"TERMUX_VERSION": "1"}, "linux", ["termux-clipboard-set"]),
    ],
)
def test_only_programs_of_the_persons_own_desktop_are_used(
    environ: dict[str, str], platform: str, names: list[str]
) -> None:
    assert [command[0] for command in clipboard_programs(environ, platform)] == names


async def test_without_a_report_or_a_terminal_nothing_is_copied_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TERMUX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    assert "no report" in await run_slash_command(session_with()[0], "/copy")
    assert "Nothing was copied" in await copy_text("text")


@pytest.mark.slow
async def test_the_report_is_copied_with_the_desktops_program(tmp_path: Path) -> None:
    program(tmp_path / "bin", f"cat > {tmp_path}/copied")
    with serving(SIMPLE) as server:
        path = f"{tmp_path}/bin:/usr/bin:/bin"
        env = environment(tmp_path, server.base_url, DISPLAY=":9", PATH=path)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("1+3=?", "✔ completed")
            await terminal.enter("/copy", "with xclip")
            assert await terminal.leave() == 0
    assert (tmp_path / "copied").read_text() == REPORT
    assert OSC_52.search(terminal.raw) is None


@pytest.mark.parametrize("fails", [False, True])
async def test_without_a_program_that_works_the_terminal_gets_the_report(tmp_path: Path, fails: bool) -> None:
    program(tmp_path / "bin", "exit 1")
    more = {"DISPLAY": ":9"} if fails else {}
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, PATH=f"{tmp_path}/bin:/usr/bin:/bin", **more)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("1+3=?", "✔ completed")
            await terminal.enter("/copy", "does not confirm it")
            assert await terminal.leave() == 0
    [sent] = OSC_52.findall(terminal.raw)
    assert base64.b64decode(sent).decode() == REPORT
    assert ("xclip failed" in terminal.text()) == fails


async def test_a_report_that_is_too_long_for_the_terminal_is_not_cut(tmp_path: Path) -> None:
    assert len(base64.b64encode(b"x" * OSC_LIMIT)) < 100_000
    long = "word " * (OSC_LIMIT // 5 + 1)
    with serving({"coordinator": [reply(long)]}) as server:
        env = environment(tmp_path, server.base_url, PATH="/usr/bin:/bin")
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("long?", "✔ completed")
            await terminal.enter("/copy", "Nothing was copied", "/save FILE")
            assert await terminal.leave() == 0
    assert OSC_52.search(terminal.raw) is None


async def test_a_program_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "exec sleep 60")
    monkeypatch.setattr(clipboard, "_SECONDS", 0.2)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":9")
    assert "xclip failed" in await copy_text("text")
