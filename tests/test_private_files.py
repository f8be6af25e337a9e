"""Files that are replaced as a whole."""

import stat
from pathlib import Path

import pytest

from maniple.private_files import private_draft


def test_a_file_is_replaced_and_only_its_owner_reads_it(tmp_path: Path):
    file = tmp_path / "keys.json"
    file.write_text("old")
    with private_draft(file) as draft:
        draft.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [*tmp_path.iterdir()] == [file]


def test_after_an_error_the_file_is_as_it_was(tmp_path: Path):
    file = tmp_path / "keys.json"
    file.write_text("old")
    with pytest.raises(ValueError, match="half"), private_draft(file) as draft:
        draft.write_text("ne")
        raise ValueError("half")
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]
