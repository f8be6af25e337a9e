"""How this copy of maniple was installed, and the commands that add parts to it."""

import json
import sys
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "maniple"


@cache
def is_clone() -> bool:
    """Return whether maniple runs from a clone (an editable installation, or the sources alone)."""
    try:
        origin = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return bool(origin and json.loads(origin).get("dir_info", {}).get("editable"))


def installing(extra: str) -> str:
    """Return the command that adds what an optional part of maniple needs."""
    if is_clone():
        return f"`.venv/bin/python -m pip install -e '.[{extra}]'` in your clone of maniple"
    return f"`pip install '{_PACKAGE}[{extra}]'`"


@cache
def pip_command() -> tuple[str, ...]:
    """Return the command of pip for this Python. Blocks on disk.

    An environment that uv made has no pip; then it is the one that `ensurepip` carries, run from its wheel.
    """
    if find_spec("pip") is None and (carried := _carried_pip()) is not None:
        return (sys.executable, str(carried / "pip"))
    return (sys.executable, "-m", "pip")


def _carried_pip() -> Path | None:
    found = find_spec("ensurepip")
    folders = [Path(found.origin).parent / "_bundled"] if found is not None and found.origin else []
    # Debian keeps the wheels elsewhere.
    folders += [Path(folder)] if (folder := sysconfig.get_config_var("WHEEL_PKG_DIR")) else []
    return next((wheel for one in folders for wheel in sorted(one.glob("pip-*.whl"))), None)
