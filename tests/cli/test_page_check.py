"""What the doctor reports about the page of the service."""

from pathlib import Path

import pytest

from maniple.cli.doctor.checks import check_page
from maniple.replay import player


def test_a_page_that_is_not_built_is_a_warning_with_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(player, "ASSETS", tmp_path / "assets")
    finding = check_page()
    assert (finding.status, finding.remedy.rpartition(": ")[2]) == ("warning", "make page")


def test_a_built_page_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(player, "ASSETS", tmp_path)
    (tmp_path / "player.js").write_text("")
    assert check_page().status == "ok"
