"""Whether the folders can be used: tried, since to root every right is given that does not help."""

from pathlib import Path

import pytest

from maniple.cli.doctor import checks
from maniple.config import Settings
from maniple.config.settings import StoreSettings


def _settings(folder: Path, store: StoreSettings) -> Settings:
    return Settings(data_dir=folder / "data", cache_dir=folder / "cache", store=store)


@pytest.mark.parametrize("place", ["/proc/maniple", "/sys/maniple/data", "file/data", "file", "link"])
def test_a_folder_that_cannot_be_created_is_not_reported_as_full(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    data, cache = checks.check_folders(Settings(data_dir=tmp_path / place, cache_dir=tmp_path / place))
    assert (data.status, cache.status) == ("problem", "warning")
    assert f"{tmp_path / place} cannot be created: " in data.detail
    assert "data_dir" in data.remedy
    assert "GB" not in f"{data} {cache}"
    missing = checks.check_model_file(Settings(cache_dir=tmp_path / place), needed=True)
    assert (missing.status, "cannot be created" in missing.detail) == ("problem", True)


def test_a_data_folder_that_cannot_be_made_is_a_warning_where_nothing_is_retained(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    settings = _settings(tmp_path, StoreSettings(backend="memory"))
    assert [finding.status for finding in checks.check_folders(settings)] == ["warning", "ok"]


def test_a_database_elsewhere_is_looked_at_there_too(tmp_path: Path) -> None:
    settings = _settings(tmp_path, StoreSettings(path=Path("/proc/maniple/team.db")))
    found = {finding.name: finding for finding in checks.check_folders(settings)}
    assert (found["data_dir"].status, found["store.path"].status) == ("ok", "problem")
