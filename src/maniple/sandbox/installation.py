"""Makes the sandbox's environment: beside its place first, then in one step where it is looked for.

Only wheels are installed, so nothing of a package runs on the host; pip knows the user's mirrors, proxies
and certificates.
"""

import asyncio
import errno
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from maniple.errors import SandboxError
from maniple.locks import file_lock
from maniple.sandbox.disuse import remove_unused
from maniple.sandbox.environment import Environment, package_name
from maniple.sandbox.installer import Command, run

Say = Callable[[str], None]

NEEDED_BYTES = 600_000_000
"""Of the environment, 350 MB, and of what pip unpacks at one time."""
_PIP = (sys.executable, "-m", "pip")
_OPTIONS = ("--only-binary", ":all:", "--no-compile", "--no-input", "--no-warn-script-location")
_QUIET = ("--disable-pip-version-check", "--progress-bar", "off")
# Nobody imports them, and compiling them would double the time.
_LEFT_UNCOMPILED = r"/tests?/"


async def install(environment: Environment, say: Say, pip: Command = _PIP) -> None:
    """Make `environment` unless it stands; `say` hears now and then what is done.

    Two processes make it once. What an interrupted one left is removed by the next, and so is what was not
    used for a month. Raises `SandboxError` with what to do.
    """
    home = environment.path.parent
    try:
        await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
        async with file_lock(home / "lock", lambda: say("waiting for another program that prepares them")):
            if not environment.stands:
                await asyncio.to_thread(remove_unused, home)
                await asyncio.to_thread(_require_space, home)
                await _make(environment, say, pip)
    except OSError as error:
        raise SandboxError(_disk_words(home, error)) from error


def _require_space(home: Path) -> None:
    if shutil.disk_usage(home).free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _disk_words(home: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        need = f"They need {NEEDED_BYTES // 1_000_000} MB while they are installed"
        return f"There is no room for the sandbox's packages in {home}. {need}: make room, or set cache_dir."
    reason = error.strerror or str(error)
    return f"The sandbox's packages cannot be kept in {home}: {reason}. Set cache_dir to another folder."


async def _make(environment: Environment, say: Say, pip: Command) -> None:
    scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, ".part", "", environment.path.parent))
    part = Environment(scratch, environment.base, environment.requirements, environment.constraints)
    try:
        await _fill(part, say, pip)
        await asyncio.to_thread(_finish, part)
        await asyncio.to_thread(os.replace, scratch, environment.path)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _fill(part: Environment, say: Say, pip: Command) -> None:
    say("making a virtual environment")
    base = (str(part.base), "-I")
    await _run((*base, "-m", "venv", "--without-pip", str(part.path)), say, part)
    constraints = part.path / "constraints.txt"
    await asyncio.to_thread(constraints.write_text, "\n".join(part.constraints))
    install_them = ("install", *_OPTIONS, *_QUIET, "-c", str(constraints), "--", *part.requirements)
    await _run((*pip, "--python", str(part.python), *install_them), say, part)
    say("compiling them")
    compile_them = ("-S", "-m", "compileall", "-q", "-x", _LEFT_UNCOMPILED, str(part.path / "lib"))
    # Templates that are no Python yet fail to compile, and that is all right.
    await run((*base, *compile_them), lambda line: None)


async def _run(command: Command, say: Say, part: Environment) -> None:
    code, output = await run(command, lambda line: _tell(line, say))
    if code:
        raise SandboxError(_pip_words(output, part))


def _tell(line: str, say: Say) -> None:
    if fetched := re.match(r"Downloading ([\w.]+-[\w.]+)", line):
        say(f"fetching {fetched[1]}")
    elif line.startswith("Installing "):
        say("installing them")


def _pip_words(output: str, part: Environment) -> str:
    errors = [line for line in output.splitlines() if re.search("error", line, re.IGNORECASE)]
    said = (errors or output.splitlines() or ["nothing"])[-1].strip()[:300]
    if "No space left" in output:
        return _disk_words(part.path.parent, OSError(errno.ENOSPC, ""))
    if "Retrying (" in output:
        what = "pip cannot reach its index. Look at the network and at pip's own settings"
    elif "No module named pip" in output:
        what = f"pip is missing: run `{sys.executable} -m ensurepip`"
    elif "No module named venv" in output:
        what = f"{part.base} cannot make virtual environments: apt-get install -y python3-venv"
    else:
        what = f"pip says: {said.rstrip('.')}. Look at sandbox.packages, and at the network"
    return f"The sandbox's packages could not be installed: {what}; then run `maniple doctor`."


def _finish(part: Environment) -> None:
    _let_scripts_find_python(part.path)
    part.path.chmod(0o755)
    part.mark_ready(_versions(part))


def _let_scripts_find_python(path: Path) -> None:
    """Make scripts start the Python that comes first in PATH: this one will lie elsewhere."""
    here = re.compile(rb'"?' + re.escape(bytes(path / "bin")) + rb'/python[\d.]*"?')
    for script in (path / "bin").iterdir():
        if script.name.casefold().startswith("activate"):
            script.unlink()
        elif not script.is_symlink() and here.search(text := script.read_bytes()):
            script.write_bytes(here.sub(b"/usr/bin/env python", text))


def _versions(part: Environment) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(one) for one in part.path.glob("lib/*/site-packages")])
    versions = {package_name(one.name): one.version for one in found}
    return {name: versions[name] for name in map(package_name, part.requirements) if name in versions}
