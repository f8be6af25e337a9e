"""JSON Schemas (Draft 2020-12) that others write: whether one is valid, and what a value lacks by it."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from maniple.text import shorten

MAX_CHECKS = 50_000
"""How many keywords are applied to one value of a client: `$ref` and `unevaluatedProperties` can double them
at each level."""
_SHOWN_CHARACTERS = 200
_SLOW_KEYWORD = '"patternProperties"'
"""It is checked with Python's regular expressions, which can take exponential time."""


class SchemaNotApplicable(Exception):
    """A schema cannot be applied to a value; the message says why."""


def find_schema_mistake(schema: Any) -> str:
    """Return why `schema` is no JSON Schema; "" if it is one."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return shorten(error.message, _SHOWN_CHARACTERS)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def find_misfit(schema: Mapping[str, Any] | bool, value: Any) -> str:
    """Return where and why a value does not fit a valid schema; "" if it fits. May take long.

    Raises:
        SchemaNotApplicable: a reference in it leads nowhere; no address is fetched.
    """
    return "" if schema is True else _find_misfit(Draft202012Validator, schema, value)


def find_client_misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Return what `find_misfit` does, in bounded time. Patterns that RE2 does not know match everything.

    Raises:
        SchemaNotApplicable: also for `patternProperties`, and beyond `MAX_CHECKS`.
    """
    if _SLOW_KEYWORD in json.dumps(schema):
        raise SchemaNotApplicable("patternProperties are not checked")
    return _find_misfit(_make_bounded_class(), schema, value)


def _find_misfit(validator_class: Any, schema: Mapping[str, Any] | bool, value: Any) -> str:
    # The empty registry: no address in a schema is fetched.
    validator = validator_class(schema, registry=Registry())
    try:
        fault = best_match(validator.iter_errors(value))
    except (Unresolvable, RecursionError) as error:
        raise SchemaNotApplicable(shorten(str(error), _SHOWN_CHARACTERS)) from error
    return "" if fault is None else f"{fault.json_path}: {shorten(fault.message, _SHOWN_CHARACTERS)}"


def _make_bounded_class() -> Any:
    """Return a class of validators that counts its checks and searches with RE2, in linear time."""
    re2: Any = import_module("re2")  # it has no types
    options = re2.Options()
    options.log_errors = False
    checks = 0

    def count(rule: Any, *args: Any) -> Any:
        nonlocal checks
        checks += 1
        if checks > MAX_CHECKS:
            raise SchemaNotApplicable(f"more than {MAX_CHECKS:,} checks would be made")
        return rule(*args)

    def match(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        del validator, schema
        try:
            is_found = not isinstance(instance, str) or re2.compile(pattern, options).search(instance)
        except re2.error:
            return
        if not is_found:
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    rules = {**cast("Mapping[str, Any]", Draft202012Validator.VALIDATORS), "pattern": match}
    return extend(Draft202012Validator, {name: partial(count, rule) for name, rule in rules.items()})
