"""Checks of this machine and of the settings: one small function for each thing."""

import asyncio
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from maniple.browser import open_browser_if_any
from maniple.browser.executable import find_executable
from maniple.cli.findings import Finding
from maniple.cli.options import settings_files
from maniple.config import Settings, load_settings
from maniple.errors import ConfigError
from maniple.llms.embedded.files import QWEN_CODER
from maniple.llms.embedded.remedy import INSTALL_ENGINE
from maniple.sandbox import open_sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.search import Surroundings, lacking, open_chain
from maniple.tools.documents import open_folder
from maniple.types import Unavailable

_OLDEST_PYTHON = (3, 11)
_LITTLE_SPACE_BYTES = 200_000_000


def check_python() -> Finding:
    """Look at the interpreter's version."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("Python", "problem", version, "Install Python 3.11 or newer.")
    return Finding("Python", "ok", version)


def check_settings(config: Path | None) -> tuple[Finding, Settings | None]:
    """Read the settings, and say from which files: `config`, and the `.env` beside it."""
    yaml_file, env_file = settings_files(config)
    try:
        settings = load_settings(yaml_file, env_file=env_file)
    except ConfigError as error:
        return Finding("settings", "problem", str(error), "Correct the lines that are named."), None
    files = [str(file) for file in (yaml_file, env_file) if file.is_file()]
    read = f"{' and '.join(files)} valid" if files else f"no {yaml_file} and no .env here"
    return Finding("settings", "ok", f"{read}; the environment comes on top"), settings


def check_notices(settings: Settings) -> Sequence[Finding]:
    """Tell what looks like a slip although the settings are valid, such as a mistyped variable."""
    return [Finding("settings", "warning", notice) for notice in settings.notices]


def check_engine(needed: bool) -> Finding:
    """Look for the embedded model's engine."""
    if importlib.util.find_spec("xllamacpp") is not None:
        return Finding("embedded engine", "ok", "xllamacpp is installed")
    if not needed:
        return Finding("embedded engine", "ok", "absent, and not needed")
    remedy = (
        "Configure an endpoint (BASIC_API_KEY, BASIC_MODEL, BASIC_BASE_URL); or, where this machine has a "
        f"package for it, {INSTALL_ENGINE}."
    )
    return Finding("embedded engine", "problem", "xllamacpp is not installed", remedy)


def check_model_file(settings: Settings, needed: bool) -> Finding:
    """Look for the embedded model's file, or for the room to fetch it."""
    name = "embedded model"
    own = settings.embedded.model_file
    file = own or settings.cache_dir / "models" / QWEN_CODER.name
    if file.is_file() and (own or file.stat().st_size == QWEN_CODER.size):
        small = "" if own else f"{QWEN_CODER.title}, small and sometimes wrong: "
        return Finding(name, "ok", f"{small}{file}")
    if not needed:
        return Finding(name, "ok", "absent, and not needed")
    if own:
        return Finding(name, "problem", f"there is no {own}", "Correct embedded.model_file.")
    if reason := _unwritable(settings.cache_dir):
        return Finding(name, "problem", f"absent, and {reason}", "Set cache_dir elsewhere.")
    size = f"{QWEN_CODER.size / 1e9:.1f} GB"
    if _free_bytes(settings.cache_dir) < QWEN_CODER.size:
        return Finding(name, "problem", f"absent, and no room for its {size}", "Set cache_dir elsewhere.")
    return Finding(name, "warning", f"the first start fetches it: {size} into {file.parent}")


