"""What `maniple doctor --fix` installs, and that it asks before."""

from pathlib import Path

import pytest

from maniple.browser.drivers.browser_use.environment import REQUIREMENT
from maniple.cli.doctor.repairs import NO_KEYBOARD, Repair, find_repairs, repair
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.config.settings import BrowserSettings
from tests.browser.test_browser_use_environment import make_environment

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        cache_dir=tmp_path / "cache",
        models=ModelsSettings(basic=ModelSettings(model="m", base_url="http://127.0.0.1:9/v1")),
        browser=BrowserSettings(enabled=False),
    )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose programs only write down how they were called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    calls = tmp_path / "calls"
    calls.touch()
    for name in ("apt-get", "sudo"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {calls}\nexit "${{STATUS:-0}}"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return calls


async def test_what_is_missing_is_installed_after_consent(settings, machine, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return True

    assert await repair(settings, consents=False, ask=ask)
    assert machine.read_text().split()[-2:] == ["--no-install-recommends", "bubblewrap"]
    assert len(asked) == 1
    assert "bubblewrap" in asked[0]


async def test_without_consent_nothing_is_installed(settings, machine):
    assert await repair(settings, consents=False, ask=lambda question: False)
    assert machine.read_text() == ""


async def test_without_a_keyboard_the_commands_are_named(settings, machine, capsys):
    assert not await repair(settings, consents=False, ask=None)
    shown = capsys.readouterr().out
    assert NO_KEYBOARD in shown
    assert "apt-get install" in shown
    assert machine.read_text() == ""


async def test_an_ordinary_user_installs_with_sudo(settings, machine, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert await repair(settings, consents=True, ask=None)
    assert machine.read_text().startswith("sudo apt-get install")


async def test_a_command_that_fails_is_reported(settings, machine, monkeypatch, capsys):
    monkeypatch.setenv("STATUS", "100")
    assert not await repair(settings, consents=True, ask=None)
    assert "status 100" in capsys.readouterr().err


async def test_a_system_without_apt_is_told_what_to_install(settings, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not await repair(settings, consents=True, ask=None)
    assert "bubblewrap" in capsys.readouterr().err


def find_browser_use(settings: Settings, folder: Path) -> list[Repair]:
    browser = BrowserSettings(backend="browser-use", browser_use_dir=folder)
    chosen = settings.model_copy(update={"browser": browser})
    return [found for found in find_repairs(chosen) if str(folder) in found.action]


def test_browser_use_is_offered_until_it_is_there(settings, tmp_path):
    folder = tmp_path / "browser-use"
    (found,) = find_browser_use(settings, folder)
    assert str(REQUIREMENT) in found.action
    assert "--clear" not in found.action
    make_environment(folder, "0.13.14")
    assert find_browser_use(settings, folder) == []


def test_browser_use_of_another_version_is_replaced(settings, tmp_path):
    folder = tmp_path / "browser-use"
    make_environment(folder, "0.11.13")
    (found,) = find_browser_use(settings, folder)
    assert "--clear" in found.action


async def test_a_repair_ends_with_the_first_command_that_fails(settings, tmp_path, capfd):
    folder = tmp_path / "file"
    folder.write_text("no folder")
    (found,) = find_browser_use(settings, folder)
    assert "-m venv" in await found.run()
    assert "pip" not in capfd.readouterr().err
    assert folder.read_text() == "no folder"


def test_the_embedded_model_is_offered_only_where_no_other_is_configured(settings, tmp_path):
    def purposes(one: Settings) -> str:
        return " ".join(found.purpose for found in find_repairs(one))

    assert "embedded" not in purposes(settings)
    assert "1.1 GB" in purposes(settings.model_copy(update={"models": ModelsSettings()}))
