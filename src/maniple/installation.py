"""How this copy of maniple was installed, and the commands that add parts to it."""

import json
import shlex
import sys
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PACKAGE = "maniple"
_UV_CACHE = "archive-v"
"""How the folder of uv's cache begins that holds the environments of `uvx`; a version follows."""


@cache
def is_clone() -> bool:
    """Return whether maniple runs from a clone (an editable installation, or the sources alone)."""
    origin = _read_origin()
    return origin is None or bool(origin.get("dir_info", {}).get("editable"))


def installing(extra: str) -> str:
    """Return the command that adds what an optional part of maniple needs, by how maniple was installed.

    It names the wheel, folder or repository that maniple came from; only without one is it asked of an index.
    """
    if is_clone():
        return f"`.venv/bin/python -m pip install -e '.[{extra}]'` in your clone of maniple"
    requirement = f"{_PACKAGE}[{extra}]"
    if url := _url_of(_read_origin() or {}):
        requirement += f" @ {url}"
    return f"`{_command_of_installer().format(shlex.quote(requirement))}`"


@cache
def _read_origin() -> dict[str, Any] | None:
    """Return what `direct_url.json` says of where maniple came from; {} for an index, None for sources alone.

    The format is that of https://packaging.python.org/en/latest/specifications/direct-url-data-structure/.
    """
    try:
        return json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None


def _url_of(origin: dict[str, Any]) -> str:
    """Return where maniple came from, as a requirement names it; "" for an index."""
    url = str(origin.get("url", ""))
    if repository := origin.get("vcs_info"):
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    folder = origin.get("subdirectory")
    return f"{url}#subdirectory={folder}" if folder else url


@cache
def _command_of_installer() -> str:
    """Return the command that adds to this environment; {} is the quoted requirement. Blocks on disk."""
    prefix = Path(sys.prefix)
    python = shlex.quote(sys.executable).replace("{", "{{").replace("}", "}}")
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool install {}"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx install --force {}"
    if _is_made_by_uv(prefix):
        # What `uvx` makes is a folder of uv's cache, which other commands share: nothing is added to it.
        is_cached = any(part.startswith(_UV_CACHE) for part in prefix.parts)
        return f"uvx --from {{}} {_PACKAGE}" if is_cached else f"uv pip install --python {python} {{}}"
    return f"{python} -m pip install {{}}"


def _is_made_by_uv(prefix: Path) -> bool:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)


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