async def check_sandbox(settings: Settings) -> Finding:
    """Start the sandbox and let code try to get out of it."""
    own = settings.sandbox
    async with open_sandbox(own) as sandbox:
        if isinstance(sandbox, Unavailable):
            return Finding("sandbox", "warning", f"{sandbox.reason} Code is not run.", sandbox.remedy)
    if own.backend == "unsafe-local":
        return Finding("sandbox", "warning", UNSAFE, "Set sandbox.backend: bubblewrap in conf.yaml.")
    shown = "withstood its probes" if own.backend in ("bubblewrap", "docker") else "ran a line of Python"
    network = f"only {', '.join(own.allow_hosts)}" if own.network == "allowlist" else "none"
    detail = f"{own.backend} {shown}; network: {network}"
    if own.packages and own.backend != "bubblewrap":
        missing = f"{detail}; packages are the image's or template's, and sandbox.packages adds none there"
        return Finding("sandbox", "warning", missing, "Build an image or template that has them.")
    return Finding("sandbox", "ok", detail)


async def check_search(settings: Settings) -> Finding:
    """Say who is asked; nobody is, since that may cost money."""
    missing = lacking(settings.search)
    async with open_chain(settings.search, Surroundings(folder=open_folder(settings.search))) as chain:
        if isinstance(chain, Unavailable):
            return Finding("web search", "warning", chain.reason, chain.remedy)
        asked = (", then " if settings.search.mode == "first" else " and ").join(chain.names)
    if missing:
        remedies = "\n".join(f"Set {want}, or take {name} out." for name, want in missing.items())
        return Finding("web search", "warning", f"{asked}; but not {', '.join(missing)}", remedies)
    folder = settings.search.folder
    if folder is not None and not folder.is_dir():
        return Finding("web search", "warning", f"there is no folder {folder}", "Correct search.folder.")
    return Finding("web search", "ok", asked)


async def check_browser(settings: Settings) -> Finding:
    """Say which browser it is, or what it lacks; nothing is started and nobody connected with."""
    own = settings.browser
    if not own.enabled:
        return Finding("browser", "ok", "turned off (browser.enabled)")
    try:
        async with open_browser_if_any(own) as browser:
            if isinstance(browser, Unavailable):
                return Finding("browser", "warning", browser.reason, browser.remedy)
    except ConfigError as error:
        return Finding("browser", "problem", str(error), "Correct it in conf.yaml or .env.")
    if own.backend in ("cdp", "sandbox"):
        # An address may hold a key.
        detail = f"{own.backend}; its pages reach whatever it can reach, private addresses too"
        return Finding("browser", "warning", detail, "Let it run where that does no harm.")
    found = await asyncio.to_thread(find_executable, own)
    return Finding(
        "browser", "ok", f"{found} with browser-use" if own.backend == "browser-use" else str(found)
    )


def check_folders(settings: Settings) -> Sequence[Finding]:
    """Look whether the folders can be written and have room; without the one of the store nothing runs."""
    keeps = settings.store.backend == "sqlite"
    findings = [
        _check_folder("data_dir", settings.data_dir, vital=keeps),
        _check_folder("cache_dir", settings.cache_dir, vital=False),
    ]
    if keeps and settings.store.path is not None:
        findings.append(_check_folder("store.path", settings.store.path.parent, vital=True))
    return findings


def _check_folder(name: str, folder: Path, *, vital: bool) -> Finding:
    if reason := _unwritable(folder):
        remedy = f"Set {name} in conf.yaml to a place that can be written."
        return Finding(name, "problem" if vital else "warning", reason, remedy)
    free = _free_bytes(folder)
    detail = f"{folder}, {free / 1e9:.1f} GB free"
    if free < _LITTLE_SPACE_BYTES:
        return Finding(name, "warning", detail, f"Make room, or set {name} to another disk.")
    return Finding(name, "ok", detail)


def _unwritable(folder: Path) -> str:
    """Return why nothing can be made in the folder, or "" when it can: tried where it is or is to be."""
    existing = _existing(folder)
    if not existing.is_dir():
        return f"{folder} cannot be made: {existing} is no folder"
    verb = "written" if existing == folder.absolute() else "made"
    try:
        # os.access would do for a person; to root it allows everything, in /proc and /sys too.
        with tempfile.TemporaryDirectory(dir=existing, prefix=".maniple-doctor-"):
            return ""
    except OSError as error:
        return f"{folder} cannot be {verb}: {error.strerror} in {existing}"


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists; a link to nothing is there, too."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free
