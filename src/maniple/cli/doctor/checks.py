"""The findings of `maniple doctor`, and the checks of everything but the models."""

import asyncio
import importlib.util
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text

from maniple.agents import build_roles
from maniple.browser import open_browser
from maniple.browser.launch import browser_use_environment, find_executable
from maniple.capabilities import Capability
from maniple.capabilities.extensions import document_loaders, load_capabilities, own_tools, skills_offer
from maniple.capabilities.mcp import open_one_by_one
from maniple.cli.mcp import silence_server_logs
from maniple.cli.options import load_configured, settings_files
from maniple.cli.process import has_uvloop
from maniple.cli.text import clean, json_line
from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.config.web_settings import FetchSettings
from maniple.egress import AddressGuard
from maniple.errors import ConfigError, FetchError, McpError, SandboxError, StoreError, Unavailable
from maniple.installation import installing
from maniple.llms.embedded import Progress
from maniple.llms.embedded.model_file import QWEN_CODER
from maniple.reading.fork_server import ForkServer
from maniple.reading.loaders import import_loader
from maniple.replay.player import is_built
from maniple.sandbox import find_chromium_isolation, open_sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.sandbox.host import find_programs
from maniple.sandbox.package_environment import (
    PackageEnvironment,
    find_broken_packages,
    find_environment,
    install_packages,
)
from maniple.search import SearchContext, missing_settings, open_chain, select_papers
from maniple.text import counted, shorten
from maniple.tools.registry import check_approval
from maniple.tools.web import open_document_folder

if TYPE_CHECKING:
    from maniple.mcp import ServerState

CheckStatus = Literal["ok", "warning", "problem"]
_MARKS = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "problem": ("✘", "red")}


_UNREADABLE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. A `problem` prevents every answer; `remedy` is what to do."""

    name: str
    status: CheckStatus
    detail: str
    remedy: str = ""


def can_answer(findings: Sequence[CheckResult]) -> bool:
    """Return whether no finding prevents an answer."""
    return all(finding.status != "problem" for finding in findings)


def findings_json(findings: Sequence[CheckResult]) -> str:
    """Return all findings as one JSON object: `{"ok": …, "checks": [{name, status, detail, remedy}]}`."""
    return json_line({"ok": can_answer(findings), "checks": [asdict(finding) for finding in findings]})


def print_findings(findings: Sequence[CheckResult], console: Console) -> None:
    """Print a line for each finding, its remedy below it, and the conclusion."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = _MARKS[finding.status]
        name = (f"{finding.name:<{width}}  ", "bold")
        console.print(Text.assemble((f"{mark} ", style), name, clean(finding.detail)), soft_wrap=True)
        for remedy in clean(finding.remedy).splitlines():
            console.print(Text(f"{'':<{width + 4}}→ {remedy}", style=style), soft_wrap=True)
    answers = can_answer(findings)
    conclusion = "The team can answer." if answers else "The team cannot answer. Fix the lines with ✘."
    console.print(Text(conclusion, style="green" if answers else "red"), soft_wrap=True)


_OLDEST_PYTHON = (3, 11)
_LOW_SPACE_BYTES = 200_000_000
_REASON_CHARACTERS = 300


