"""The bubblewrap backend: one fresh sandbox a call.

    nice, choom        the server's event loop and memory come first
    bwrap, sh, setpriv only when the server is root: show the workspace at a place that every user can
                       reach (bwrap as another user could not enter /root), then stop being root
    bwrap              new namespaces, an empty file system with /usr read-only, the system-call filter
    prlimit            limits, set in here because they count per user namespace, not per host user
    sh                 process 1, whose end is the end of everything started beside it
    python or bash     reads the code from a file that only this sandbox has

Both bwraps end with their parent, so nothing of this outlives the server. What is not here yet: limits
over a call's processes together (a cgroup or a watchdog), a processor share that holds where the kernel
groups tasks by session (`nice` counts only within one), and state between calls.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from maniple.config.settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.account import sandbox_account
from maniple.sandbox.backend import Completed
from maniple.sandbox.process import run_process
from maniple.sandbox.programs import SYSTEM_PATH, Programs
from maniple.sandbox.seccomp import filter_program

WORKSPACE = "/workspace"
ENVIRONMENT = {
    "PATH": SYSTEM_PATH,
    "HOME": "/tmp",
    "USER": "sandbox",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    # What a program printed before its timeout must have left its buffer.
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": WORKSPACE,
    "PYTHONSAFEPATH": "1",
}
_STAGED = "/tmp/workspace"
_CODE = "/run/maniple/snippet"
_SYSTEM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
)


class BubblewrapSandbox:
    """Runs each call in its own namespaces; at most `settings.concurrent` at a time, in order of arrival."""

    def __init__(self, settings: SandboxSettings, programs: Programs) -> None:
        """Raises `SandboxError` where there is no system-call filter for this machine."""
        self._settings = settings
        self._programs = programs
        self._filter = filter_program()
        self._system_mounts = tuple(_system_mounts(programs.python_prefixes()))
        self._slots = asyncio.Semaphore(settings.concurrent)

    async def run_python(self, code: str, *, workspace: Path) -> Completed:
        return await self._run(self._programs.python, code, workspace)

    async def run_bash(self, command: str, *, workspace: Path) -> Completed:
        return await self._run(self._programs.bash, command, workspace)

    async def _run(self, interpreter: str, code: str, workspace: Path) -> Completed:
        async with self._slots:
            with ExitStack() as files:
                # A lone surrogate becomes the escape that means the same in a string literal.
                source = files.enter_context(_memory_file(code.encode(errors="backslashreplace")))
                rules = files.enter_context(_memory_file(self._filter))
                status = files.enter_context(_memory_file())
                inherited = (source.fileno(), rules.fileno(), status.fileno())
                completed = await self._spawn(self._command(interpreter, workspace, *inherited), inherited)
                # bwrap notes an exit code only for a program that it managed to start.
                if b'"exit-code"' not in os.pread(status.fileno(), 65_536, 0) and not completed.timed_out:
                    raise SandboxError(f"The sandbox could not run the code: {completed.stderr.strip()}")
                return completed

    async def _spawn(self, argv: list[str], inherited: Iterable[int]) -> Completed:
        try:
            return await run_process(
                argv,
                inherited=inherited,
                timeout_seconds=self._settings.timeout_seconds,
                output_bytes=self._settings.output_bytes,
            )
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}") from error

    def _command(self, interpreter: str, workspace: Path, source: int, rules: int, status: int) -> list[str]:
        programs = self._programs
        account = sandbox_account()
        argv = [programs.nice, "-n", "10", programs.choom, "-n", "900", "--"]
        visible = str(workspace)
        if account is not None:
            # With a process namespace of its own: a root without capabilities, as bwrap's is, may not
            # signal the other user's processes when it dies, but the kernel ends a namespace whole.
            argv += [programs.bwrap, "--die-with-parent", "--unshare-pid", "--as-pid-1"]
            argv += ["--dev-bind", "/", "/", "--tmpfs", "/tmp", "--bind", visible, _STAGED, "--"]
            argv += [*self._init(), programs.setpriv, f"--reuid={account.uid}", f"--regid={account.gid}"]
            argv += ["--clear-groups", "--pdeathsig=keep", "--"]
            visible = _STAGED
        argv += [programs.bwrap, *_ISOLATION, *self._system_mounts, *self._private_mounts()]
        argv += ["--bind", visible, WORKSPACE, "--chdir", WORKSPACE]
        argv += ["--ro-bind-data", str(source), _CODE, "--remount-ro", "/"]
        argv += ["--seccomp", str(rules), "--json-status-fd", str(status), "--"]
        return [*argv, *self._limits(), *self._init(), interpreter, _CODE]

    def _init(self) -> list[str]:
        """Process 1 of a namespace; bwrap's own is left to the host's process 1, which may not reap it."""
        return [self._programs.sh, "-c", '"$@"; exit $?', "init"]

    def _private_mounts(self) -> list[str]:
        # These live in memory, outside every process's own limit.
        size = str(self._settings.memory_mb * 1024 * 1024 // 8)
        shared = ["--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
        return ["--proc", "/proc", *shared, "--size", size, "--tmpfs", "/tmp"]

    def _limits(self) -> list[str]:
        settings = self._settings
        return [
            self._programs.prlimit,
            f"--nproc={settings.processes}",
            f"--as={settings.memory_mb * 1024 * 1024}",
            f"--fsize={settings.disk_mb * 1024 * 1024}",
            "--nofile=256",
            "--core=0",
            "--",
        ]


_ISOLATION = (
    # --unshare-all alone would go on without a user namespace.
    *("--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
    *("--die-with-parent", "--as-pid-1", "--new-session"),
    *(word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)),
)


def _system_mounts(python_prefixes: Iterable[str]) -> Iterator[str]:
    """Read-only: /usr, what stands beside it for older paths, a few harmless files of /etc, Python."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM_DIRECTORIES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for path in (*_SYSTEM_FILES, *python_prefixes):
        yield from ("--ro-bind-try", path, path)


@contextmanager
def _memory_file(content: bytes = b"") -> Iterator[FileIO]:
    """An open file without a name, positioned at its start."""
    with FileIO(os.memfd_create("maniple"), "r+b") as file:
        file.write(content)
        file.seek(0)
        yield file
