"""What `maniple doctor` finds, and how it says so."""

import asyncio
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text

from maniple.agents import roles_of
from maniple.browser import open_browser_if_any
from maniple.browser.executable import find_executable
from maniple.cli.mcp import keep_quiet
from maniple.cli.options import settings_files
from maniple.cli.text import clean, counted, json_line
from maniple.config import Settings, load_settings
from maniple.config.fetch_settings import FetchSettings
from maniple.config.secrets import redactor_of
from maniple.egress import AddressGuard
from maniple.errors import ConfigError, FetchError, McpError, SandboxError
from maniple.llms.embedded import Progress
from maniple.llms.embedded.files import QWEN_CODER
from maniple.llms.embedded.remedy import INSTALL_ENGINE
from maniple.runtime.mcp import open_one_by_one
from maniple.runtime.own_tools import own_tools
from maniple.runtime.skills import skills_of
from maniple.sandbox import open_sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.sandbox.host import find_programs
from maniple.sandbox.package_environment import (
    PackageEnvironment,
    find_broken_packages,
    find_environment,
    install_packages,
)
from maniple.search import SearchContext, missing_settings, open_chain
from maniple.tools.web import open_folder
from maniple.types import Unavailable, installing

if TYPE_CHECKING:
    from maniple.mcp import ServerState