def check_python() -> CheckResult:
    """Check the version of Python, and report the event loop that `maniple serve` uses."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < _OLDEST_PYTHON:
        return CheckResult("Python", "problem", version, "Install Python 3.11 or newer.")
    loop = "uvloop" if has_uvloop() else "asyncio's event loop"
    return CheckResult("Python", "ok", f"{version}; services run on {loop}")


def check_settings(config: Path | None) -> tuple[CheckResult, Settings | None]:
    """Read the settings from `config` and the `.env` beside it; None if they are not valid."""
    yaml_file, env_file = settings_files(config)
    try:
        settings = load_configured(config)
        check_approval(settings)
    except ConfigError as error:
        return CheckResult("settings", "problem", str(error), "Correct the lines that are named here."), None
    files = [str(file) for file in (yaml_file, env_file) if file.is_file()]
    source = f"read from {' and '.join(files)}" if files else f"no {yaml_file} and no .env in this folder"
    return CheckResult("settings", "ok", f"{source}; environment variables take precedence"), settings


def check_notices(settings: Settings) -> Sequence[CheckResult]:
    """Return a warning for each valid setting that looks like a mistake, such as a mistyped variable."""
    return [CheckResult("settings", "warning", notice) for notice in settings.notices]


def check_engine(needed: bool) -> CheckResult:
    """Check that the engine of the embedded model is installed, if it is needed."""
    if importlib.util.find_spec("xllamacpp") is not None:
        return CheckResult("embedded engine", "ok", "xllamacpp is installed")
    if not needed:
        return CheckResult("embedded engine", "ok", "not installed, and not needed")
    remedy = (
        "Configure an endpoint (BASIC_API_KEY, BASIC_MODEL, BASIC_BASE_URL); or, if available for it, "
        f"{installing('local')}."
    )
    return CheckResult("embedded engine", "problem", "xllamacpp is not installed", remedy)


def check_model_file(settings: Settings, needed: bool) -> CheckResult:
    """Check for the file of the embedded model, or for enough disk space to download it."""
    name = "embedded model"
    own = settings.embedded.model_file
    file = own or settings.cache_dir / "models" / QWEN_CODER.name
    if file.is_file() and (own or file.stat().st_size == QWEN_CODER.size):
        small = "" if own else f"{QWEN_CODER.title}, a small model that makes mistakes: "
        return CheckResult(name, "ok", f"{small}{file}")
    if not needed:
        return CheckResult(name, "ok", "not installed, and not needed")
    if own:
        return CheckResult(name, "problem", f"{own} does not exist", "Correct embedded.model_file.")
    if reason := _unwritable_reason(settings.cache_dir):
        return CheckResult(name, "problem", f"not downloaded: {reason}", "Set cache_dir to another folder.")
    size = f"{QWEN_CODER.size / 1e9:.1f} GB"
    if _free_bytes(settings.cache_dir) < QWEN_CODER.size:
        return CheckResult(
            name,
            "problem",
            f"not downloaded, and no space for its {size}",
            "Set cache_dir to another folder.",
        )
    return CheckResult(name, "warning", f"the first start downloads it: {size} to {file.parent}")


async def check_sandbox(settings: Settings) -> CheckResult:
    """Start the sandbox and run code that tries to escape from it."""
    own = settings.sandbox
    try:
        async with open_sandbox(own):
            pass
    except Unavailable as error:
        return CheckResult("sandbox", "warning", f"{error.reason} No code is run.", error.remedy)
    if own.backend == "unsafe-local":
        return CheckResult("sandbox", "warning", UNSAFE, "Set sandbox.backend: bubblewrap in conf.yaml.")
    result = "passed its escape tests" if own.backend in ("bubblewrap", "docker") else "ran Python"
    network = f"only {', '.join(own.allow_hosts)}" if own.network == "allowlist" else "none"
    detail = f"{own.backend} {result}; network: {network}"
    if own.packages and own.backend != "bubblewrap":
        missing = f"{detail}; sandbox.packages has no effect: packages come from the image or template"
        return CheckResult("sandbox", "warning", missing, "Build an image or template with these packages.")
    return CheckResult("sandbox", "ok", detail)


async def check_search(settings: Settings) -> CheckResult:
    """Return which search providers are configured, and whether one can be reached.

    None is asked, because that may cost money: a connection is enough to know of an outage.
    """
    context = SearchContext(folder=await asyncio.to_thread(open_document_folder, settings))
    try:
        missing = await asyncio.to_thread(missing_settings, settings.search)
        async with open_chain(settings.search, context) as chain:
            asked = (", then " if settings.search.mode == "first" else " and ").join(chain.names)
            with _without_log("maniple.search"):  # what it would say is the finding
                outage = await chain.describe_outage()
    except Unavailable as error:
        return CheckResult("web search", "warning", error.reason, error.remedy)
    except ConfigError as error:  # a provider of another package; the team does not start with it
        return CheckResult("web search", "problem", str(error), "Correct search in conf.yaml.")
    if outage:
        return CheckResult("web search", "warning", f"{asked}; none of them can be reached", outage)
    if missing:
        remedies = "\n".join(f"Set {key}, or remove {name}." for name, key in missing.items())
        return CheckResult(
            "web search", "warning", f"{asked}; not configured: {', '.join(missing)}", remedies
        )
    folder = settings.search.folder
    if folder is not None and not folder.is_dir():
        return CheckResult("web search", "warning", f"{folder} does not exist", "Correct search.folder.")
    return CheckResult("web search", "ok", asked)


def check_papers(settings: Settings) -> Sequence[CheckResult]:
    """Return which providers search scholarly papers; nothing if none does. Blocks; asks none of them."""
    try:
        names = [spec.name for spec in select_papers(settings.search)]
        missing = missing_settings(settings.search)
    except ConfigError:  # `check_search` says it
        return []
    asked = " and ".join(name for name in names if name not in missing)
    return [CheckResult("paper search", "ok", asked)] if asked else []


async def check_document_folder(settings: Settings) -> Sequence[CheckResult]:
    """Return what of `search.folder` can be found; nothing without it. Nothing is indexed."""
    readers = ForkServer(await asyncio.to_thread(document_loaders, settings))
    folder = await asyncio.to_thread(open_document_folder, settings, readers)
    if folder is None or settings.search.folder is None or not settings.search.folder.is_dir():
        return []
    async with aclosing(folder):
        try:
            state = await folder.state()
        except (OSError, sqlite3.Error) as error:
            remedy = "Delete the folder folder-index in data_dir; the index is made again."
            return [CheckResult("documents", "warning", f"the index cannot be read: {error}", remedy)]
    detail = f"{state.indexed:,} of {state.files:,} documents of {settings.search.folder} are indexed"
    if state.unreadable:
        listed = "; ".join(f"{name}: {reason}" for name, reason in state.unreadable.items())
        detail = f"{detail}. Not readable: {shorten(listed, _UNREADABLE_CHARACTERS)}"
    if state.pending:
        detail = f"{detail}. {len(state.pending):,} are read in the background once the team searches"
    notes = (*state.notices, state.describe_vectors(), state.left_out)
    detail = " ".join(filter(None, (f"{detail}.", *notes)))
    if not state.unreadable and not state.notices:
        return [CheckResult("documents", "ok", detail)]
    remedy = "Replace what cannot be read, such as by copies without a password or with text."
    return [CheckResult("documents", "warning", detail, remedy)]


@contextmanager
def _without_log(name: str) -> Iterator[None]:
    """Leave out the warnings of a logger and of those below it."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


