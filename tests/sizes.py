"""How much of a long test `make test` runs, and how much `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["leave_cases_to_slow", "rest_is_slow", "sizes"]

COSTLY = (
    *("acp_server", "agents", "api", "app", "browser", "claims", "cli", "crawler", "document", "egress"),
    *("endpoints", "events", "evidence", "examples", "graph", "llms", "mcp", "mcp_server", "page"),
    *("protocols", "reading", "report_files", "runs", "safety", "sandbox", "search", "store", "telemetry"),
    *("tools",),
)
"""The folders whose cases cost most: they start a browser, a sandbox or a run, or read long texts."""
QUICK_CASES = 1
SAMPLED = (
    *("acp_server/test_agent", "api/test_approval", "api/test_eyes", "api/test_figures"),
    *("app/test_browsing", "app/test_workers", "browser/test_isolation", "browser/test_life"),
    *("cli/test_answers", "cli/test_browse", "cli/test_recovery", "cli/test_threads"),
    *("cli/test_threads_command", "egress/test_environment_transport", "endpoints/test_network_pieces"),
    *("evidence/test_any_report", "examples/test_browser_program", "examples/test_hundred_questions"),
    *("graph/test_embedded_crash", "llms/embedded/test_parts", "llms/embedded/test_two_processes"),
    *("llms/test_provider_streams", "mcp_server/test_stdio", "mcp_server/test_tools", "page/test_models"),
    *("reading/test_fork_server", "reading/test_list_pages", "runs/test_steering"),
    *("runs/test_steering_survival", "sandbox/attacks/test_bombs", "sandbox/test_installation"),
    *("sandbox/test_watchdog", "store/test_damage", "store/test_disk", "store/test_processes"),
    *("tools/test_read_documents", "upgrade/test_upgrade"),
)
"""The files that take longest, with many variants of one thing: `make test` runs one of their tests."""
_SAMPLED = tuple(f"tests/{file}.py::" for file in SAMPLED)
_COSTLY = tuple(f"tests/{folder}/" for folder in COSTLY)


def leave_cases_to_slow(items: Iterable[pytest.Item]) -> None:
    """Mark as slow all but the first `QUICK_CASES` cases of each parametrized test in `COSTLY`.

    The same for the tests of each file in `SAMPLED`.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        if item.get_closest_marker("slow"):
            continue
        if item.nodeid.startswith(_SAMPLED):
            cases.setdefault(item.nodeid.partition("::")[0], []).append(item)
        elif case and item.nodeid.startswith(_COSTLY):
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
