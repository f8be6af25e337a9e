"""The virtual environment of browser-use, beside maniple's own.

browser-use pins its dependencies to single releases, so it is never installed together with maniple: its
process (`worker.py`) is started by the Python of this environment. `maniple doctor --fix` makes it.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from maniple.errors import Unavailable
from maniple.installation import pip_command

REQUIREMENT = Requirement("browser-use>=0.13.14,<0.14")
"""The worker uses parts that are not browser-use's public API: another minor version needs a look into it."""
SIZE_BYTES = 250_000_000
_OPTIONS = ("--quiet", "--no-compile", "--no-input", "--disable-pip-version-check")
_REMEDY = "run `maniple doctor --fix` (`.venv/bin/maniple doctor --fix` in a clone)."


@dataclass(frozen=True, slots=True)
class BrowserUseEnvironment:
    """A virtual environment in `folder`, which may not exist yet."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def installed_version(self) -> str:
        """Return the version of browser-use in it; "" if it is incomplete. Blocks on disk.

        pip installs browser-use after everything that it needs.
        """
        if not self.python.is_file():
            return ""
        names = (
            found.name for found in self.folder.glob("lib/python*/site-packages/browser_use-*.dist-info")
        )
        return next((name.removesuffix(".dist-info").partition("-")[2] for name in names), "")

    def check(self) -> str:
        """Return the version of browser-use; raises `Unavailable` if it cannot be used. Blocks on disk."""
        version = self.installed_version()
        if not version:
            raise Unavailable(f"browser-use is not installed in {self.folder}.", _REMEDY)
        if not _is_supported(version):
            reason = f"browser-use {version} in {self.folder} is not supported: {REQUIREMENT}."
            raise Unavailable(reason, _REMEDY)
        return version

    def commands(self) -> Sequence[Sequence[str]]:
        """Return the commands that make it with pip, one after the other. Blocks on disk.

        A folder that is no virtual environment is not emptied.
        """
        clear = ("--clear",) if (self.folder / "pyvenv.cfg").is_file() else ()
        return (
            (sys.executable, "-m", "venv", *clear, "--without-pip", str(self.folder)),
            (*pip_command(), "--python", str(self.python), "install", *_OPTIONS, str(REQUIREMENT)),
        )


def _is_supported(version: str) -> bool:
    try:
        return Version(version) in REQUIREMENT.specifier
    except InvalidVersion:
        return False
