"""Finding a Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_cache_path

from maniple.config import BrowserSettings
from maniple.types import Unavailable

# The shell first: half the memory of the whole browser, and it asks Google for nothing.
_HEADLESS = ("chromium-headless-shell",)
_WHOLE = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def find_executable(settings: BrowserSettings, search_path: str | None = None) -> Path | Unavailable:
    """The configured Chromium, else Playwright's own, else one on the path.

    `search_path` replaces the environment's PATH.
    """
    if settings.executable is not None:
        if settings.executable.is_file():
            return settings.executable
        return Unavailable(
            f"`browser.executable` names {settings.executable}, which is no file.", "correct it."
        )
    if managed := next(_of_playwright(settings.headless), None):
        return managed
    for name in (_HEADLESS if settings.headless else ()) + _WHOLE:
        if found := shutil.which(name, path=search_path):
            return Path(found)
    package = "chromium-headless-shell" if settings.headless else "chromium"
    return Unavailable(
        "There is no Chromium.",
        f"apt-get install -y --no-install-recommends {package} (or `playwright install chromium`).",
    )


def _of_playwright(headless: bool) -> Iterator[Path]:
    folder = user_cache_path("ms-playwright", appauthor=False)
    if headless:
        yield from sorted(folder.glob("chromium_headless_shell-*/*/*headless*shell"), reverse=True)
    yield from sorted(folder.glob("chromium-*/chrome-*/chrome"), reverse=True)
