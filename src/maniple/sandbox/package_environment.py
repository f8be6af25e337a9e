"""The packages that sandboxed Python can import, in a virtual environment outside the project's.

    CACHE_DIR/sandbox/KEY/bin/python     KEY is a digest of the sandbox's Python and the packages
    CACHE_DIR/sandbox/KEY/ready.json     written last, so it marks a complete environment
    CACHE_DIR/sandbox/KEY/fonts/         matplotlib's list of fonts, made by the first check inside

`install_packages` creates it and `find_broken_packages` imports every package inside a sandbox. Only wheels
are installed, so nothing of a package runs on the host; pip uses the user's mirrors, proxies and
certificates. Without the environment, code has only the standard library.
"""

import asyncio
import errno
import fcntl
import hashlib
import importlib.metadata
import importlib.util
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress.environment_proxies import EnvironmentProxies, program_environment
from maniple.errors import SandboxError, Unavailable
from maniple.installation import pip_command
from maniple.locks import file_lock
from maniple.sandbox.host import find_python, standalone_program
from maniple.sandbox.sessions import Sandbox
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces

INNER_PATH = "/opt/python"
"""The mount point of the environment in a sandbox."""
_READY = "ready.json"
_FONT_LIST = "fontlist-*.json"
_log = logging.getLogger(__name__)
# Increase it when the same packages result in a different environment.
_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class PackageEnvironment:
    """A virtual environment at `path`, which may not exist yet.

    `base` is its base interpreter. `requirements` are those of pip; `constraints` pin their dependencies and
    are empty where the settings add packages, whose dependencies are unknown.
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
    def is_ready(self) -> bool:
        """Whether it is complete."""
        return (self.path / _READY).is_file()

    def installed(self) -> tuple[str, ...]:
        """Return `name version` of each required package; empty while the environment is incomplete."""
        try:
            found = json.loads((self.path / _READY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        return tuple(f"{name} {version}" for name, version in found.items())

    def font_list(self) -> Path | None:
        """Return matplotlib's font list, which saves a search for fonts; it belongs in MPLCONFIGDIR."""
        return next((self.path / "fonts").glob(_FONT_LIST), None)

    def store_font_list(self, name: str, content: bytes) -> None:
        """Store the font list; concurrent writers are safe."""
        folder = self.path / "fonts"
        folder.mkdir(mode=0o755, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(content)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(folder / name)

    def mark_ready(self, versions: dict[str, str]) -> None:
        """Mark it as complete, with the versions of its packages."""
        (self.path / _READY).write_text(json.dumps(versions), encoding="utf-8")

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Prevent its removal while the context is open; yield whether it is complete."""
        try:
            descriptor = os.open(self.path / _READY, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield False
            return
        try:
            with suppress(OSError):  # a file system without locks, or another user's environment
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                os.utime(descriptor)
            yield self.is_ready
        finally:
            os.close(descriptor)


def find_environment(settings: SandboxSettings, cache_dir: Path) -> PackageEnvironment | None:
    """Return the environment for `settings`, complete or not; cheap.

    None where nothing is to be prepared: code runs on another machine or in a container, there is no Python,
    or `sandbox.python` belongs to a virtual environment, which is used as it is.
    """
    if settings.backend not in ("bubblewrap", "unsafe-local"):
        return None
    try:
        base = find_python(settings.python)
    except Unavailable:  # the sandbox gives the reason
        return None
    if (base.parent.parent / "pyvenv.cfg").is_file():
        return None
    requirements = _with(_lines("requirements.txt"), settings.packages)
    constraints = () if settings.packages else _lines("constraints.txt")
    ingredients = [_LAYOUT, str(base.resolve()), platform.machine(), requirements, constraints]
    key = hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:16]
    return PackageEnvironment(cache_dir.absolute() / "sandbox" / key, base, requirements, constraints)


def find_usable_environment(settings: SandboxSettings, cache_dir: Path) -> PackageEnvironment | None:
    """Return the complete environment for `settings`, else the one without `sandbox.packages`.

    The latter serves until `maniple doctor` has installed added packages.
    """
    wanted = find_environment(settings, cache_dir)
    if wanted is not None and not wanted.is_ready and settings.packages:
        _log.warning(
            "sandbox.packages are not installed: run `maniple doctor`; until then code has none of them"
        )
        wanted = find_environment(settings.model_copy(update={"packages": ()}), cache_dir)
    return wanted if wanted is not None and wanted.is_ready else None


def list_installed_packages(settings: SandboxSettings, cache_dir: Path) -> tuple[str, ...]:
    """Return `name version` of the packages that sandboxed Python has besides its standard library; cheap."""
    environment = find_usable_environment(settings, cache_dir)
    return environment.installed() if environment else ()


def _lines(name: str) -> tuple[str, ...]:
    text = (resources.files("maniple.sandbox") / "packages" / name).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _with(requirements: tuple[str, ...], packages: tuple[str, ...]) -> tuple[str, ...]:
    """Add `packages`; each replaces the requirement of the same name."""
    chosen = {package_name(one): one for one in (*requirements, *packages)}
    return tuple(chosen[name] for name in sorted(chosen))


def package_name(requirement: str) -> str:
    """Return the name in a requirement, normalized by PEP 503."""
    name = re.match(r"[\w.-]+", requirement.strip(), re.ASCII)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement


UNUSED_SECONDS = 30 * 24 * 3600.0


def remove_unused_environments(home: Path) -> None:
    """Remove from `home` what has not been used for a month; the caller holds the lock of `home`."""
    for folder in [one for one in home.iterdir() if one.is_dir()]:
        if folder.suffix == ".part":
            shutil.rmtree(folder, ignore_errors=True)
        elif _is_unused(folder / "ready.json"):
            # Renamed first: a partly removed one must not look complete.
            gone = folder.with_suffix(".part")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _is_unused(marker: Path) -> bool:
    try:
        if time.time() - marker.stat().st_mtime < UNUSED_SECONDS:
            return False
        descriptor = os.open(marker, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is in use, or its use is unknown
        return False
    finally:
        os.close(descriptor)
    return True


Command = tuple[str, ...]
_MAX_LINES = 200


async def run_logged(
    command: Command, on_line: Callable[[str], None], modules: Path | None = None
) -> tuple[int, str]:
    """Run a program; return its exit code and last lines. `on_line` receives each line on the event loop.

    `modules` is a folder of modules that it can import.

    Its files are readable by other users. A cancellation kills the program and its children.
    """
    loop = asyncio.get_running_loop()
    try:
        process = _start_logged(command, {"PYTHONPATH": str(modules)} if modules else {})
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


def _start_logged(command: Command, variables: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**program_environment(), **variables},
        umask=0o022,
        start_new_session=True,
    )


def _read_lines(process: subprocess.Popen[str], on_line: Callable[[str], object]) -> tuple[int, str]:
    lines: deque[str] = deque(maxlen=_MAX_LINES)
    with process:
        for line in process.stdout or ():
            lines.append(line)
            on_line(line.strip())
    return process.returncode, "".join(lines)


ReportProgress = Callable[[str], None]

NEEDED_BYTES = 900_000_000
"""The environment (600 MB) and what pip unpacks meanwhile."""
_OPTIONS = ("--only-binary", ":all:", "--no-compile", "--no-input", "--no-warn-script-location")
_QUIET = ("--disable-pip-version-check", "--progress-bar", "off")
# Tests of packages are not imported, and compiling them would double the time.
_LEFT_UNCOMPILED = r"/tests?/"


async def install_packages(
    environment: PackageEnvironment, report: ReportProgress, pip: Command | None = None
) -> None:
    """Create `environment` unless it is complete; `report` receives progress messages.

    `pip` is the command of pip, `pip_command()` by default. A lock serializes processes. Leftovers of
    interrupted installations, and environments that were unused for a month, are removed. Raises
    `SandboxError` with what to do.
    """
    home = environment.path.parent
    try:
        await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
        async with file_lock(home / "lock", lambda: report("waiting for another program that prepares them")):
            if not environment.is_ready:
                await asyncio.to_thread(remove_unused_environments, home)
                await asyncio.to_thread(_require_space, home)
                await _create(environment, report, pip or await asyncio.to_thread(pip_command))
    except OSError as error:
        raise SandboxError(_explain_disk_error(home, error)) from error


def _require_space(home: Path) -> None:
    if shutil.disk_usage(home).free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _explain_disk_error(home: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        need = f"They need {NEEDED_BYTES // 1_000_000} MB while they are installed"
        return f"There is no room for the sandbox's packages in {home}. {need}: make room, or set cache_dir."
    reason = error.strerror or str(error)
    return f"The sandbox's packages cannot be stored in {home}: {reason}. Set cache_dir to another folder."


async def _create(environment: PackageEnvironment, report: ReportProgress, pip: Command) -> None:
    scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, ".part", "", environment.path.parent))
    part = PackageEnvironment(scratch, environment.base, environment.requirements, environment.constraints)
    try:
        await _fill(part, report, pip)
        await asyncio.to_thread(_finish, part)
        await asyncio.to_thread(os.replace, scratch, environment.path)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _fill(part: PackageEnvironment, report: ReportProgress, pip: Command) -> None:
    report("making a virtual environment")
    base = (str(part.base), "-I")
    await _run((*base, "-m", "venv", "--without-pip", str(part.path)), report, part)
    constraints = part.path / "constraints.txt"
    await asyncio.to_thread(constraints.write_text, "\n".join(part.constraints))
    install_them = ("install", *_OPTIONS, *_QUIET, "-c", str(constraints), "--", *part.requirements)
    modules = await asyncio.to_thread(_copy_socks, part.path / "modules-of-pip")
    await _run((*pip, "--python", str(part.python), *install_them), report, part, modules)
    await asyncio.to_thread(shutil.rmtree, modules)
    report("compiling them")
    compile_them = ("-S", "-m", "compileall", "-q", "-j", "0", "-x", _LEFT_UNCOMPILED, str(part.path / "lib"))
    # Some packages contain templates that are not valid Python; their errors are ignored.
    await run_logged((*base, *compile_them), lambda line: None)


def _copy_socks(folder: Path) -> Path:
    """Copy PySocks to `folder`: pip runs with the environment's Python, which has no packages of ours."""
    folder.mkdir()
    if (spec := importlib.util.find_spec("socks")) is not None and spec.origin:
        shutil.copy(spec.origin, folder)
    return folder


async def _run(
    command: Command, report: ReportProgress, part: PackageEnvironment, modules: Path | None = None
) -> None:
    code, output = await run_logged(command, lambda line: _report_pip_line(line, report), modules)
    if code:
        raise SandboxError(await asyncio.to_thread(_explain_pip_error, output, part))


def _report_pip_line(line: str, report: ReportProgress) -> None:
    if fetched := re.match(r"Downloading ([\w.]+-[\w.]+)", line):
        report(f"fetching {fetched[1]}")
    elif line.startswith("Installing "):
        report("installing them")


def _explain_pip_error(output: str, part: PackageEnvironment) -> str:
    errors = [line for line in output.splitlines() if re.search("error", line, re.IGNORECASE)]
    message = (errors or output.splitlines() or ["nothing"])[-1].strip()[:300]
    if "No space left" in output:
        return _explain_disk_error(part.path.parent, OSError(errno.ENOSPC, ""))
    if "Retrying (" in output:
        proxies = EnvironmentProxies.read()
        through = f" through the proxy that {proxies.describe('https')} names" if proxies.by_scheme else ""
        what = f"pip cannot reach its index{through}. Check the network and pip's settings"
    elif "No module named pip" in output:
        what = f"pip is missing: run `{sys.executable} -m ensurepip`"
    elif "No module named venv" in output:
        what = f"{part.base} cannot make virtual environments: apt-get install -y python3-venv"
    else:
        what = f"pip reports: {message.rstrip('.')}. Check sandbox.packages and the network"
    return f"The sandbox's packages could not be installed: {what}; then run `maniple doctor`."


def _finish(part: PackageEnvironment) -> None:
    _let_scripts_find_python(part.path)
    part.path.chmod(0o755)
    part.mark_ready(_versions(part))


def _let_scripts_find_python(path: Path) -> None:
    """Make scripts start the first Python of PATH: the environment is moved later."""
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
    """Return why packages cannot be imported, by name; empty when all can.

    The first check stores matplotlib's font list for later sessions. Raises `SandboxError`.
    """
    names = [package_name(one) for one in environment.requirements]
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-inspection-"))
    try:
        workspace = await asyncio.to_thread(Workspaces(folder).open, _KEY)
        completed = await sandbox.run_python(_program(names), key=_KEY, workspace=workspace)
        await asyncio.to_thread(_store_font_list, environment, workspace)
    finally:
        await sandbox.stop(_KEY)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    try:
        broken = json.loads(completed.stdout.splitlines()[-1])
        return {str(name): str(why) for name, why in broken.items()}
    except (ValueError, IndexError, AttributeError) as error:
        raise SandboxError(f"The packages could not be tested: {completed.text()[-500:]}") from error


def _program(names: list[str]) -> str:
    text = standalone_program("probes.py").read_text(encoding="utf-8")
    return f"{text}\n\nprint_broken({names!r})\n"


def _store_font_list(environment: PackageEnvironment, workspace: Workspace) -> None:
    if environment.font_list() is not None:
        return
    for name, size in workspace.files(10):
        if _FONT_LIST_NAME.fullmatch(name) and size <= _FONT_LIST_BYTES:
            # Without it matplotlib searches again: a read-only cache, such as an image's, is no error.
            with suppress(OSError):
                environment.store_font_list(name, workspace.read(name, _FONT_LIST_BYTES).content)
