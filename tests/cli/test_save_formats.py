"""The formats that the terminal names are those that it writes."""

from maniple.cli.options import SAVE_SUFFIXES
from maniple.report_files import SUFFIXES


def test_every_format_that_can_be_saved_is_named():
    assert set(SAVE_SUFFIXES) == {*SUFFIXES, ".txt"}
