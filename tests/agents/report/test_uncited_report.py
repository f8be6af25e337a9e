"""A report of a run that looked nothing up."""

import pytest

from tests.openai_server import SIMPLE
from tests.team import data, said, scripted_team

pytestmark = pytest.mark.anyio
CHUNKS = [
    "# Sum\n\n4, see w",
    "ww.sums",
    ".test or htt",
    "ps:",
    "//sums.test",
    "/4.\nYes.\n",
    "\nE",
    "nd",
]


async def test_it_is_left_as_it_is_and_costs_nothing():
    chunks = ["# Su", "m\n\nIt says “the answer is four ", "point nought” [7].\n\n## Sour", "ces\n\n- none"]
    report = "# Sum\n\nIt says “the answer is four point nought” [7].\n\n## Sources\n\n- none"
    async with scripted_team({**SIMPLE, "reporter": [{"chunks": chunks}]}) as team:
        frames = await team.run()
        assert team.server.stats["calls"] == 5
    assert data(frames, "end_of_workflow")[0]["messages"][-1]["content"] == report
    shown = [one["delta"]["content"] for one in data(frames, "message")]
    assert shown[-4:] == chunks, "and streams as it is written"


async def test_an_invented_address_in_it_is_marked_without_asking():
    async with scripted_team({**SIMPLE, "reporter": [{"chunks": CHUNKS}]}) as team:
        frames = await team.run()
        assert team.server.stats["calls"] == 5
    assert said(frames).endswith(
        "# Sum\n\n4, see www.sums.test [unverified] or https://sums.test/4 [unverified].\nYes.\n\nEnd"
    )
