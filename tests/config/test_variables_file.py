"""Values are written into `.env` as a whole or not at all, and all other lines stay."""

import os
from pathlib import Path

import pytest

from maniple.config import Settings, load_settings
from maniple.config.trust import is_trusted, trust_folder
from maniple.config.variables_file import (
    SettingsNotWritable,
    folder_to_trust,
    variables_file,
    write_variables,
)
from maniple.errors import ConfigError

MODEL = {"BASIC_MODEL": "m", "BASIC_BASE_URL": "http://127.0.0.1:1/v1", "BASIC_API_KEY": "k"}


def read(home: Path) -> Settings:
    return load_settings(home / "conf.yaml", env_file=home / ".env")


def test_other_lines_stay_and_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    found = write_variables(read(tmp_path), MODEL)
    assert found.models.basic is not None
    assert found.models.basic.model == "m"
    file = tmp_path / ".env"
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("# mine\nexport BASIC_MODEL=old  # why\n\nTAVILY_API_KEY='t v'\nBASIC_MODEL=older")
    file.chmod(0o640)
    found = write_variables(read(tmp_path), MODEL)
    assert found.models.basic is not None
    assert found.models.basic.model == "m"
    assert file.stat().st_mode & 0o777 == 0o640
    lines = file.read_text().splitlines()
    assert {"# mine", "TAVILY_API_KEY='t v'", "BASIC_API_KEY=k"} <= set(lines)
    assert [line for line in lines if "old" in line] == []
    assert [one.name for one in tmp_path.iterdir()] == [".env"]


@pytest.mark.parametrize("value", ["it's", 'a "b"', "a b#c", "$HOME ${X}", "模型", "a\\b", "ends with \\"])
def test_any_value_is_read_back_as_it_was(value: str, tmp_path: Path) -> None:
    found = write_variables(read(tmp_path), {**MODEL, "BASIC_MODEL": value})
    assert found.models.basic is not None
    assert found.models.basic.model == value
    assert read(tmp_path) == found


def test_wrong_values_change_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    with pytest.raises(ConfigError) as refused:
        write_variables(read(tmp_path), {**MODEL, "BASIC_BASE_URL": "no address"})
    assert str(tmp_path / ".env") in str(refused.value)
    assert (tmp_path / ".env").read_text() == "A=1\n"
    assert [one.name for one in tmp_path.iterdir()] == [".env"]


def test_what_is_read_only_untrusted_or_no_file_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\n")
    file.chmod(0o400)
    with pytest.raises(SettingsNotWritable, match=r"\.env is read-only"):
        write_variables(read(tmp_path), MODEL)
    with pytest.raises(SettingsNotWritable, match="program"):
        variables_file(Settings())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MANIPLE_TRUSTED_FOLDERS", raising=False)
    with pytest.raises(SettingsNotWritable, match="maniple trust"):
        write_variables(load_settings(environment=dict(os.environ)), MODEL)
    assert file.read_text() == "A=1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory that nobody has trusted."""
    place = tmp_path / "work it"
    place.mkdir(mode=0o755)
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MANIPLE_TRUSTED_FOLDERS", raising=False)
    return place


def test_a_folder_without_settings_is_trusted_when_the_first_are_written(folder: Path) -> None:
    settings = load_settings()
    assert folder_to_trust(settings) == folder
    assert not is_trusted(folder, os.environ)
    with pytest.raises(ConfigError):
        write_variables(settings, {**MODEL, "BASIC_BASE_URL": "no address"})
    assert not is_trusted(folder, os.environ)
    write_variables(settings, MODEL)
    assert is_trusted(folder, os.environ)
    assert folder_to_trust(settings) is None
    again = load_settings().models.basic
    assert again is not None
    assert again.model == "m"


@pytest.mark.parametrize("fault", ["conf.yaml", ".env", "link", "writable", "another owner's"])
def test_a_folder_that_could_hold_a_strangers_settings_is_trusted_by_command_alone(
    fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings()
    if fault == "link":
        (folder / "conf.yaml").symlink_to("nowhere")
    elif fault == "writable":
        folder.chmod(0o777)
    elif fault == "another owner's":
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    else:
        (folder / fault).write_text("")
    assert folder_to_trust(settings) is None
    with pytest.raises(SettingsNotWritable, match=f"maniple trust '{folder}'"):
        write_variables(settings, MODEL)
    trust_folder(folder)
    assert variables_file(settings) == folder / ".env"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / ".env").symlink_to(tmp_path / "shared" / "variables")
    (tmp_path / "shared" / "variables").write_text("A=1\n")
    write_variables(read(tmp_path), MODEL)
    assert (tmp_path / ".env").is_symlink()
    assert "BASIC_MODEL=m" in (tmp_path / "shared" / "variables").read_text()
