"""The measurement of labelled sets of claims."""

import json

import pytest

from bench.claims import score
from maniple.llms.judge_measurements import find_interval

pytestmark = pytest.mark.anyio


async def test_marked_claims_are_counted_by_label_and_kind(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "1.md").write_text(
        "# Bridge\n\nThe bridge at Tolm is 412 metres long and cost 18.5 million euros.\n"
    )
    claims = [
        {"report": "The bridge at Tolm is 412 metres long [1].", "label": "right", "kind": "figure"},
        {"report": "The bridge at Tolm is 421 metres long [1].", "label": "wrong", "kind": "figure"},
    ]
    (tmp_path / "claims.jsonl").write_text("\n".join(map(json.dumps, claims)))
    found = await score(tmp_path)
    assert (found.rate("right"), found.rate("wrong")) == ((0, 1), (1, 1))
    assert found.mistakes == []


def test_an_interval_holds_the_share():
    low, high = (100 * one for one in find_interval(3, 200))
    assert low < 1.5 < high < 5
