"""The packages that sandboxed Python can import: a virtual environment of its own, outside the project's.

    CACHE_DIR/sandbox/KEY/bin/python     KEY stands for the sandbox's Python and the packages
    CACHE_DIR/sandbox/KEY/ready.json     written last, so what has it is whole
    CACHE_DIR/sandbox/KEY/fonts/         matplotlib's list of fonts, made by the first check inside

`installation` makes it, `inspection` looks at it from inside. Without it code has Python's own library only.
"""

import fcntl
import hashlib
import json
import logging
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox.programs import find_python
from maniple.types import Unavailable

INNER_PATH = "/opt/python"
"""Where a sandbox that is made of mounts shows the environment."""
_READY = "ready.json"
_FONT_LIST = "fontlist-*.json"
_log = logging.getLogger(__name__)
# Counted up when what `installation` makes of the same packages changes.
_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Environment:
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


def find_environment(settings: SandboxSettings, cache_dir: Path) -> Environment | None:
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
    return Environment(cache_dir.absolute() / "sandbox" / key, base, requirements, constraints)


def usable_environment(settings: SandboxSettings, cache_dir: Path) -> Environment | None:
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


def installed_packages(settings: SandboxSettings, cache_dir: Path) -> tuple[str, ...]:
    """Return `name version` of the packages that sandboxed Python has beyond its own library; cheap."""
    environment = usable_environment(settings, cache_dir)
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
