"""Control groups that are delegated hold every process of a sandbox; others are left alone.

No machine of the tests delegates the memory controller, so what is made, entered and removed is a real group
with another controller; the values of the memory's files are read from files.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import bubblewrap, control_groups, open_sandbox
from maniple.sandbox.control_groups import ControlGroups, open_control_groups, sandbox_limits
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio
DELEGATED = "user.delegate"


def mounted() -> Path | None:
    """Return where version 2 is mounted, if groups can be made there."""
    mounts = Path("/proc/self/mounts")
    root = control_groups._find_own_group(Path("/proc/self/cgroup"), mounts)
    return root if root is not None and os.access(root, os.W_OK) and os.geteuid() == 0 else None


@pytest.fixture
def given() -> Iterator[Path]:
    """A real group that was delegated, with whatever controller there is."""
    root = mounted()
    if root is None or not (root / "cgroup.controllers").read_text().split():
        pytest.skip("This machine has no control groups of version 2 with a controller.")
    folder = root / f"maniple-test-{os.getpid()}"
    controllers = (root / "cgroup.controllers").read_text().split()
    enabled = (root / "cgroup.subtree_control").read_text().split()
    (root / "cgroup.subtree_control").write_text(f"+{controllers[0]}")
    folder.mkdir()
    os.setxattr(folder, DELEGATED, b"1")
    yield folder
    for group in (*folder.glob("*/"), folder):
        until_removed(group)
    if controllers[0] not in enabled:
        (root / "cgroup.subtree_control").write_text(f"-{controllers[0]}")


def until_removed(group: Path) -> None:
    for _ in range(500):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            (group / "cgroup.kill").write_text("1")
            time.sleep(0.01)
        else:
            return
    raise AssertionError(f"{group} is still in use")


def opened(folder: Path) -> ControlGroups:
    groups = open_control_groups(folder, (folder / "cgroup.controllers").read_text().split())
    assert groups is not None
    return groups


def groups_in(folder: Path) -> list[Path]:
    return [*folder.glob("maniple-*-*/")]


def processes_in(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def test_a_program_is_in_its_group_from_the_first_moment_and_ends_with_it(given: Path) -> None:
    groups = opened(given)
    group = groups.make({"cgroup.max.depth": "0"})
    assert group is not None
    with subprocess.Popen(
        [*group.enter("/bin/sh"), "/bin/sh", "-c", "cat; cat"], stdin=subprocess.PIPE
    ) as program:
        while program.pid not in processes_in(group.path):
            assert program.poll() is None
        groups.end(group)
        assert program.wait(30) != 0
    assert any(group.remove() or time.sleep(0.01) for _ in range(1_000)), "its processes are gone"
    assert not group.path.exists()


def test_what_was_in_the_group_moves_into_one_of_its_own(given: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as server:
        (given / "cgroup.procs").write_text(str(server.pid))
        opened(given)
        assert processes_in(given) == []
        assert processes_in(given / "maniple-server") == [server.pid]
        server.kill()


def test_a_group_whose_limits_are_refused_is_not_there(given: Path) -> None:
    groups = opened(given)
    assert groups.make({"memory.max": "1"} | {"no.such.file": "1"}) is None
    assert groups_in(given) == []


def test_a_group_that_nobody_delegated_is_left_alone(given: Path) -> None:
    os.removexattr(given, DELEGATED)
    assert open_control_groups(given, ()) is None
    assert [*given.glob("*/")] == []


def test_a_group_without_the_memory_controller_is_not_used(given: Path) -> None:
    if "memory" in (given / "cgroup.controllers").read_text().split():
        pytest.skip("This machine has it.")
    assert open_control_groups(given) is None


def programs_in(group: Path) -> set[str]:
    return {Path(f"/proc/{one}/comm").read_text().strip() for one in processes_in(group)}


async def test_all_processes_of_a_sandbox_are_in_its_group(
    given: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    groups = opened(given)
    monkeypatch.setattr(bubblewrap, "find_control_groups", lambda: groups)
    monkeypatch.setattr(bubblewrap, "sandbox_limits", lambda *_: {})
    workspace = Workspaces(tmp_path).open("here")
    async with open_sandbox(SandboxSettings()) as sandbox:
        await sandbox.run_bash("sleep 100 & cat <<< there", key="here", workspace=workspace)
        [busy] = [group for group in groups_in(given) if len(processes_in(group)) > 2]
        programs = programs_in(busy)
        assert "bwrap" in programs
        assert any(program.startswith("python") for program in programs)
    groups.make({})
    assert busy not in groups_in(given) or processes_in(busy) == []


def test_the_limits_are_beyond_those_that_the_watchdog_names() -> None:
    limits = sandbox_limits(512, 64)
    assert int(limits["memory.max"]) == 2 * 512 * 1024 * 1024
    assert int(limits["pids.max"]) > 64
    assert (limits["memory.swap.max"], limits["memory.oom.group"]) == ("0", "1")


@pytest.mark.parametrize(
    ("membership", "mounts", "found"),
    [
        ("0::/user.slice/app\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "/sys/fs/cgroup/user.slice/app"),
        ("4:memory:/x\n0::/\n", "c /sys/fs/cgroup/unified cgroup2 rw 0 0\n", "/sys/fs/cgroup/unified"),
        ("4:memory:/x\n", "c /sys/fs/cgroup cgroup2 rw 0 0\n", None),
        ("0::/\n", "cgroup /sys/fs/cgroup/memory cgroup rw 0 0\n", None),
    ],
)
def test_the_group_of_this_process_is_found_where_version_2_is_mounted(
    tmp_path: Path, membership: str, mounts: str, found: str | None
) -> None:
    for name, text in (("cgroup", membership), ("mounts", mounts)):
        (tmp_path / name).write_text(text)
    own = control_groups._find_own_group(tmp_path / "cgroup", tmp_path / "mounts")
    assert own == (Path(found) if found else None)
