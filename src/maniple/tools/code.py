"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio
from collections.abc import Awaitable, Callable

from langchain_core.tools import BaseTool, StructuredTool

from maniple.sandbox import Completed, Sandbox, Workspace, Workspaces
from maniple.tools.scope import thread_key
from maniple.tools.written import changed, stamps, written


def code_tools(sandbox: Sandbox, workspaces: Workspaces) -> list[BaseTool]:
    """Both tools. A result names the files that the code wrote; code that fails is a result, too.

    Raises `SandboxError` when it could not be run.
    """

    async def workspace() -> Workspace:
        return await asyncio.to_thread(workspaces.open, thread_key())

    async def run(code: str, call: Callable[..., Awaitable[Completed]]) -> str:
        place = await workspace()
        before = await asyncio.to_thread(stamps, place)
        completed = await call(code, workspace=place.path)
        after = await asyncio.to_thread(stamps, place)
        files = written(changed(before, after), place)
        # Whoever wrote a file need not print.
        said = "" if files and _is_silent(completed) else completed.text()
        return "\n".join(filter(None, (said, files)))

    async def run_python(code: str) -> str:
        return await run(code, sandbox.run_python)

    async def run_bash(cmd: str) -> str:
        return await run(cmd, sandbox.run_bash)

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


def _is_silent(completed: Completed) -> bool:
    ended_well = not completed.timed_out and completed.exit_code == 0
    return ended_well and not completed.stdout.strip() and not completed.stderr.strip()
