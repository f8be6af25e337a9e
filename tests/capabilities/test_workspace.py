"""The packages in the coder's prompt."""

import pytest

from maniple.capabilities import workspace
from maniple.config import Settings
from maniple.config.settings import SandboxSettings


def named(monkeypatch: pytest.MonkeyPatch, **sandbox: object) -> list[str]:
    installed = ("numpy 2.4", "pip 26", "requests 2.34", "yfinance 1.7")
    monkeypatch.setattr(workspace, "list_installed_packages", lambda *_: installed)
    settings = Settings().model_copy(update={"sandbox": SandboxSettings(**sandbox)})  # type: ignore[arg-type]
    return workspace.packages_sentence(settings).removeprefix("There are ").rstrip(".").split(", ")


def test_those_that_need_a_network_are_named_only_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch) == ["numpy"]
    everything = ["numpy", "pip", "requests", "yfinance"]
    assert named(monkeypatch, network="allowlist", allow_hosts=("pypi.org",)) == everything
    assert named(monkeypatch, backend="unsafe-local") == everything


def test_one_that_the_settings_name_is_named_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, packages=("Requests>=2",)) == ["numpy", "requests"]


def test_packages_that_are_not_prepared_are_named_to_the_user_and_not_promised_to_the_model(tmp_path) -> None:
    settings = Settings().model_copy(update={"cache_dir": tmp_path})
    notice = workspace.describe_unprepared_packages(settings)
    assert "numpy" in notice or "pandas" in notice
    assert "maniple doctor --packages" in notice
    assert workspace.packages_sentence(settings) == "Only the standard library can be imported."
    elsewhere = settings.model_copy(update={"sandbox": SandboxSettings(backend="docker")})
    assert workspace.describe_unprepared_packages(elsewhere) == ""
    assert workspace.packages_sentence(elsewhere) == ""