Status = Literal["ok", "warning", "problem"]
_MARKS = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "problem": ("✘", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. A `problem` keeps the team from answering; `remedy` says what helps."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def can_answer(findings: Sequence[Finding]) -> bool:
    """Say whether nothing keeps the team from answering."""
    return all(finding.status != "problem" for finding in findings)


def as_json_line(findings: Sequence[Finding]) -> str:
    """Return all findings as one JSON object: `{"ok": …, "checks": [{name, status, detail, remedy}]}`."""
    return json_line({"ok": can_answer(findings), "checks": [asdict(finding) for finding in findings]})


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print a line for each finding, its remedy below it, and the conclusion."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = _MARKS[finding.status]
        name = (f"{finding.name:<{width}}  ", "bold")
        console.print(Text.assemble((f"{mark} ", style), name, clean(finding.detail)), soft_wrap=True)
        for remedy in clean(finding.remedy).splitlines():
            console.print(Text(f"{'':<{width + 4}}→ {remedy}", style=style), soft_wrap=True)
    answers = can_answer(findings)
    words = "The team can answer." if answers else "The team cannot answer: see the lines with ✘."
    console.print(Text(words, style="green" if answers else "red"), soft_wrap=True)


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
    missing = missing_settings(settings.search)
    async with open_chain(settings.search, SearchContext(folder=open_folder(settings.search))) as chain:
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


_PACKAGES = "packages"
# Importing all of them on a busy machine.
_IMPORT_SECONDS = 120.0
_STANDARD_LIBRARY_ONLY = "Sandboxed code has Python's own library only."


async def check_packages(settings: Settings, progress: Progress, *, build: bool) -> Finding:
    """Try every package of the sandbox inside it; with `build` they are installed first, if need be."""
    environment = await asyncio.to_thread(find_environment, settings.sandbox, settings.cache_dir)
    if environment is None:
        return Finding(_PACKAGES, "ok", f"none are prepared here: {_why_no_environment(settings)}")
    if not environment.stands:
        if not build:
            return Finding(
                _PACKAGES,
                "warning",
                f"not prepared. {_STANDARD_LIBRARY_ONLY}",
                "maniple doctor prepares them.",
            )
        if settings.sandbox.backend == "bubblewrap":
            programs = await asyncio.to_thread(find_programs, settings.sandbox.python)
            if isinstance(programs, Unavailable):
                return Finding(_PACKAGES, "ok", "not prepared, for there is no sandbox")
        try:
            await install_packages(
                environment, lambda words: progress.step(f"the sandbox's packages: {words}")
            )
        except SandboxError as error:
            return Finding(_PACKAGES, "warning", f"{error} {_STANDARD_LIBRARY_ONLY}")
    return await _try_packages(environment, settings)


def _why_no_environment(settings: Settings) -> str:
    backend = settings.sandbox.backend
    if backend not in ("bubblewrap", "unsafe-local"):
        return f"sandbox.backend is {backend}"
    return f"those of {settings.sandbox.python} are used" if settings.sandbox.python else "there is no Python"


async def _try_packages(environment: PackageEnvironment, settings: Settings) -> Finding:
    installed = ", ".join(environment.installed())
    patient = settings.sandbox.model_copy(update={"timeout_seconds": _IMPORT_SECONDS, "network": "none"})
    async with open_sandbox(patient, cache_dir=settings.cache_dir) as sandbox:
        if isinstance(sandbox, Unavailable):
            return Finding(_PACKAGES, "ok", f"{installed}; not tried, for there is no sandbox")
        try:
            broken = await find_broken_packages(environment, sandbox)
        except SandboxError as error:
            return Finding(_PACKAGES, "warning", str(error), _packages_remedy(environment))
    if broken:
        words = "; ".join(f"{name} cannot be imported: {why}" for name, why in broken.items())
        return Finding(_PACKAGES, "warning", words, _packages_remedy(environment))
    return Finding(_PACKAGES, "ok", f"{installed}, in {environment.path}")


def _packages_remedy(environment: PackageEnvironment) -> str:
    return f"Delete {environment.path} and run maniple doctor again; look at sandbox.memory_mb and packages."


_NETWORK = "sandbox network"
_HTTPS_PORT = 443
_RESOLVE_SECONDS = 5.0


async def check_network(settings: Settings) -> Sequence[Finding]:
    """Resolve the hosts of the allowlist and connect to none; nothing to say when all may be reached."""
    sandbox = settings.sandbox
    if sandbox.network != "allowlist" or sandbox.backend != "bubblewrap":
        return []
    guard = AddressGuard(settings.fetch)
    named = [host for host in sandbox.allow_hosts if not host.startswith("*.")]
    reasons = await asyncio.gather(*(_unreachable_reason(guard, host) for host in named))
    return [
        Finding(_NETWORK, "warning", reason, "Correct sandbox.allow_hosts, or look at fetch.allow_private.")
        for reason in reasons
        if reason
    ]


async def _unreachable_reason(guard: AddressGuard, named: str) -> str:
    """Why this host cannot be reached, or ""."""
    host, _, port = named.partition(":")
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            await guard.resolve(host, int(port or _HTTPS_PORT))
    except FetchError as error:
        return str(error)
    except TimeoutError:
        return f"{named} was not looked up in time."
    return ""


def check_own(settings: Settings) -> list[Finding]:
    """Load what is added to the team, as opening it does; nothing is said where there is nothing. Blocks."""
    parts = {"roles": settings.team.roles, "tools": settings.tools, "skills": settings.skills}
    added = ", ".join(f"{len(those)} {name}" for name, those in parts.items() if those)
    if not added:
        return []
    try:
        roles_of(settings.team)
        own_tools(settings, [])
        skills_of(settings, None)
    except ConfigError as error:
        return [Finding("your own", "problem", str(error), "Correct what is named; docs/roles.md says how.")]
    return [Finding("your own", "ok", f"{added} added to the team")]


_READING = "reading pages"
_READABLE_FORMATS = "HTML, PDF, Word, RSS, Atom, JSON, CSV, text, pictures"


def check_reading(settings: Settings) -> Finding:
    """Say how pages are read; nothing is fetched. A key that is never used is worth a word."""
    fetch = settings.fetch
    rules = "by robots.txt" if fetch.robots else "whatever robots.txt says"
    opened = f"; also of {', '.join(fetch.allow_private)}" if fetch.allow_private else ""
    detail = f"{_page_reader(fetch)}, {rules}; {_READABLE_FORMATS}{opened}"
    if fetch.jina == "never" and fetch.jina_api_key is not None:
        remedy = "Set fetch.jina: auto, or take JINA_API_KEY out."
        return Finding(_READING, "warning", f"{detail}; JINA_API_KEY is there and not used", remedy)
    return Finding(_READING, "ok", detail)


def _page_reader(fetch: FetchSettings) -> str:
    key = "JINA_API_KEY" if fetch.jina_api_key is not None else "without a key"
    match fetch.jina:
        case "always":
            return f"through Jina's reader alone ({key})"
        case "fallback":
            return f"directly, else through Jina's reader ({key})"
        case "auto" if fetch.jina_api_key is not None:
            return f"through Jina's reader first ({key}), else directly"
        case _:
            return "directly"


_MCP_CONNECT_SECONDS = 15.0
_MCP = "MCP"


async def check_mcp(settings: Settings) -> Sequence[Finding]:
    """Connect to each configured server, all at once, and tell how it stands; nothing is accepted."""
    names = [name for name, one in settings.mcp.servers.items() if not one.disabled]
    if not names:
        return []
    keep_quiet()
    try:
        async with open_one_by_one(settings, names, _MCP_CONNECT_SECONDS) as servers:
            states = servers.states()
    except McpError:
        lacking = f"the SDK is not installed for {', '.join(names)}"
        return [Finding(_MCP, "warning", lacking, f"Run {installing('mcp')}.")]
    hide = redactor_of(settings).text
    return [
        Finding(one.name, one.status, hide(one.detail), hide(one.remedy))
        for state in states
        for one in _server_findings(state)
    ]


def _server_findings(state: "ServerState") -> Iterator[Finding]:
    where = f"{state.name} ({state.transport})"
    if state.obstacle:
        detail = f"{where} is not there: {state.obstacle}"
        yield Finding(
            _MCP, "warning", detail, f"Correct mcp.servers; maniple mcp test {state.name} tries it."
        )
        return
    left_out = f"; left out: {', '.join(state.left_out)}" if state.left_out else ""
    yield Finding(_MCP, "ok", f"{where}: {counted(len(state.tools), 'tool')}{left_out}")
