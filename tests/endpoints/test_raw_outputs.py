"""Every raw output, through a real server by HTTP."""

import re
from typing import Any

import pytest

from tests.endpoints.raw_outputs import ROWS
from tests.endpoints.replaying import Outcome, replay
from tests.endpoints.server_framing import CALLS, REPORT, RawOutput, accept

pytestmark = pytest.mark.anyio
WITHOUT_TROUBLE: dict[str, Any] = {
    "status": "completed",
    "answer": REPORT,
    "members": ("coder", "reporter"),
    "gaps": (),
    "calls": CALLS,
    "results": ("42",),
    "error": ("", ""),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_a_raw_output_comes_out_as_it_must(row: RawOutput):
    outcome, requests = await replay(row)
    assert differences(row, outcome) == {}
    assert [text for text in row.hides if text in outcome.shown] == []
    assert row.refuse is accept or any(row.refuse(body) for body in requests), "nothing was refused"


def differences(row: RawOutput, outcome: Outcome) -> dict[str, tuple[Any, Any]]:
    """Return what is not as expected: the value found, and the one expected."""
    found = {name: getattr(outcome, name) for name in {**WITHOUT_TROUBLE, **row.expects}}
    expected = {**WITHOUT_TROUBLE, **row.expects}
    found["results"] = tuple(text.strip() for text in found["results"])
    found["answer"] = outcome.answer.strip()
    return {name: (found[name], value) for name, value in expected.items() if not is_like(found[name], value)}


def is_like(found: Any, expected: Any) -> bool:
    """Return whether values are equal; of mappings, those that are expected; patterns match anywhere."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(is_like(found.get(key), value) for key, value in expected.items())
    if isinstance(expected, tuple) and isinstance(found, tuple):
        return len(found) == len(expected) and all(map(is_like, found, expected))
    if isinstance(expected, re.Pattern):
        return bool(expected.search(found or ""))
    return found == expected
