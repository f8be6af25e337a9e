from pathlib import Path

import pytest

from maniple.browser import open_browser
from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError, Unavailable


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ms-playwright"


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho not a browser >&2\nexit 3\n")
    path.chmod(0o755)
    return path


def test_the_configured_one_comes_first_and_must_exist(tmp_path: Path) -> None:
    mine = program(tmp_path / "mine")
    assert find_executable(BrowserSettings(executable=mine)) == mine
    with pytest.raises(Unavailable) as missing:
        find_executable(BrowserSettings(executable=tmp_path / "none"))
    assert "browser.executable" in missing.value.reason


def test_then_playwrights_own_then_the_path(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "bin"
    whole = program(path / "chromium")
    assert find_executable(BrowserSettings(), str(path)) == whole
    shell = program(path / "chromium-headless-shell")
    assert find_executable(BrowserSettings(), str(path)) == shell
    assert find_executable(BrowserSettings(headless=False), str(path)) == whole
    managed = program(cache / "chromium-1255" / "chrome-linux64" / "chrome")
    assert find_executable(BrowserSettings(), str(path)) == managed
    managed_shell = program(
        cache / "chromium_headless_shell-1255" / "chrome-headless-shell-linux64" / "chrome-headless-shell"
    )
    assert find_executable(BrowserSettings(), str(path)) == managed_shell
    assert find_executable(BrowserSettings(headless=False), str(path)) == managed


def test_without_any_the_remedy_is_a_command(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as missing:
        find_executable(BrowserSettings(), str(tmp_path))
    assert str(missing.value) == (
        "There is no Chromium. To fix it: apt-get install -y --no-install-recommends "
        "chromium-headless-shell (or `playwright install chromium`)."
    )


@pytest.mark.anyio
async def test_a_disabled_browser_is_reported(guard: AddressGuard) -> None:
    with pytest.raises(Unavailable) as refused:
        await open_browser(BrowserSettings(enabled=False), guard.resolve).__aenter__()
    assert "browser.enabled" in refused.value.remedy


@pytest.mark.anyio
@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])
async def test_a_browser_that_does_not_start_is_reported_and_retried(
    guard: AddressGuard, tmp_path: Path
) -> None:
    settings = BrowserSettings(executable=program(tmp_path / "broken"))
    async with open_browser(settings, guard.resolve) as browser:
        for _ in range(2):
            with pytest.raises(BrowserError, match=r"broken.* did not start"):
                await browser.read("http://127.0.0.2:8080/", thread="t")
