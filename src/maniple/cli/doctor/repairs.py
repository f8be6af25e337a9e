"""`maniple doctor --fix`: install what is missing, each part after the user's consent."""

import asyncio
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import typer
from packaging.markers import Marker
from packaging.requirements import Requirement

from maniple.browser.drivers.browser_use.environment import SIZE_BYTES
from maniple.browser.launch import browser_use_environment, find_executable
from maniple.cli.doctor.checks import check_model_file
from maniple.cli.doctor.model_checks import configured_models
from maniple.cli.render import Consoles
from maniple.cli.text import clean
from maniple.config import Settings
from maniple.egress.environment_proxies import program_environment
from maniple.errors import ManipleError, Unavailable
from maniple.installation import pip_command
from maniple.llms.embedded import ensure_model_file
from maniple.text import file_size

Consent = Callable[[str], bool]
"""Asks the user whether to do what the text says."""
NO_KEYBOARD = "Nothing was installed: there is nobody to ask. Add --yes to consent to all of it."
_APT = ("apt-get", "install", "-y", "--no-install-recommends")
_ENGINE = "xllamacpp"

_FONTS = (
    ("zh", "fonts-wqy-zenhei", "Chinese, Japanese and Korean"),
    ("hi", "fonts-lohit-deva", "Hindi"),
    ("und-zsye", "fonts-noto-color-emoji", "emoji"),
)
"""The language of fontconfig, the Debian package with a font for it, and what it shows."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Something that is missing, and how it is installed."""

    purpose: str
    action: str
    """What is done, as the user is asked."""
    run: Callable[[], Awaitable[str]]
    """Does it; returns why it failed, "" if it did not."""


async def repair(settings: Settings, *, consents: bool, ask: Consent | None) -> bool:
    """Install what is missing in the settings' set-up; return whether nothing failed.

    `consents` is a consent to everything; otherwise `ask` is called for each part, None if nobody can answer.
    """
    repairs = await asyncio.to_thread(lambda: list(find_repairs(settings)))
    if not repairs:
        print("Nothing is missing that maniple could install.")
    elif not consents and ask is None:
        for one in repairs:
            print(clean(f"{one.purpose}\n  {one.action}"))
        print(NO_KEYBOARD)
        return False
    failures: list[str] = []
    for one in repairs:
        question = clean(f"{one.purpose}\n  {one.action}")
        if consents or (ask is not None and await asyncio.to_thread(ask, question)):
            print(clean(one.action), file=sys.stderr)
            failures += filter(None, [await one.run()])
    for why in failures:
        print(clean(why), file=sys.stderr)
    return not failures


def ask_on_terminal(question: str) -> bool:
    """Ask for consent on the terminal; no answer is a refusal."""
    return typer.confirm(f"{question}\nDo it?", default=False)


def find_repairs(settings: Settings) -> Iterator[Repair]:
    """Yield what is missing and can be installed. Blocks on disk."""
    if missing := dict(_find_missing_packages(settings)):
        yield _debian_repair(missing)
    if settings.browser.enabled and settings.browser.backend == "browser-use":
        yield from _find_browser_use_repair(settings)
    if configured_models(settings) or not settings.embedded.enabled:
        return
    if importlib.util.find_spec(_ENGINE) is None:
        engine = _requirements_of("local")
        command = (*pip_command(), "install", "--only-binary", ":all:", *engine)
        yield _command_repair("No model is configured, and the embedded one needs its engine.", command)
    if check_model_file(settings, needed=True).status == "warning":
        yield Repair(
            "The embedded model is not there yet: 1.1 GB.",
            f"download it to {settings.cache_dir / 'models'}",
            lambda: _fetch_model(settings),
        )


def _find_browser_use_repair(settings: Settings) -> Iterator[Repair]:
    environment = browser_use_environment(settings.browser)
    try:
        environment.check()
    except Unavailable as error:
        purpose = f"{error.reason} It gets an environment of its own: {file_size(SIZE_BYTES)}."
        yield _command_repair(purpose, *environment.commands())


def _find_missing_packages(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the missing packages of Debian, each with what it is for."""
    if settings.sandbox.backend == "bubblewrap" and shutil.which("bwrap") is None:
        yield "bubblewrap", "run code"
    if settings.browser.enabled and settings.browser.backend in ("local", "browser-use"):
        try:
            find_executable(settings.browser)
        except Unavailable:
            if settings.browser.executable is None:
                name = "chromium-headless-shell" if settings.browser.headless else "chromium"
                yield name, "open pages in a browser"
    for language, package, texts in _FONTS if shutil.which("fc-list") else ():
        if not _run_quietly(("fc-list", f":lang={language}")).strip():
            yield package, f"show {texts} in pictures and PDFs"


def _debian_repair(missing: dict[str, str]) -> Repair:
    needs = f"Missing, to {', to '.join(missing.values())}: {', '.join(missing)}."
    if shutil.which("apt-get") is None:
        why = f"{needs} There is no apt-get here: install them with your system's package manager."

        async def explain() -> str:
            return why

        return Repair(needs, "say what to install by hand", explain)
    as_root = () if os.geteuid() == 0 else ("sudo",)
    return _command_repair(needs, (*as_root, *_APT, *missing))


def _command_repair(purpose: str, *commands: Sequence[str]) -> Repair:
    """Return the repair that runs commands one after the other until one fails."""

    async def run() -> str:
        for command in commands:
            if failure := await asyncio.to_thread(_run_command, command):
                return failure
        return ""

    return Repair(purpose, " && ".join(map(shlex.join, commands)), run)


def _run_command(command: Sequence[str]) -> str:
    """Run a command; return why it failed, "" if it did not."""
    try:
        code = subprocess.run(command, check=False, env=program_environment()).returncode
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}."
    return f"{shlex.join(command)} ended with status {code}." if code else ""


def _requirements_of(extra: str) -> list[str]:
    """Return what an extra of the installed maniple requires."""
    every = [Requirement(one) for one in importlib.metadata.requires("maniple") or ()]
    return [f"{one.name}{one.specifier}" for one in every if one.marker and _is_of_extra(one.marker, extra)]


def _is_of_extra(marker: Marker, extra: str) -> bool:
    return marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


async def _fetch_model(settings: Settings) -> str:
    progress = Consoles.of_this_process().progress()
    try:
        await ensure_model_file(settings.embedded, settings.cache_dir, progress)
    except ManipleError as error:
        return str(error)
    finally:
        progress.close()
    return ""


def _run_quietly(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
