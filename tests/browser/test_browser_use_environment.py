"""The environment of browser-use: found, refused, and named with the command that makes it."""

from pathlib import Path

import pytest
from platformdirs import user_cache_path

from maniple.browser.drivers.browser_use.environment import BrowserUseEnvironment
from maniple.browser.launch import browser_use_environment, open_browser
from maniple.config import BrowserSettings, Settings
from maniple.errors import Unavailable

pytestmark = pytest.mark.anyio


def make_environment(folder: Path, version: str) -> None:
    """Make what looks like an environment with this version of browser-use."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (folder / "pyvenv.cfg").touch()
    if version:
        (folder / "lib/python3.11/site-packages" / f"browser_use-{version}.dist-info").mkdir(parents=True)


@pytest.mark.parametrize("version", ["", "0.11.13", "0.14.0", "1.0", "x"])
async def test_what_cannot_be_used_is_refused_with_the_command(tmp_path: Path, version: str) -> None:
    executable = tmp_path / "chromium"
    executable.touch()
    make_environment(tmp_path / "it", version)
    settings = BrowserSettings(backend="browser-use", browser_use_dir=tmp_path / "it", executable=executable)
    with pytest.raises(Unavailable) as refused:
        await open_browser(settings).__aenter__()
    assert "maniple doctor --fix" in refused.value.remedy
    assert (version in refused.value.reason, str(tmp_path) in refused.value.reason) == (True, True)


@pytest.mark.parametrize("version", ["0.13.14", "0.13.99"])
def test_a_supported_version_is_found(tmp_path: Path, version: str) -> None:
    make_environment(tmp_path, version)
    assert BrowserUseEnvironment(tmp_path).check() == version


def test_an_environment_whose_python_is_gone_is_made_again(tmp_path: Path) -> None:
    make_environment(tmp_path, "0.13.14")
    (tmp_path / "bin" / "python").unlink()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "gone")
    with pytest.raises(Unavailable):
        BrowserUseEnvironment(tmp_path).check()


def test_it_is_in_the_cache_unless_the_settings_name_a_folder(tmp_path: Path) -> None:
    def folder(settings: BrowserSettings) -> Path:
        return browser_use_environment(settings).folder

    assert folder(BrowserSettings()) == user_cache_path("maniple", appauthor=False) / "browser-use"
    assert folder(Settings(cache_dir=tmp_path).browser) == tmp_path / "browser-use"
    own = BrowserSettings(browser_use_dir=tmp_path / "own")
    assert folder(Settings(cache_dir=tmp_path, browser=own).browser) == tmp_path / "own"
