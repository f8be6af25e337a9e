"""What the doctor reports about the packages of sandboxed code."""

import json
from pathlib import Path

import pytest

from maniple.cli.doctor import examine, prepare
from maniple.cli.doctor.checks import check_packages
from maniple.config import Settings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import host
from tests.sandbox.wheels import offline_index, write_wheel

pytestmark = pytest.mark.anyio


class Heard:
    """Records the progress messages while packages are prepared."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.words.append(text)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the only packages are; the sandbox has none by itself."""
    monkeypatch.setattr("maniple.sandbox.package_environment._lines", lambda name: ())
    return offline_index(tmp_path, monkeypatch)


def settings_in(folder: Path, *packages: str, **more: object) -> Settings:
    sandbox = SandboxSettings.model_validate({"packages": packages, **more})
    return Settings(data_dir=folder / "data", cache_dir=folder / "cache", sandbox=sandbox)


async def test_packages_that_are_not_there_are_a_warning_with_the_command(tmp_path: Path) -> None:
    finding = await check_packages(settings_in(tmp_path), Heard(), build=False)
    assert finding.status == "warning"
    assert finding.detail.startswith("not installed")
    assert "maniple doctor" in finding.remedy
    assert not (tmp_path / "cache").exists()


async def test_they_are_installed_tried_and_named(tmp_path: Path, wheels: Path) -> None:
    write_wheel(wheels, "tiny", "2.3")
    heard = Heard()
    finding = await check_packages(settings_in(tmp_path, "tiny"), heard, build=True)
    assert (finding.status, finding.remedy) == ("ok", "")
    assert finding.detail.startswith(f"tiny 2.3, in {tmp_path}/cache/sandbox/")
    assert any(text.startswith("sandbox packages: ") for text in heard.words)

    again = Heard()
    assert await check_packages(settings_in(tmp_path, "tiny"), again, build=False) == finding
    assert again.words == []


async def test_one_that_cannot_be_imported_is_a_warning_with_its_reason(tmp_path: Path, wheels: Path) -> None:
    write_wheel(wheels, "broken", source="import nothing_of_that_name\n")
    finding = await check_packages(settings_in(tmp_path, "broken"), Heard(), build=True)
    assert finding.status == "warning"
    assert finding.detail.startswith("broken cannot be imported: ModuleNotFoundError")
    assert f"delete {tmp_path}/cache/sandbox/" in finding.remedy


async def test_what_pip_cannot_find_is_a_warning(tmp_path: Path, wheels: Path) -> None:
    finding = await check_packages(settings_in(tmp_path, "nowhere"), Heard(), build=True)
    assert finding.status == "warning"
    assert "No matching distribution found for nowhere" in finding.detail


@pytest.mark.parametrize("backend", ["docker", "off"])
async def test_none_are_prepared_for_code_that_does_not_run_here(backend: str, tmp_path: Path) -> None:
    finding = await check_packages(settings_in(tmp_path, backend=backend), Heard(), build=True)
    assert finding.status == "ok" and f"sandbox.backend is {backend}" in finding.detail


async def test_none_are_prepared_for_a_sandbox_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(host._PACKAGES, "no-such-program", "nothing")
    finding = await check_packages(settings_in(tmp_path), Heard(), build=True)
    assert finding.status == "ok" and "no sandbox" in finding.detail
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("build", "status"), [(True, "ok"), (False, "warning")])
async def test_the_doctor_prepares_them_unless_disabled(
    build: bool, status: str, tmp_path: Path, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_wheel(wheels, "tiny")
    file = tmp_path / "conf.yaml"
    file.write_text(
        f"data_dir: {tmp_path / 'data'}\ncache_dir: {tmp_path / 'cache'}\nembedded:\n  enabled: false\n"
        "sandbox:\n  packages: [tiny]\n"
    )
    await examine(file, as_json=True, build=build)
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["status"] for check in checks if check["name"] == "packages"] == [status]


@pytest.mark.slow
async def test_they_can_be_prepared_separately_with_an_exit_status(
    tmp_path: Path, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(f"cache_dir: {tmp_path / 'cache'}\nsandbox:\n  packages: [tiny]\n")
    assert await prepare(file) == 1
    assert "No matching distribution found for tiny" in capsys.readouterr().out

    write_wheel(wheels, "tiny")
    assert await prepare(file) == 0
    place = capsys.readouterr().out.strip().rpartition(", in ")[2]
    assert Path(place, "bin/python").exists()  # noqa: ASYNC240 - setup.sh looks for it, too

    file.write_text("sandbox: 1\n")
    assert await prepare(file) == 1
