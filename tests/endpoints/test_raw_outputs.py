"""Every raw output, through a real server by HTTP."""

import pytest

from tests.endpoints.raw_outputs import ROWS
from tests.endpoints.replaying import find_differences, replay
from tests.endpoints.server_framing import RawOutput
from tests.sizes import rest_is_slow

pytestmark = pytest.mark.anyio
THIRDS = (ROWS[0::3], ROWS[1::3], ROWS[2::3])
CASES = rest_is_slow([row for third in THIRDS for row in third], len(THIRDS[0]))


def test_each_row_has_a_name_of_its_own():
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.id)
async def test_a_raw_output_comes_out_as_it_must(row: RawOutput):
    outcome, requests = await replay(row)
    assert find_differences(row, outcome, requests) == {}
