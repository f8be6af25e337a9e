"""Tool calls that a model wrote as text: in JSON, or in the form of Python."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maniple.llms import read_json
from maniple.types import is_dict, is_list

MAX_CHARACTERS = 200_000
"""A longer text in the form of Python is not parsed."""
_OPENING = re.compile(r"\A(?:```[ \t]*\w{0,20}(?=[\s{\[])|<tool_call>)\s*")
_CLOSINGS = ("```", "</tool_call>")
_FUNCTION = re.compile(
    r"(?:\w{1,60} ?= ?)?(?:\w{1,60}\.){0,3}(?P<name>\w{2,60})\((?P<inside>.*)\)", re.DOTALL
)
_PRINT = "print"
"""Some models print the result of their call."""
_SURE_KEYS = frozenset(
    {"tool", "tool_name", "recipient_name", "arguments", "args", "tool_input", "action_input"}
)
"""Keys that only a call has; other data has a name with an input or parameters, too."""
_NAME_KEYS = ("tool", "tool_name", "recipient_name", "name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "args", "tool_input", "action_input", "parameters", "input")


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call as it is written; whether there is such a tool is not checked."""

    name: str
    arguments: dict[str, Any] | None
    """By name; None if they cannot be read."""
    positional: tuple[Any, ...] = ()
    """Arguments without names, in Python's form."""
    is_sure: bool = False
    """Whether no other data has this form."""
    is_envelope: bool = False
    """Whether it is in the form in which endpoints send calls."""


def read_text_calls(text: str) -> list[TextCall]:
    """Return the calls that a text consists of; [] if it is, or has, anything else.

    A repair of its JSON blocks for up to a second: call this in a thread.
    """
    text = _strip_fences(text)
    if text.startswith(("{", "[")) and text.endswith(("}", "]")):
        try:
            value = read_json(text)
        except ValueError:
            return []
        return _complete(list(_calls_in_json(value)))
    found = _FUNCTION.fullmatch(text)
    return _read_python(text, found) if found and len(text) <= MAX_CHARACTERS else []


def _strip_fences(text: str) -> str:
    text = _OPENING.sub("", text.strip(), count=1)
    for closing in _CLOSINGS:
        text = text.removesuffix(closing).rstrip()
    return text.strip()


def _complete(calls: list[TextCall | None]) -> list[TextCall]:
    """Return the calls, unless one of the entries is none."""
    known = [one for one in calls if one is not None]
    return known if len(known) == len(calls) else []


def _calls_in_json(value: Any) -> Iterator[TextCall | None]:
    is_envelope = is_dict(value) and is_list(value.get("tool_calls"))
    entries = value["tool_calls"] if is_envelope else value
    for entry in entries if is_list(entries) else [entries]:
        yield _call_in_json(entry, is_envelope=is_envelope)


def _call_in_json(entry: Any, *, is_envelope: bool) -> TextCall | None:
    if is_dict(entry) and is_dict(entry.get("function")):
        entry, is_envelope = entry["function"], True
    if not is_dict(entry):
        return None
    name = next((entry[key] for key in _NAME_KEYS if isinstance(entry.get(key), str)), None)
    values = (_as_dict(entry.get(key)) for key in _ARGUMENT_KEYS)
    arguments = next((one for one in values if one is not None), None)
    if name is None or (arguments is None and not is_envelope):
        return None
    return TextCall(name, arguments, is_sure=not _SURE_KEYS.isdisjoint(entry), is_envelope=is_envelope)


def _as_dict(value: Any) -> dict[str, Any] | None:
    """Return a value that is an object, or the JSON text of one."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_json(value)
        except ValueError:
            return None
    return value if is_dict(value) else None


def _read_python(text: str, found: re.Match[str]) -> list[TextCall]:
    """Return the calls in Python's form; one whose arguments cannot be read is known by its name."""
    # A model may write the lines of a program into a string without escaping their ends.
    for source in (text, text.replace("\n", "\\n")):
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        calls = _complete([_call_in_python(one) for one in body])
        if len(calls) != 1 or calls[0].arguments is not None:
            return calls
        break
    inside = found["inside"].strip()
    arguments = _as_dict(inside) if inside.endswith("}") else None  # such as with JSON's `true`
    return [TextCall(found["name"], arguments)]


def _call_in_python(statement: ast.stmt) -> TextCall | None:
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Name) and value.func.id == _PRINT and len(value.args) == 1:
        [printed] = value.args
        value = printed if isinstance(printed, ast.Call) else value
    function = value.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    try:
        named = {one.arg or "": _literal(one.value) for one in value.keywords}
        positional = tuple(_literal(one) for one in value.args)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return TextCall(name, None)
    if not named and len(positional) == 1 and is_dict(positional[0]):
        return TextCall(name, positional[0])
    return TextCall(name, None if "" in named else named, positional)


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal as JSON data; raises `ValueError` or `TypeError` for anything else."""
    return json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
