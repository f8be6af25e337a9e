"""Looks at the environment from where it is used: can everything in it be imported inside the sandbox?"""

import asyncio
import json
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path

from maniple.errors import SandboxError
from maniple.sandbox.environment import Environment, package_name
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.workspace import Workspace
from maniple.sandbox.workspaces import Workspaces

_KEY = "inspection"
_FONT_LIST = re.compile(r"fontlist-v[\w.]+\.json", re.ASCII)
_FONT_LIST_BYTES = 5_000_000


async def find_broken(environment: Environment, sandbox: Sandbox) -> dict[str, str]:
    """Return why packages cannot be imported, by name; nothing when all can.

    The first time, it keeps matplotlib's list of fonts for later sessions. Raises `SandboxError`.
    """
    names = [package_name(one) for one in environment.requirements]
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-inspection-"))
    try:
        workspace = await asyncio.to_thread(Workspaces(folder).open, _KEY)
        completed = await sandbox.run_python(_program(names), key=_KEY, workspace=workspace)
        await asyncio.to_thread(_keep_font_list, environment, workspace)
    finally:
        await sandbox.stop(_KEY)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    try:
        broken = json.loads(completed.stdout.splitlines()[-1])
        return {str(name): str(why) for name, why in broken.items()}
    except (ValueError, IndexError, AttributeError) as error:
        raise SandboxError(f"The packages could not be tried: {completed.text()[-500:]}") from error


def _program(names: list[str]) -> str:
    text = resources.files("maniple.sandbox").joinpath("imports.py").read_text(encoding="utf-8")
    return f"{text}\n\nprint_broken({names!r})\n"


def _keep_font_list(environment: Environment, workspace: Workspace) -> None:
    if environment.font_list() is not None:
        return
    for name, size in workspace.files(10):
        if _FONT_LIST.fullmatch(name) and size <= _FONT_LIST_BYTES:
            environment.keep_font_list(name, workspace.read(name, _FONT_LIST_BYTES).content)
