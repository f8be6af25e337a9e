"""Calls of one thread."""

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.workspace import Workspace


class Thread:
    """Runs code in the session of `key`."""

    def __init__(self, sandbox: Sandbox, workspace: Workspace, key: str = "thread") -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._key = key

    async def python(self, code: str) -> ExecutionResult:
        return await self._sandbox.run_python(code, key=self._key, workspace=self._workspace)

    async def bash(self, command: str) -> ExecutionResult:
        return await self._sandbox.run_bash(command, key=self._key, workspace=self._workspace)
