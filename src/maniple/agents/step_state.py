"""What belongs to the step that an agent works on: one value of each type, in one context variable."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar, cast

T = TypeVar("T")

_VALUES: ContextVar[Mapping[type, object]] = ContextVar("maniple_step", default=MappingProxyType({}))


def step_state(type_: type[T]) -> T | None:
    """Return the value of this type; None outside of a context that has set one."""
    return cast("T | None", _VALUES.get().get(type_))


@contextmanager
def enter_step_state(*values: object) -> Generator[None]:
    """Set the values in the body, each by its own type; those of other types stay."""
    with set_in_context(_VALUES, {**_VALUES.get(), **{type(one): one for one in values}}):
        yield


@contextmanager
def set_in_context(variable: ContextVar[T], value: T) -> Generator[None]:
    """Set `variable` to `value` in the body."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