async def check_browser(settings: Settings) -> CheckResult:
    """Return which browser is used, or what it needs. Nothing is started or connected."""
    own = settings.browser
    if not own.enabled:
        return CheckResult("browser", "ok", "turned off (browser.enabled)")
    try:
        async with open_browser(own, isolation=find_chromium_isolation(settings.sandbox)):
            pass
    except Unavailable as error:
        return CheckResult("browser", "warning", error.reason, error.remedy)
    except ConfigError as error:
        return CheckResult("browser", "problem", str(error), "Correct it in conf.yaml or .env.")
    if own.backend in ("cdp", "sandbox"):
        # The address is not printed: it may hold a key.
        detail = f"{own.backend}; its pages can reach private addresses of its network"
        return CheckResult("browser", "warning", detail, "Run it in a network where this is safe.")
    found = await asyncio.to_thread(find_executable, own)
    if own.backend != "browser-use":
        return CheckResult("browser", "ok", str(found))
    version = await asyncio.to_thread(browser_use_environment(own).installed_version)
    return CheckResult("browser", "ok", f"{found} with browser-use {version}")


async def check_database(settings: Settings) -> Sequence[CheckResult]:
    """Check that the PostgreSQL database can be reached and has the schema of this version."""
    if settings.store.backend != "postgres":
        return []
    from maniple.store.configured import describe_database, describe_others, require_postgres

    try:
        await require_postgres(settings)
        strangers, differences = await describe_others(settings)
    except Unavailable as error:
        return [CheckResult("database", "problem", error.reason, error.remedy)]
    except StoreError as error:
        return [CheckResult("database", "problem", str(error), "Correct store in conf.yaml or .env.")]
    detail = f"{describe_database(settings)} has the schema of this version"
    return [
        CheckResult("database", "ok", detail),
        *([CheckResult("data_dir", "problem", strangers)] if strangers else []),
        *([CheckResult("settings", "problem", differences)] if differences else []),
        *await asyncio.to_thread(_check_logins, settings),
    ]


