"""A server that is not root; when the tests themselves are not, every other test shows the same."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from maniple import sandbox as package
from maniple.config.settings import SandboxSettings
from maniple.sandbox import Unavailable, Workspaces, open_sandbox

_NOBODY = 65534


def _sources_are_public() -> bool:
    here = Path(package.__file__).resolve()
    return all(parent.stat().st_mode & 0o001 for parent in here.parents)


pytestmark = [
    # Later Pythons warn of threads; the child touches none.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the tests already run as an ordinary user"),
    pytest.mark.skipif(not _sources_are_public(), reason="this checkout is closed to other users"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of nobody's own."""
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    os.chown(home, _NOBODY, _NOBODY)
    yield home
    shutil.rmtree(home)


def _as_nobody(action: Callable[[], str]) -> str:
    """What `action` returns in a child process that has become nobody."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
            said = action()
        finally:  # the child must not return into the test runner
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said.decode()


def test_the_sandbox_works_and_is_probed_for_an_ordinary_user(home: Path) -> None:
    async def run() -> str:
        async with open_sandbox(SandboxSettings()) as sandbox:
            if isinstance(sandbox, Unavailable):
                return str(sandbox)
            workspace = Workspaces(home / "workspaces").open("thread")
            workspace.write("a.txt", b"kept")
            completed = await sandbox.run_bash(
                "id -u; cat a.txt; echo made > b.txt", workspace=workspace.path
            )
            return completed.text() + " " + workspace.read("b.txt", 100).content.decode()

    assert _as_nobody(lambda: asyncio.run(run())) == "1000\nkept made\n"
    made = home / "workspaces" / "thread" / "b.txt"
    assert made.stat().st_uid == _NOBODY


def test_files_made_by_roots_sandbox_belong_to_no_account(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_sandbox(SandboxSettings()) as sandbox:
            assert not isinstance(sandbox, Unavailable)
            await sandbox.run_bash("touch made; rm given", workspace=workspace.path)

    workspace = Workspaces(tmp_path).open("thread")
    workspace.write("given", b"")
    assert (workspace.path / "given").stat().st_uid == 65533
    asyncio.run(run())
    assert [(path.name, path.stat().st_uid) for path in workspace.path.iterdir()] == [("made", 65533)]
