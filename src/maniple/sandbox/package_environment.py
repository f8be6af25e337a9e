"""The packages that sandboxed Python can import: a virtual environment of its own, outside the project's.

    CACHE_DIR/sandbox/KEY/bin/python     KEY stands for the sandbox's Python and the packages
    CACHE_DIR/sandbox/KEY/ready.json     written last, so what has it is whole
    CACHE_DIR/sandbox/KEY/fonts/         matplotlib's list of fonts, made by the first check inside

`installation` makes it, `inspection` looks at it from inside. Without it code has Python's own library only.
"""

import asyncio
import errno
import fcntl
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.locks import file_lock
from maniple.sandbox.host import find_python, standalone_program
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.workspaces import Workspace, Workspaces
from maniple.types import Unavailable

INNER_PATH = "/opt/python"
"""Where a sandbox that is made of mounts shows the environment."""
_READY = "ready.json"
_FONT_LIST = "fontlist-*.json"
_log = logging.getLogger(__name__)
# Counted up when what `installation` makes of the same packages changes.
_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class PackageEnvironment:
    """A virtual environment that stands, or is to stand, at `path`.

    `base` is the interpreter it is made with. `requirements` are those of pip; `constraints` pin what they
    need, and are empty where settings add packages, whose needs are not known.
    """

    path: Path
    base: Path
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        """The interpreter, on the host."""
        return self.path / "bin" / "python"

    @property
    def stands(self) -> bool:
        """Whether it can be used."""
        return (self.path / _READY).is_file()

    def installed(self) -> tuple[str, ...]:
        """Return `name version` of each package that was asked for; nothing while there is no environment."""
        try:
            found = json.loads((self.path / _READY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        return tuple(f"{name} {version}" for name, version in found.items())

    def font_list(self) -> Path | None:
        """The file by which matplotlib need not look for fonts; it has to lie in MPLCONFIGDIR."""
        return next((self.path / "fonts").glob(_FONT_LIST), None)

    def keep_font_list(self, name: str, content: bytes) -> None:
        """Keep what `font_list` gives; other programs may be doing the same."""
        folder = self.path / "fonts"
        folder.mkdir(mode=0o755, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(content)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(folder / name)

    def mark_ready(self, versions: dict[str, str]) -> None:
        """Say that it is whole and what is in it."""
        (self.path / _READY).write_text(json.dumps(versions), encoding="utf-8")

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Keep it from being removed while the context is open, or give False where there is none."""
        try:
            descriptor = os.open(self.path / _READY, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield False
            return
        try:
            with suppress(OSError):  # a file system without locks, or another user's file, theirs to remove
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                os.utime(descriptor)
            yield self.stands
        finally:
            os.close(descriptor)


def find_environment(settings: SandboxSettings, cache_dir: Path) -> PackageEnvironment | None:
    """Return the environment that `settings` ask for, whether it stands or not; cheap.

    None where there is none to prepare: code runs on another machine or in a container, there is no Python,
    or `sandbox.python` is that of a virtual environment and so has the packages that it is meant to have.
    """
    if settings.backend not in ("bubblewrap", "unsafe-local"):
        return None
    base = find_python(settings.python)
    if isinstance(base, Unavailable) or (base.parent.parent / "pyvenv.cfg").is_file():
        return None
    requirements = _with(_lines("requirements.txt"), settings.packages)
    constraints = () if settings.packages else _lines("constraints.txt")
    ingredients = [_LAYOUT, str(base.resolve()), platform.machine(), requirements, constraints]
    key = hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:16]
    return PackageEnvironment(cache_dir.absolute() / "sandbox" / key, base, requirements, constraints)


def find_usable_environment(settings: SandboxSettings, cache_dir: Path) -> PackageEnvironment | None:
    """Return the environment that stands: that of `settings`, or the one without packages of their own.

    So whoever adds a package and has not run `maniple doctor` yet does not lose all others meanwhile.
    """
    wanted = find_environment(settings, cache_dir)
    if wanted is not None and not wanted.stands and settings.packages:
        _log.warning(
            "sandbox.packages are not installed: run `maniple doctor`; until then code has none of them"
        )
        wanted = find_environment(settings.model_copy(update={"packages": ()}), cache_dir)
    return wanted if wanted is not None and wanted.stands else None


def list_installed_packages(settings: SandboxSettings, cache_dir: Path) -> tuple[str, ...]:
    """Return `name version` of the packages that sandboxed Python has beyond its own library; cheap."""
    environment = find_usable_environment(settings, cache_dir)
    return environment.installed() if environment else ()


def _lines(name: str) -> tuple[str, ...]:
    text = (resources.files("maniple.sandbox") / "packages" / name).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _with(requirements: tuple[str, ...], packages: tuple[str, ...]) -> tuple[str, ...]:
    """Add `packages`, each in place of the requirement of its name."""
    chosen = {package_name(one): one for one in (*requirements, *packages)}
    return tuple(chosen[name] for name in sorted(chosen))


def package_name(requirement: str) -> str:
    """The name in a requirement, spelled in the one way that all spellings have in common (PEP 503)."""
    name = re.match(r"[\w.-]+", requirement.strip(), re.ASCII)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement


KEPT_SECONDS = 30 * 24 * 3600.0


def remove_unused(home: Path) -> None:
    """Clear `home`, whose lock the caller holds, of all but environments that are used now or were lately."""
    for folder in [one for one in home.iterdir() if one.is_dir()]:
        if folder.suffix == ".part":
            shutil.rmtree(folder, ignore_errors=True)
        elif _is_disused(folder / "ready.json"):
            # Renamed first: half of one must not look whole.
            gone = folder.with_suffix(".part")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _is_disused(marker: Path) -> bool:
    try:
        if time.time() - marker.stat().st_mtime < KEPT_SECONDS:
            return False
        descriptor = os.open(marker, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody uses it, or nobody can say
        return False
    finally:
        os.close(descriptor)
    return True


Command = tuple[str, ...]
_KEPT_LINES = 200


async def run_logged(command: Command, on_line: Callable[[str], None]) -> tuple[int, str]:
    """Return the exit code and the last lines of output; `on_line` hears each on the event loop.

    Other users can read what it writes. Cancelled, it ends the program and what that started.
    """
    loop = asyncio.get_running_loop()
    try:
        process = _start_logged(command)
    except OSError as error:
        return 127, f"error: {command[0]}: {error.strerror}"
    reading = asyncio.ensure_future(
        asyncio.to_thread(_read_lines, process, lambda line: loop.call_soon_threadsafe(on_line, line))
    )
    try:
        return await asyncio.shield(reading)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await reading


def _start_logged(command: Command) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        umask=0o022,
        start_new_session=True,
    )


def _read_lines(process: subprocess.Popen[str], tell: Callable[[str], object]) -> tuple[int, str]:
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    with process:
        for line in process.stdout or ():
            kept.append(line)
            tell(line.strip())
    return process.returncode, "".join(kept)


Say = Callable[[str], None]

NEEDED_BYTES = 600_000_000
"""Of the environment, 350 MB, and of what pip unpacks at one time."""
_PIP = (sys.executable, "-m", "pip")
_OPTIONS = ("--only-binary", ":all:", "--no-compile", "--no-input", "--no-warn-script-location")
_QUIET = ("--disable-pip-version-check", "--progress-bar", "off")
# Nobody imports them, and compiling them would double the time.
_LEFT_UNCOMPILED = r"/tests?/"


async def install_packages(environment: PackageEnvironment, say: Say, pip: Command = _PIP) -> None:
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


async def _make(environment: PackageEnvironment, say: Say, pip: Command) -> None:
    scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, ".part", "", environment.path.parent))
    part = PackageEnvironment(scratch, environment.base, environment.requirements, environment.constraints)
    try:
        await _fill(part, say, pip)
        await asyncio.to_thread(_finish, part)
        await asyncio.to_thread(os.replace, scratch, environment.path)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _fill(part: PackageEnvironment, say: Say, pip: Command) -> None:
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
    await run_logged((*base, *compile_them), lambda line: None)


async def _run(command: Command, say: Say, part: PackageEnvironment) -> None:
    code, output = await run_logged(command, lambda line: _tell(line, say))
    if code:
        raise SandboxError(_pip_words(output, part))


def _tell(line: str, say: Say) -> None:
    if fetched := re.match(r"Downloading ([\w.]+-[\w.]+)", line):
        say(f"fetching {fetched[1]}")
    elif line.startswith("Installing "):
        say("installing them")


def _pip_words(output: str, part: PackageEnvironment) -> str:
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


def _finish(part: PackageEnvironment) -> None:
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


def _versions(part: PackageEnvironment) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(one) for one in part.path.glob("lib/*/site-packages")])
    versions = {package_name(one.name): one.version for one in found}
    return {name: versions[name] for name in map(package_name, part.requirements) if name in versions}


_KEY = "inspection"
_FONT_LIST_NAME = re.compile(r"fontlist-v[\w.]+\.json", re.ASCII)
_FONT_LIST_BYTES = 5_000_000


async def find_broken_packages(environment: PackageEnvironment, sandbox: Sandbox) -> dict[str, str]:
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
    text = standalone_program("probes.py").read_text(encoding="utf-8")
    return f"{text}\n\nprint_broken({names!r})\n"


def _keep_font_list(environment: PackageEnvironment, workspace: Workspace) -> None:
    if environment.font_list() is not None:
        return
    for name, size in workspace.files(10):
        if _FONT_LIST_NAME.fullmatch(name) and size <= _FONT_LIST_BYTES:
            environment.keep_font_list(name, workspace.read(name, _FONT_LIST_BYTES).content)