def _check_logins(settings: Settings) -> list[CheckResult]:
    """Check that this node can read the stored logins at MCP servers."""
    from maniple.store.shared_state import open_shared_state

    findings: list[CheckResult] = []
    with open_shared_state(settings) as state:
        for name in state.logins.names():
            try:
                state.logins.read(name)
            except (ConfigError, StoreError) as error:
                remedy = f"Or run: maniple mcp login {name}"
                findings.append(CheckResult("secret_key", "problem", str(error), remedy))
    return findings


def check_folders(settings: Settings) -> Sequence[CheckResult]:
    """Check that the folders are writable and have space. Without the store's folder no run can start."""
    is_stored = settings.store.backend != "memory"
    findings = [
        _check_folder("data_dir", settings.data_dir, is_required=is_stored),
        _check_folder("cache_dir", settings.cache_dir, is_required=False),
    ]
    if settings.store.backend == "sqlite" and settings.store.path is not None:
        findings.append(_check_folder("store.path", settings.store.path.parent, is_required=True))
    return findings


def _check_folder(name: str, folder: Path, *, is_required: bool) -> CheckResult:
    if reason := _unwritable_reason(folder):
        remedy = f"Set {name} in conf.yaml to a writable folder."
        return CheckResult(name, "problem" if is_required else "warning", reason, remedy)
    free = _free_bytes(folder)
    detail = f"{folder}, {free / 1e9:.1f} GB free"
    if free < _LOW_SPACE_BYTES:
        return CheckResult(name, "warning", detail, f"Free some space, or set {name} to another disk.")
    return CheckResult(name, "ok", detail)


def _unwritable_reason(folder: Path) -> str:
    """Return why no file can be created in the folder, or "" if one can; the folder may not exist yet."""
    existing = _existing(folder)
    if not existing.is_dir():
        return f"{folder} cannot be created: {existing} is not a folder"
    verb = "written" if existing == folder.absolute() else "created"
    try:
        # Not os.access: for root it reports every folder as writable, even in /proc and /sys.
        with tempfile.TemporaryDirectory(dir=existing, prefix=".maniple-doctor-"):
            return ""
    except OSError as error:
        return f"{folder} cannot be {verb}: {error.strerror} in {existing}"


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent. A broken link exists, too."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free


_PACKAGES = "packages"
# Time for importing all packages on a busy machine.
_IMPORT_SECONDS = 120.0
_STANDARD_LIBRARY_ONLY = "Code in the sandbox can only use the standard library."


async def check_packages(settings: Settings, progress: Progress, *, build: bool) -> CheckResult:
    """Import each package of the sandbox inside it; with `build`, install missing ones first."""
    environment = await asyncio.to_thread(find_environment, settings.sandbox, settings.cache_dir)
    if environment is None:
        return CheckResult(_PACKAGES, "ok", f"not managed here: {_no_environment_reason(settings)}")
    if not environment.is_ready:
        if not build:
            return CheckResult(
                _PACKAGES,
                "warning",
                f"not installed. {_STANDARD_LIBRARY_ONLY}",
                "Run maniple doctor to install them.",
            )
        try:
            if settings.sandbox.backend == "bubblewrap":
                await asyncio.to_thread(find_programs, settings.sandbox.python)
            await install_packages(environment, lambda text: progress.step(f"sandbox packages: {text}"))
        except Unavailable:  # `check_sandbox` says why
            return CheckResult(_PACKAGES, "ok", "not installed, because there is no sandbox")
        except SandboxError as error:
            return CheckResult(_PACKAGES, "warning", f"{error} {_STANDARD_LIBRARY_ONLY}")
    return await _try_packages(environment, settings)


