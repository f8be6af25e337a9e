"""The refusal rule, with backends that are broken on purpose."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import Unavailable
from maniple.sandbox import isolation, open_sandbox
from maniple.workspace import FileHead, Workspace, account
from tests.sandbox.host import as_process_one
from tests.sandbox.nobody import as_nobody, needs_root

pytestmark = pytest.mark.anyio

# Of the four that a server may take to be ready, on a machine that others use too.
_MAX_SECONDS = 2
_WITH_THE_HOSTS_PROCESSES = """
  changed=()
  for each in "$@"; do
    if [[ $each == --proc ]]; then changed+=(--ro-bind /proc); else changed+=("$each"); fi
  done
  set -- "${changed[@]}"
"""


@pytest.fixture(autouse=True)
def _probed_each_time(passed_probes: set[object]) -> Iterator[None]:
    passed_probes.clear()
    yield
    passed_probes.clear()


@pytest.fixture
def directory() -> Iterator[Path]:
    """One that every user can read, and not under /tmp, which root's sandbox covers at its first step."""
    directory = Path(tempfile.mkdtemp(dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def with_bwrap(directory: Path) -> Callable[[str], str]:
    """A search path on which `bwrap`, when it is to isolate, runs `body` first; $BWRAP is the real one.

    `outer` is run by the one that root's sandbox has around it.
    """

    def install(body: str, outer: str = ":") -> str:
        script = directory / "bwrap"
        real = shutil.which("bwrap")
        script.write_text(f"""#!/bin/bash
BWRAP={real}
if [[ $1 == --unshare-all ]]; then
  {body}
else
  {outer}
fi
exec $BWRAP "$@"
""")
        script.chmod(0o755)
        return f"{directory}:/usr/bin:/bin"

    return install


@pytest.fixture
def environment_python(directory: Path) -> Path:
    """An interpreter outside /usr that leads to the system's, as a virtual environment's does."""
    python = directory / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/python3")
    return python


async def _refusal(settings: SandboxSettings, search_path: str | None = None) -> str:
    with pytest.raises(Unavailable) as refused:
        await open_sandbox(settings, search_path=search_path).__aenter__()
    return str(refused.value)


async def test_without_bubblewrap_the_remedy_is_to_install_it(tmp_path: Path) -> None:
    refusal = await _refusal(SandboxSettings(), search_path=str(tmp_path))
    assert refusal == "`bwrap` is not installed. To fix it: apt-get install -y bubblewrap"


async def test_a_disabled_sandbox_gives_that_as_the_reason() -> None:
    assert "sandbox.backend: bubblewrap" in await _refusal(SandboxSettings(backend="off"))


async def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    refusal = await _refusal(SandboxSettings(python=tmp_path / "python"))
    assert str(tmp_path / "python") in refusal


async def test_limits_that_python_cannot_live_with_are_named() -> None:
    assert "check the limits" in await _refusal(SandboxSettings(memory_mb=1))


@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["open to all", "its owner's"])
async def test_a_python_in_a_home_can_be_chosen(environment_python: Path, directory: Path, mode: int) -> None:
    await asyncio.to_thread(directory.chmod, mode)
    async with open_sandbox(SandboxSettings(python=environment_python)):
        pass


async def test_forbidden_user_namespaces_are_explained(with_bwrap: Callable[[str], str]) -> None:
    path = with_bwrap('exec $BWRAP --unshare-user --disable-userns --dev-bind / / -- $BWRAP "$@"')
    refusal = await _refusal(SandboxSettings(), path)
    assert "the code: bwrap: " in refusal
    assert "allow user namespaces" in refusal


class TestClosedFolder:
    pytestmark = needs_root

    def test_a_temporary_folder_that_is_closed_to_the_server_is_named(self, directory: Path) -> None:
        directory.chmod(0o700)

        def refusal() -> str:
            tempfile.tempdir = str(directory)
            return asyncio.run(_refusal(SandboxSettings()))

        said = as_nobody(refusal)
        assert "sandbox could not be " in said
        assert f" {directory}, or `export TMPDIR=" in said
        assert "user namespaces" not in said

    def test_a_root_without_access_to_a_folder_it_gave_away_gets_the_reason(self, directory: Path) -> None:
        code = """
import asyncio
from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import Unavailable
from maniple.sandbox import open_sandbox

async def main():
    try:
        async with open_sandbox(SandboxSettings()):
            pass
    except Unavailable as error:
        print(error)

asyncio.run(main())
"""
        less = "-dac_override,-dac_read_search"
        command = ["setpriv", "--bounding-set", less, "--inh-caps", less, sys.executable, "-c", code]
        surroundings = {**os.environ, "TMPDIR": str(directory)}
        said = subprocess.check_output(command, env=surroundings, text=True, timeout=60)
        assert "--cap-drop" in said


@pytest.mark.parametrize(
    ("flaw", "escape"),
    [
        (
            'set -- "${@/%etc\\/passwd/etc\\/own}"; set -- "${@/%alternatives/passwd}"',
            "read /etc/passwd",
        ),
        ('shift; set -- --unshare-all --share-net "$@"', "connect to a TCP port of the host"),
        ("export LEAKED=1", "see the environment variables LEAKED"),
        ('set -- "${@/--nproc=64/--nproc=70}"', "start more than 64 processes"),
        ('set -- "${@/--as=*/--core=0}"', "take more memory than its limit"),
        ('set -- "${@/--remount-ro/--dir}"', "write to the root directory"),
        ('set -- "${@/--seccomp/--sync-fd}"', "open a socket to the hypervisor"),
        (_WITH_THE_HOSTS_PROCESSES, "share more memory than its limit among its processes"),
    ],
)
async def test_a_leaking_sandbox_is_refused_by_name(
    with_bwrap: Callable[[str], str], flaw: str, escape: str
) -> None:
    refusal = await _refusal(SandboxSettings(), with_bwrap(flaw))
    assert refusal.startswith("Code in the sandbox")
    assert escape in refusal
    assert "apt-get install" in refusal


def _end(orphans: Iterable[int]) -> None:
    for orphan in orphans:
        os.kill(orphan, signal.SIGKILL)
        os.waitpid(orphan, 0)


async def test_a_sandbox_that_a_daemon_outlives_is_refused(with_bwrap: Callable[..., str]) -> None:
    # Of the arguments that bind lives together, each becomes one that does nothing here.
    unbound = 'for each in --die-with-parent --as-pid-1; do set -- "${@/#$each/--new-session}"; done'
    outer = f'{unbound}; set -- "${{@/#--unshare-pid/--unshare-ipc}}"'
    inner = f'{unbound}; set -- --unshare-user --unshare-net --unshare-ipc --unshare-uts "${{@:2}}"'
    with as_process_one() as children:
        try:
            refusal = await _refusal(SandboxSettings(), with_bwrap(inner, outer))
        finally:
            _end(map(int, children()))
    assert "leave a process behind" in refusal


async def test_a_workspace_that_follows_planted_links_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(workspace: Workspace, path: str, max_bytes: int) -> FileHead:
        content = (workspace.path / path).read_bytes()
        return FileHead(content[:max_bytes], len(content))

    monkeypatch.setattr(Workspace, "read", read)
    refusal = await _refusal(SandboxSettings())
    for planted in ("planted", "planted-folder/canary"):
        assert f"({planted})" in refusal


async def test_the_probes_are_quick(tmp_path: Path) -> None:
    async with open_sandbox(SandboxSettings()):  # the second time nothing is read from disk
        pass
    began = sum(os.times()[:4])  # the processor's time, of the programs that have ended too
    async with open_sandbox(SandboxSettings()):
        assert sum(os.times()[:4]) - began < _MAX_SECONDS


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has nothing to drop")
async def test_root_that_stays_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "find_sandbox_account", lambda: None)
    monkeypatch.setattr(isolation, "find_sandbox_account", lambda: None)
    assert "start more than 64 processes" in await _refusal(SandboxSettings())
