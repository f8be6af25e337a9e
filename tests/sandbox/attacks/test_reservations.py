"""Disk that is taken without writing, faster than anybody looks."""

import errno

import pytest

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.workspace import Workspace

pytestmark = pytest.mark.anyio

CALLS = """
import ctypes, fcntl, os, platform, struct
number = {"x86_64": 285, "aarch64": 47}[platform.machine()]
file = os.open("reserved", os.O_CREAT | os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
errors = []
for _ in range(2):
    size = ctypes.c_long(10 << 20)
    libc.syscall(number, file, 0, ctypes.c_long(0), size)
    errors.append(ctypes.get_errno())
for request in (0x40305828, 0x4030582A, 0x40305839):
    try:
        fcntl.ioctl(file, request, struct.pack("hh4xqqii16x", 0, 0, 0, 10 << 20, 0, 0))
        errors.append(0)
    except OSError as error:
        errors.append(error.errno)
[*errors, os.fstat(file).st_blocks]
"""
HONEST = """
import os, sqlite3
with open("whole", "wb") as file:
    os.posix_fallocate(file.fileno(), 0, 1 << 20)
with sqlite3.connect("table.db") as table:
    table.execute("create table t (x)")
    table.executemany("insert into t values (?)", [(n,) for n in range(1000)])
whole, [rows] = os.stat("whole"), table.execute("select count(*) from t")
(whole.st_size, whole.st_blocks * 512 >= 1 << 20, rows)
"""
FILL = """
import os
for number in range(400):
    with open(str(number), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 20 << 20)
"""


async def _ran(sandbox: Sandbox, workspace: Workspace, code: str) -> ExecutionResult:
    return await sandbox.run_python(code, key="thread", workspace=workspace)


async def test_no_call_reserves_blocks(narrow: Sandbox, workspace: Workspace) -> None:
    completed = await _ran(narrow, workspace, CALLS)
    unsupported, refused = errno.EOPNOTSUPP, errno.EPERM
    assert completed.value == str([unsupported] * 2 + [refused] * 3 + [0]), completed.text()


async def test_programs_that_reserve_write_instead(narrow: Sandbox, workspace: Workspace) -> None:
    completed = await _ran(narrow, workspace, HONEST)
    assert completed.value == "(1048576, True, (1000,))", completed.text()


async def test_reserving_many_files_is_stopped_in_time(narrow: Sandbox, workspace: Workspace) -> None:
    completed = await _ran(narrow, workspace, FILL)
    assert "workspace take more than 20 MB" in completed.lost, completed.text()
    assert sum(size for _, size in workspace.files(1000)) < 2 * 1024**3