def _no_environment_reason(settings: Settings) -> str:
    backend = settings.sandbox.backend
    if backend not in ("bubblewrap", "unsafe-local"):
        return f"sandbox.backend is {backend}"
    return f"{settings.sandbox.python} brings its own" if settings.sandbox.python else "no Python was found"


async def _try_packages(environment: PackageEnvironment, settings: Settings) -> CheckResult:
    installed = ", ".join(environment.installed())
    patient = settings.sandbox.model_copy(update={"timeout_seconds": _IMPORT_SECONDS, "network": "none"})
    try:
        async with open_sandbox(patient, cache_dir=settings.cache_dir) as sandbox:
            broken = await find_broken_packages(environment, sandbox)
    except Unavailable:  # `check_sandbox` says why
        return CheckResult(_PACKAGES, "ok", f"{installed}; not tested, because there is no sandbox")
    except SandboxError as error:
        return CheckResult(_PACKAGES, "warning", str(error), _packages_remedy(environment))
    if broken:
        detail = "; ".join(f"{name} cannot be imported: {reason}" for name, reason in broken.items())
        return CheckResult(_PACKAGES, "warning", detail, _packages_remedy(environment))
    return CheckResult(_PACKAGES, "ok", f"{installed}, in {environment.path}")


def _packages_remedy(environment: PackageEnvironment) -> str:
    return f"Check sandbox.memory_mb and packages. Then delete {environment.path} and run maniple doctor."


_NETWORK = "sandbox network"
_HTTPS_PORT = 443
_RESOLVE_SECONDS = 5.0


async def check_network(settings: Settings) -> Sequence[CheckResult]:
    """Resolve the hosts of the allowlist without connecting; return a warning for each that is blocked."""
    sandbox = settings.sandbox
    if sandbox.network != "allowlist" or sandbox.backend != "bubblewrap":
        return []
    guard = AddressGuard(settings.fetch)
    named = [host for host in sandbox.allow_hosts if not host.startswith("*.")]
    reasons = await asyncio.gather(*(_unreachable_reason(guard, host) for host in named))
    return [
        CheckResult(_NETWORK, "warning", reason, "Correct sandbox.allow_hosts, or set fetch.allow_private.")
        for reason in reasons
        if reason
    ]


async def _unreachable_reason(guard: AddressGuard, named: str) -> str:
    """Return why the host cannot be reached, or ""."""
    host, _, port = named.partition(":")
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            await guard.resolve(host, int(port or _HTTPS_PORT))
    except FetchError as error:
        return str(error)
    except TimeoutError:
        return f"{named} could not be resolved in {_RESOLVE_SECONDS:.0f} s."
    return ""


def check_extensions(settings: Settings) -> list[CheckResult]:
    """Load the configured roles, tools and skills as the team does; no finding without any. Blocks."""
    parts = {
        "roles": settings.team.roles,
        "tools": settings.tools,
        "skills": settings.skills,
        "capabilities": settings.capabilities,
        "readers": settings.readers,
    }
    added = ", ".join(f"{len(those)} {name}" for name, those in parts.items() if those)
    if not added:
        return []
    try:
        build_roles(settings.team)
        own_tools(settings, [])
        skills_offer(settings, None)
        _import_readers(settings)
        capabilities = load_capabilities(settings)
    except ConfigError as error:
        return [CheckResult("your own", "problem", str(error), "Correct it; see docs/roles.md.")]
    return [
        CheckResult("your own", "ok", f"{added} can be used"),
        *_check_approval_of(settings, capabilities),
    ]


def _import_readers(settings: Settings) -> None:
    """Import the loaders of documents, as a reader's process does; raises `ConfigError`."""
    for name, loader in document_loaders(settings).by_type.items():
        try:
            import_loader(loader.use)
        except (Exception, SystemExit) as error:  # third-party code may fail in any way
            reason = shorten(f"{type(error).__name__}: {error}", _REASON_CHARACTERS)
            text = f"{loader.use} cannot be used as a reader: {reason}"
            raise settings.origin.error([(("readers", name), text)]) from error


