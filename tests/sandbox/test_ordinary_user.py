"""A server that is not root; when the tests themselves are not, every other test shows the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import open_sandbox
from maniple.workspace import Workspaces
from maniple.workspace.mirrors import MIRROR_FOLDERS
from tests.sandbox.attacks.targets import all_tried
from tests.sandbox.nobody import NOBODY, as_nobody, home_of_nobody, needs_root

pytestmark = needs_root


@pytest.fixture
def home() -> Iterator[Path]:
    with home_of_nobody() as home:
        yield home


def test_the_sandbox_works_and_is_probed_for_an_ordinary_user(home: Path) -> None:
    async def run() -> str:
        async with open_sandbox(SandboxSettings()) as sandbox:
            workspace = Workspaces(home / "workspaces").open("thread")
            workspace.write("a.txt", b"kept")
            completed = await sandbox.run_bash(
                "id -u; cat a.txt; echo made > b.txt", key="thread", workspace=workspace
            )
            return completed.text() + " " + workspace.read("b.txt", 100).content.decode()

    assert as_nobody(lambda: asyncio.run(run())) == "1000\nkept made\n"
    made = home / "workspaces" / "thread" / "b.txt"
    assert made.stat().st_uid == NOBODY


def test_no_attack_gets_anything_from_an_ordinary_user(home: Path) -> None:
    outcomes = json.loads(as_nobody(lambda: json.dumps(asyncio.run(all_tried(home)))))
    assert len(outcomes) > 100
    assert [name for name, stopped in outcomes.items() if not stopped] == []


def _completed(code: str, home: Path) -> str:
    """What an ordinary user's server says of Python `code`."""

    async def run() -> str:
        async with open_sandbox(SandboxSettings(memory_mb=192)) as sandbox:
            workspace = Workspaces(home / "workspaces").open("thread")
            return (await sandbox.run_python(code, key="thread", workspace=workspace)).text()

    return as_nobody(lambda: asyncio.run(run()))


_OWN = "x = bytearray(b'1') * (60 << 20)"
_SHARED = "import mmap\nx = mmap.mmap(-1, 60 << 20)\nx.write(bytes(60 << 20))"


@pytest.mark.parametrize("memory", [_OWN, _SHARED], ids=["own", "shared with later children"])
def test_the_watchdog_sees_an_ordinary_users_sandbox(home: Path, memory: str) -> None:
    code = f"import os\nfor _ in range(3): os.fork()\n{memory}\nwhile True: pass"
    assert "192 MB of memory" in _completed(code, home)


def test_children_that_come_and_go_and_stay_unasked_for_are_no_overrun(home: Path) -> None:
    code = """
import os, subprocess
kept = subprocess.Popen("/bin/true")
os.waitid(os.P_PID, kept.pid, os.WEXITED | os.WNOWAIT)
subprocess.run("for i in $(seq 300); do /bin/true; done; echo looped", shell=True)
"""
    assert _completed(code, home).startswith("looped\n")


def test_a_process_that_hides_its_files_is_stopped_with_the_reason(home: Path) -> None:
    said = _completed("import ctypes\nctypes.CDLL(None).prctl(4, 0)\nwhile True: pass", home)
    assert "a process hides its" in said


def test_files_made_by_roots_sandbox_belong_to_no_account(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_sandbox(SandboxSettings()) as sandbox:
            await sandbox.run_bash("touch made; rm given", key="thread", workspace=workspace)

    workspace = Workspaces(tmp_path).open("thread")
    workspace.write("given", b"")
    assert (workspace.path / "given").stat().st_uid == 65533
    asyncio.run(run())
    owners = {path.name: path.stat().st_uid for path in workspace.path.iterdir()}
    assert owners.pop("made") == 65533
    assert set(owners) == {*MIRROR_FOLDERS}
    assert set(owners.values()) == {65533}
