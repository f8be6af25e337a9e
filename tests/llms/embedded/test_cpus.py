"""How many threads the engine gets."""

from pathlib import Path

import pytest

from maniple.llms.embedded.server import usable_cpus


@pytest.mark.parametrize(
    ("quota", "most"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", 8), ("?", 8)]
)
def test_a_container_s_quota_counts(tmp_path: Path, quota: str, most: int) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert 1 <= usable_cpus(file) <= most


def test_a_machine_without_quotas_gives_at_least_one(tmp_path: Path) -> None:
    assert 1 <= usable_cpus(tmp_path / "none") <= 8