def _check_approval_of(settings: Settings, capabilities: Sequence[Capability]) -> Iterator[CheckResult]:
    """Check `runs.approval` with the tools of packages, which `check_settings` does not know."""
    if not capabilities:
        return
    try:
        check_approval(settings, [tool for one in capabilities for tool in one.tools])
    except ConfigError as error:
        remedy = "Correct runs.approval."
        if silent := [one.name for one in capabilities if not one.tools]:
            # Their tools are known when they are opened, which may take a while or cost something.
            remedy += f" Tools of {', '.join(silent)} are not known here: its package does not declare them."
        yield CheckResult("your own", "warning" if silent else "problem", str(error), remedy)


_PAGE = "web page"
_READING = "reading pages"
_READABLE_FORMATS = "HTML, PDF, Word, RSS, Atom, JSON, CSV, text, pictures"


def check_reading(settings: Settings) -> CheckResult:
    """Return how web pages are read, and warn about a key without effect. Nothing is fetched."""
    fetch = settings.fetch
    rules = "respecting robots.txt" if fetch.robots else "ignoring robots.txt"
    opened = f"; private networks: {', '.join(fetch.allow_private)}" if fetch.allow_private else ""
    detail = f"{_page_reader(fetch)}, {rules}; {_READABLE_FORMATS}{opened}"
    if fetch.jina == "never" and fetch.jina_api_key is not None:
        remedy = "Set fetch.jina: auto, or remove JINA_API_KEY."
        return CheckResult(_READING, "warning", f"{detail}; JINA_API_KEY is set but not used", remedy)
    return CheckResult(_READING, "ok", detail)


def _page_reader(fetch: FetchSettings) -> str:
    key = "JINA_API_KEY" if fetch.jina_api_key is not None else "without a key"
    match fetch.jina:
        case "always":
            return f"only through Jina's reader ({key})"
        case "fallback":
            return f"directly, or else through Jina's reader ({key})"
        case "auto" if fetch.jina_api_key is not None:
            return f"through Jina's reader ({key}), or else directly"
        case _:
            return "directly"


def check_page() -> CheckResult:
    """Return whether the page of `maniple serve` is there: it is built at installation."""
    if is_built():
        return CheckResult(_PAGE, "ok", "built; `maniple serve` shows it at /")
    return CheckResult(
        _PAGE, "warning", "not built: `maniple serve` has none", "In the clone, run: make page"
    )


_MCP_CONNECT_SECONDS = 15.0
_MCP = "MCP"


async def check_mcp(settings: Settings) -> Sequence[CheckResult]:
    """Connect to all configured MCP servers in parallel; no changed tool is accepted."""
    names = [name for name, one in settings.mcp.servers.items() if not one.disabled]
    if not names:
        return []
    silence_server_logs()
    try:
        async with open_one_by_one(settings, names, _MCP_CONNECT_SECONDS) as servers:
            states = servers.states()
    except McpError:
        detail = f"the MCP package is not installed, so these are not used: {', '.join(names)}"
        return [CheckResult(_MCP, "warning", detail, f"Run {installing('mcp')}.")]
    hide = redactor_of(settings).text
    return [
        CheckResult(one.name, one.status, hide(one.detail), hide(one.remedy))
        for state in states
        for one in _server_findings(state)
    ]


def _server_findings(state: "ServerState") -> Iterator[CheckResult]:
    where = f"{state.name} ({state.transport})"
    if state.unavailable_reason:
        detail = f"{where} is unreachable: {state.unavailable_reason}"
        yield CheckResult(
            _MCP, "warning", detail, f"Correct mcp.servers, then run maniple mcp test {state.name}."
        )
        return
    left_out = f"; not used: {', '.join(state.left_out)}" if state.left_out else ""
    yield CheckResult(_MCP, "ok", f"{where}: {counted(len(state.tools), 'tool')}{left_out}")
