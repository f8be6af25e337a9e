"""How much of a long test `make test` runs, and how much `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["rest_is_slow", "sizes"]


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
