"""A team that is opened without a progress callback logs what takes long."""

import logging
from contextlib import asynccontextmanager

import pytest

import maniple
from maniple.agents import team_models as models
from maniple.agents.team_models import LineProgress
from maniple.config import Settings
from maniple.llms.embedded import LocalEndpoint
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
MB = 1_000_000


def test_a_fetch_is_reported_at_its_start_and_at_each_tenth():
    lines: list[str] = []
    progress: maniple.Progress = LineProgress(lines.append)
    for done in range(0, 1_001):
        progress.step(f"fetching (part {done // 100} of 10)", done * MB, 1_000 * MB)
    assert len(lines) == 11
    assert lines[0] == "fetching (part 0 of 10): 0 of 1,000 MB (0 %)"
    assert lines[-1].endswith("1,000 of 1,000 MB (100 %)")


def test_work_without_a_measure_is_reported_once():
    lines: list[str] = []
    for seconds in range(5):
        LineProgress(lines.append).step(f"loading ({seconds} s)")
    progress = LineProgress(lines.append)
    lines.clear()
    for seconds in range(5):
        progress.step(f"loading ({seconds} s)")
    progress.step("ready")
    assert lines == ["loading (0 s)", "ready"]


async def test_by_default_the_log_reports_the_embedded_models_start(tmp_path, monkeypatch, caplog):
    with serving(SIMPLE) as server:
        monkeypatch.setattr(models, "open_embedded", _fetching(server.base_url))
        caplog.set_level(logging.INFO, "maniple")
        async with maniple.open_team(_nothing_configured(tmp_path)):
            pass
    assert [record.getMessage() for record in caplog.records if record.name == "maniple.progress"] == [
        "fetching: 0 of 1,000 MB (0 %)",
        "fetching: 500 of 1,000 MB (50 %)",
    ]


async def test_a_custom_progress_receives_the_messages_instead_of_the_log(tmp_path, monkeypatch, caplog):
    lines: list[str] = []
    with serving(SIMPLE) as server:
        monkeypatch.setattr(models, "open_embedded", _fetching(server.base_url))
        caplog.set_level(logging.INFO, "maniple")
        async with maniple.open_team(_nothing_configured(tmp_path), progress=LineProgress(lines.append)):
            pass
    assert len(lines) == 2
    assert "maniple.progress" not in {record.name for record in caplog.records}


def _nothing_configured(folder):
    return Settings.model_validate(
        {
            "embedded": {"discover": False},
            "sandbox": {"backend": "off"},
            "browser": {"enabled": False},
            "data_dir": folder / "data",
            "cache_dir": folder / "cache",
        }
    )


def _fetching(base_url):
    """Return a stand-in for the embedded model: it reports its download and answers at `base_url`."""

    @asynccontextmanager
    async def opened(settings, cache_dir, progress):
        progress.step("fetching", 0, 1_000 * MB)
        progress.step("fetching", 500 * MB, 1_000 * MB)
        yield LocalEndpoint(base_url, "key", "m", "a test", 8_000)

    return opened
