"""JSON Schemas (Draft 2020-12) that others write: whether one is valid, and what a value lacks by it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from maniple.text import shorten

MAX_CHECKS = 50_000
"""How many keywords are applied to one value of a client: `$ref` and `unevaluatedProperties` can double them
at each level."""
_SHOWN_CHARACTERS = 200
_NOT_CHECKED = "patternProperties are not checked"
_SLOW_KEYWORD = '"patternProperties"'
"""It is checked with Python's regular expressions, which can take exponential time."""


class SchemaNotApplicable(Exception):
    """A schema cannot be applied to a value; the message says why."""


def find_schema_mistake(schema: Any) -> str:
    """Return why `schema` is no JSON Schema; "" if it is one. Patterns are those of RE2 or of Python."""
    try:
        _check_schema(schema, lambda pattern: _is_known(pattern) or _is_of_python(pattern))
    except SchemaError as error:
        return shorten(error.message, _SHOWN_CHARACTERS)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def find_unchecked(schema: Any) -> str:
    """Return which pattern or keyword of a valid schema `find_misfit` does not check; "" if there is none."""
    if _SLOW_KEYWORD in json.dumps(schema):
        return _NOT_CHECKED
    try:
        _check_schema(schema, _is_known)
    except SchemaError as error:
        return f"{shorten(repr(error.instance), _SHOWN_CHARACTERS)} is no regular expression of RE2"
    return ""


def find_misfit(schema: Mapping[str, Any] | bool, value: Any) -> str:
    """Return where and why a value does not fit a valid schema, in bounded time; "" if it fits.

    Patterns that RE2 does not know match everything.

    Raises:
        SchemaNotApplicable: a reference in it leads nowhere, as no address is fetched; it has
            `patternProperties`; or more than `MAX_CHECKS` would be made.
    """
    if _SLOW_KEYWORD in json.dumps(schema):
        raise SchemaNotApplicable(_NOT_CHECKED)
    # The empty registry: no address in a schema is fetched.
    validator = _make_bounded_class()(schema, registry=Registry())
    try:
        fault = best_match(validator.iter_errors(value))
    except (Unresolvable, RecursionError) as error:
        raise SchemaNotApplicable(shorten(str(error), _SHOWN_CHARACTERS)) from error
    return "" if fault is None else f"{fault.json_path}: {shorten(fault.message, _SHOWN_CHARACTERS)}"


def _compile(pattern: Any) -> Any:
    """Return a pattern compiled by RE2; None if RE2 does not know it."""
    re2: Any = import_module("re2")  # it has no types
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _is_known(pattern: Any) -> bool:
    return not isinstance(pattern, str) or _compile(pattern) is not None


def _is_of_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _check_schema(schema: Any, is_pattern: Callable[[Any], bool]) -> None:
    formats = FormatChecker(formats=())
    formats.checkers = {**Draft202012Validator.FORMAT_CHECKER.checkers, "regex": (is_pattern, ValueError)}
    Draft202012Validator.check_schema(schema, format_checker=formats)


def _make_bounded_class() -> Any:
    """Return a class of validators that counts its checks and searches with RE2, in linear time."""
    checks = 0

    def count(rule: Any, *args: Any) -> Any:
        nonlocal checks
        checks += 1
        if checks > MAX_CHECKS:
            raise SchemaNotApplicable(f"more than {MAX_CHECKS:,} checks would be made")
        return rule(*args)

    def match(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        del validator, schema
        known = _compile(pattern) if isinstance(instance, str) else None
        if known is not None and not known.search(instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    rules = {**cast("Mapping[str, Any]", Draft202012Validator.VALIDATORS), "pattern": match}
    return extend(Draft202012Validator, {name: partial(count, rule) for name, rule in rules.items()})
