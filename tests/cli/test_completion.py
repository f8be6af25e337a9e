"""Completion by the Tab key: the real shell where there is one, the protocol of the others."""

import shutil
from pathlib import Path

import pytest

from tests.cli.processes import CTRL_D, ENTER, MANIPLE, environment, maniple, on_terminal

pytestmark = pytest.mark.anyio
BASH = "import os; os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_the_script_of_a_shell_names_the_program_and_asks_it(tmp_path: Path, shell: str) -> None:
    status, output, notes = await maniple("completion", shell, folder=tmp_path, env=environment(tmp_path, ""))
    assert (status, notes) == (0, "")
    assert f"_MANIPLE_COMPLETE=complete_{shell}" in output and output.rstrip().endswith(("maniple", '"'))


async def test_another_shell_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    status, output, notes = await maniple(
        "completion", "tcsh", folder=tmp_path, env=environment(tmp_path, "")
    )
    assert (status, output) == (2, "")
    assert all(shell in notes for shell in ("bash", "zsh", "fish"))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("maniple thr", ["threads"]),
        ("maniple threads ", ["list", "show", "export"]),
        ("maniple chat --dep", ["--depth"]),
        ("maniple chat --depth ", ["quick", "standard", "deep"]),
    ],
)
async def test_commands_options_and_values_come_from_the_parser(
    tmp_path: Path, line: str, shown: list[str]
) -> None:
    asked = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for shell in ("zsh", "fish"):
        env = environment(tmp_path, "", _MANIPLE_COMPLETE=f"complete_{shell}", **asked)
        status, output, _ = await maniple(folder=tmp_path, env=env)
        assert status == 0 and all(word in output for word in shown), shell


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
async def test_the_tab_key_completes_in_bash(tmp_path: Path) -> None:
    env = environment(
        tmp_path, "", PATH=f"{MANIPLE.parent}:/usr/bin:/bin", PS1="ready> ", INPUTRC="/dev/null"
    )
    async with on_terminal(BASH, folder=tmp_path, env=env, program=Path("-c")) as terminal:
        await terminal.see("ready> ")
        terminal.type(f"source <(maniple completion bash); echo $((40 + 2)){ENTER}")
        await terminal.see(r"\b42\s")
        await terminal.see("ready> ")
        terminal.type("maniple thr\t")
        await terminal.see("threads ")
        terminal.type("exp\t")
        await terminal.see("export ")
        terminal.type(f"--help{ENTER}")
        await terminal.see("--question")
        await terminal.see("ready> ")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
