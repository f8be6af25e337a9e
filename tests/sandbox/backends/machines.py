"""What the fake services have behind them: a folder for a machine's root, and real processes in it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

KERNEL = r"""
import ast, contextlib, json, sys, traceback

class Stream:
    def __init__(self, kind):
        self.kind = kind
    def write(self, text):
        if text:
            say(type=self.kind, text=text, timestamp=0)
    def flush(self):
        pass

def say(**event):
    wire.write(json.dumps(event) + "\n")
    wire.flush()

def run(code):
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "<code>", "eval"), names) if last else None
    if value is not None:
        say(type="result", text=repr(value), is_main_result=True, png=getattr(value, "png", None))

wire, names = sys.stdout, {"__name__": "__main__"}
sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
for line in sys.stdin:
    try:
        run(json.loads(line)["code"])
    except BaseException as error:
        say(type="error", name=type(error).__name__, value=str(error), traceback=traceback.format_exc())
    say(type="end")
"""


class Machine:
    """One machine: commands and kernels see `root`/workspace where the client says /workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.home.mkdir(parents=True)
        self.gone = False
        self._processes: list[asyncio.subprocess.Process] = []
        self._kernels: dict[str, asyncio.subprocess.Process] = {}

    def path(self, path: str) -> Path:
        """Return the path on the host; the working directory of the machine is reported as the host's."""
        return Path(self._here(path))

    async def start(
        self, *argv: str, envs: dict[str, str] | None = None, cwd: str | None = None, stdin: bool = False
    ) -> asyncio.subprocess.Process:
        """Start a command."""
        process = await asyncio.create_subprocess_exec(
            *(self._here(word) for word in argv),
            cwd=self._here(cwd) if cwd else self.home,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home)} | (envs or {}),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=2**22,
        )
        self._processes.append(process)
        return process

    async def run(self, *argv: str, cwd: str | None = None) -> tuple[int, str]:
        """Run a command to its end; its status and what it printed."""
        process = await self.start(*argv, cwd=cwd)
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode(errors="replace")

    async def execute(self, context: str, code: str, cwd: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Run code in a kernel, made when it is new; yields its events."""
        kernel = self._kernels.get(context)
        if kernel is None:
            kernel = await self.start(sys.executable, "-c", KERNEL, cwd=cwd, stdin=True)
            self._kernels[context] = kernel
        assert kernel.stdin is not None
        assert kernel.stdout is not None
        kernel.stdin.write(json.dumps({"code": code}).encode() + b"\n")
        while line := await kernel.stdout.readline():
            event = json.loads(line)
            if event["type"] == "end":
                return
            yield event
        yield {"type": "error", "name": "KernelDied", "value": "the kernel died", "traceback": "KernelDied"}

    async def restart(self, context: str) -> None:
        """End a kernel; the next code gets a new one."""
        if kernel := self._kernels.pop(context, None):
            await self._end(kernel)

    async def close(self) -> None:
        """Pull the plug."""
        self.gone = True
        for process in self._processes:
            await self._end(process)

    def processes(self) -> list[int]:
        """The leaders that still run."""
        return [process.pid for process in self._processes if process.returncode is None]

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # Pipes that nobody reads any more would keep the waiting from ending.
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with suppress(RuntimeError, asyncio.LimitOverrunError):
                    while await stream.read(65_536):
                        pass
        await process.wait()

    def _here(self, text: str) -> str:
        # A path that was told before is the host's already.
        kept = text.replace(str(self.root / "workspace"), "\0")
        return kept.replace("/workspace", str(self.root / "workspace")).replace(
            "\0", str(self.root / "workspace")
        )
