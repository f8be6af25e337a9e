"""The file of a batch."""

import pytest

from maniple.batches import InvalidBatch, parse_lines
from maniple.batches.results import write_csv


def test_a_line_is_a_text_or_an_object():
    assert parse_lines(['"a"\n', "\n", '{"input": "b", "id": 3}']) == ["a", "b"]


@pytest.mark.parametrize("line", ["a", "3", "{}", '{"input": " "}', "[" * 100_000])
def test_another_line_is_refused_with_its_number(line):
    with pytest.raises(InvalidBatch, match="Line 2"):
        parse_lines(['"a"', line])


def test_no_cell_is_a_formula():
    columns = write_csv(None).strip().split(",")
    result = dict.fromkeys(columns, 1) | {"answer": '=HYPERLINK("x")', "input": 'a,"b"\nc'}
    row = write_csv(result)
    assert '"\'=HYPERLINK(""x"")"' in row
    assert '"a,""b""\nc"' in row
