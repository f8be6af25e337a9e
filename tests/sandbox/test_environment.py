"""Which environment belongs to which settings, and which may go."""

import os
import sys
import time
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox.package_environment import (
    UNUSED_SECONDS,
    PackageEnvironment,
    _store_font_list,
    find_environment,
    find_usable_environment,
    list_installed_packages,
    remove_unused_environments,
)
from maniple.workspace.workspaces import Workspaces


def found(cache_dir: Path, **settings: object) -> PackageEnvironment:
    environment = find_environment(SandboxSettings.model_validate(settings), cache_dir)
    assert environment is not None
    return environment


def test_only_settings_of_packages_change_the_environment(tmp_path: Path) -> None:
    assert found(tmp_path) == found(tmp_path, timeout_seconds=5, packages=[])
    assert found(tmp_path).path.is_relative_to(tmp_path / "sandbox")


def test_other_packages_have_another_one(tmp_path: Path) -> None:
    more = found(tmp_path, packages=["polars"])
    assert more.path != found(tmp_path).path
    assert {"polars", *found(tmp_path).requirements} == set(more.requirements)
    assert more.constraints == (), "what polars needs is not known"


def test_a_package_takes_the_place_of_the_one_of_its_name(tmp_path: Path) -> None:
    requirements = found(tmp_path, packages=["NumPy<2", "yfinance"]).requirements
    assert [one for one in requirements if "numpy" in one.lower()] == ["NumPy<2"]
    assert [one for one in requirements if one.startswith("yfinance")] == ["yfinance"]


def test_what_the_coder_was_promised_is_in_it(tmp_path: Path) -> None:
    names = {one.partition("==")[0] for one in found(tmp_path).requirements}
    assert {"numpy", "pandas", "matplotlib", "yfinance"} <= names
    assert all("==" in one for one in (*found(tmp_path).requirements, *found(tmp_path).constraints))


@pytest.mark.parametrize("backend", ["docker", "daytona", "e2b", "off"])
def test_code_that_runs_elsewhere_has_none_here(backend: str, tmp_path: Path) -> None:
    assert find_environment(SandboxSettings.model_validate({"backend": backend}), tmp_path) is None


def test_a_python_with_packages_of_its_own_keeps_them(tmp_path: Path) -> None:
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "venv/pyvenv.cfg").touch()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o011)
    assert find_environment(SandboxSettings(python=python), tmp_path) is None


def test_what_is_installed_is_reported_only_when_it_exists(tmp_path: Path) -> None:
    environment = found(tmp_path)
    assert (environment.is_ready, list_installed_packages(SandboxSettings(), tmp_path)) == (False, ())
    stand(environment)
    assert list_installed_packages(SandboxSettings(), tmp_path) == ("numpy 2.4.6",)


def test_while_added_packages_are_not_installed_there_are_those_that_were_there_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adding = SandboxSettings(packages=("polars",))
    assert find_usable_environment(adding, tmp_path) is None
    stand(found(tmp_path))
    assert find_usable_environment(adding, tmp_path) == found(tmp_path)
    assert "sandbox.packages are not installed: " in caplog.text
    stand(found(tmp_path, packages=["polars"]))
    assert find_usable_environment(adding, tmp_path) == found(tmp_path, packages=["polars"])


def stand(environment: PackageEnvironment, age_seconds: float = 0) -> None:
    environment.path.mkdir(parents=True)
    environment.mark_ready({"numpy": "2.4.6"})
    then = time.time() - age_seconds
    os.utime(environment.path / "ready.json", (then, then))


def test_the_font_list_is_one_file_at_a_time_and_readable_by_all(tmp_path: Path) -> None:
    environment = found(tmp_path)
    stand(environment)
    assert environment.font_list() is None
    for content in (b"{}", b'{"_version": "3"}'):
        environment.store_font_list("fontlist-v3.json", content)
    fonts = environment.font_list()
    assert fonts is not None
    assert (fonts.name, fonts.read_bytes()) == ("fontlist-v3.json", b'{"_version": "3"}')
    assert [oct(path.stat().st_mode & 0o777) for path in fonts.parent.iterdir()] == ["0o644"]


def test_one_that_was_not_used_for_a_month_goes_and_the_others_stay(tmp_path: Path) -> None:
    old, held, used = (found(tmp_path, packages=[name]) for name in ("old", "held", "used"))
    stand(old, UNUSED_SECONDS + 60)
    stand(held, UNUSED_SECONDS + 60)
    stand(used, UNUSED_SECONDS - 60)
    (old.path.parent / "abc.part").mkdir()
    with held.lock() as holds:
        os.utime(held.path / "ready.json", (0, 0))  # a server that began a month ago
        remove_unused_environments(old.path.parent)
    assert (holds, held.is_ready, used.is_ready) == (True, True, True)
    assert sorted(old.path.parent.iterdir()) == sorted((held.path, used.path))


def test_using_one_makes_it_new_again(tmp_path: Path) -> None:
    environment = found(tmp_path)
    stand(environment, UNUSED_SECONDS + 60)
    with environment.lock():
        pass
    remove_unused_environments(environment.path.parent)
    assert environment.is_ready


def test_a_missing_environment_cannot_be_held(tmp_path: Path) -> None:
    with found(tmp_path).lock() as holds:
        assert not holds


def test_a_cache_that_cannot_be_written_costs_only_the_font_list(tmp_path: Path) -> None:
    environment = PackageEnvironment(tmp_path / "environment", Path(sys.executable), ())
    environment.path.mkdir()
    (environment.path / "fonts").write_text("no folder")
    workspace = Workspaces(tmp_path / "workspaces").open("t")
    workspace.write("fontlist-v3.json", b"{}")
    _store_font_list(environment, workspace)
    assert environment.font_list() is None
