"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio

from langchain_core.tools import BaseTool, StructuredTool

from maniple.sandbox import Sandbox, Workspace, Workspaces
from maniple.tools.scope import thread_key


def code_tools(sandbox: Sandbox, workspaces: Workspaces) -> list[BaseTool]:
    """Both tools. Code that fails is a result; raises `SandboxError` when it could not be run."""

    async def workspace() -> Workspace:
        return await asyncio.to_thread(workspaces.open, thread_key())

    async def run_python(code: str) -> str:
        completed = await sandbox.run_python(code, workspace=(await workspace()).path)
        return completed.text()

    async def run_bash(cmd: str) -> str:
        completed = await sandbox.run_bash(cmd, workspace=(await workspace()).path)
        return completed.text()

    return [
        StructuredTool.from_function(
            coroutine=run_python,
            name="python_repl_tool",
            description="Run Python code. Each call starts fresh, without network: print what you need. "
            "Files in the current directory stay.",
        ),
        StructuredTool.from_function(
            coroutine=run_bash,
            name="bash_tool",
            description="Run a bash command. Each call starts fresh, without network. "
            "Files in the current directory stay.",
        ),
    ]
