"""Build the page before a wheel or an sdist is packed. Both contain it: installing them needs no Node.js."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "web"))

import page_build


class PageBuildHook(BuildHookInterface):
    """Runs `web/page_build.py`."""

    def dependencies(self) -> list[str]:
        """Return Node.js if the page has to be built; an sdist has it built."""
        return [] if page_build.is_current() else [page_build.NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if it is not current."""
        try:
            page_build.build()
        except (OSError, subprocess.CalledProcessError):
            # All but the page works in a clone; setup.sh reports it, and `make page` tries again.
            if version != "editable":
                raise
