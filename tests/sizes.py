"""How much of a long test `make test` runs, and how much `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["leave_cases_to_slow", "rest_is_slow", "sizes"]

COSTLY = (
    *("agents", "api", "app", "browser", "cli", "crawler", "document", "endpoints", "evidence", "examples"),
    *("graph", "llms", "mcp", "mcp_server", "page", "reading", "report_files", "runs", "safety", "sandbox"),
    *("store", "telemetry"),
)
"""The folders whose cases cost most: they start a browser, a sandbox or a run, or read long texts."""
QUICK_CASES = 1
_COSTLY = tuple(f"tests/{folder}/" for folder in COSTLY)


def leave_cases_to_slow(items: Iterable[pytest.Item]) -> None:
    """Mark as slow all but the first `QUICK_CASES` cases of each parametrized test in `COSTLY`."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        if case and item.nodeid.startswith(_COSTLY) and not item.get_closest_marker("slow"):
            cases.setdefault(test, []).append(item)
    for each in cases.values():
        for item in each[QUICK_CASES:]:
            item.add_marker(pytest.mark.slow)


def sizes(quick: Any, full: Any) -> list[Any]:
    """Return the values of a parameter: `quick` for `make test`, `full` for `make test-slow`.

    Tuples are the values of several parameters.
    """
    return [_case(quick, id="quick"), _case(full, id="full", marks=pytest.mark.slow)]


def rest_is_slow(values: Iterable[Any], quick: int) -> list[Any]:
    """Return the values of a parameter: `make test` runs the first `quick`, `make test-slow` the others."""
    values = list(values)
    return [*values[:quick], *(_case(value, marks=pytest.mark.slow) for value in values[quick:])]


def _case(values: Any, **options: Any) -> Any:
    return pytest.param(*(values if isinstance(values, tuple) else (values,)), **options)
