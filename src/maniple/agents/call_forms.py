"""The forms in which models write a tool call without native tool calling: as JSON, or as Python."""

import ast
import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

from maniple.llms import read_json
from maniple.types import is_dict, is_list

MAX_PYTHON_CHARACTERS = 200_000
"""A longer text in the form of Python is not parsed."""
MAX_REPAIRED_CHARACTERS = 20_000
"""The total length of broken JSON that is repaired in one text."""
_JSON_BEGIN = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\]\dtfn-]")
_WINDOWS = (500, 16_000)
_ESCAPE_CHARACTERS = 16
"""An error so near to the end of a part may come from where it is cut."""
_MIN_NESTED = 900
"""Deeper nested JSON is not decoded."""
_MAX_ENCODINGS = 3
"""How often arguments may have been encoded as JSON text."""
_DECODER = json.JSONDecoder(strict=False)
_FUNCTION = re.compile(
    r"(?:\w{1,60} ?= ?)?(?:\w{1,60}\.){0,3}(?P<name>\w{2,60})\((?P<inside>.*)\)", re.DOTALL
)
_PYTHON_START = re.compile(r"[\[\s]*[A-Za-z_][\w.]*\s*[=(]|#")
_PRINT = "print"
"""Some models print the result of their call."""
_SURE_KEYS = frozenset(
    {
        *("tool", "tool_name", "function_name", "recipient_name"),
        *("arguments", "args", "kwargs", "tool_input", "tool_args", "function_args", "action_input"),
    }
)
"""Keys that only a call has; other data has a name with an input or parameters, too."""
_SURE_TYPES = frozenset({"function", "function_call", "tool_call", "tool_use"})
_LIST_KEYS = ("tool_calls", "tool_uses")
_CALL_KEYS = ("function", "function_call", "tool_call", "tool_use")
"""Of an entry in which the call is an object."""
_NAME_KEYS = ("tool", "tool_name", "function_name", "recipient_name", "name", "function", "action")
_ARGUMENT_KEYS = (
    *("arguments", "args", "kwargs", "tool_input", "tool_args", "function_args", "action_input"),
    *("parameters", "params", "input"),
)
_INPUT_KEYS = ("tool_input", "action_input", "input")
"""Of arguments that may be a text, which is the only one."""
_NAME_PREFIX = re.compile(r"(?:functions?|tools?|default_api)[.:/]")
_NAME_END = re.compile(r"<[|｜]|\[(?:ARGS|CALL_ID)\]|:\d+$")


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


Calls = tuple[TextCall, ...]


def clean_name(name: str, names: Set[str] = frozenset()) -> str:
    """Return a tool's name without the control marks and prefixes that models write around it."""
    if name in names:
        return name
    shown = _NAME_END.split(name.strip(), maxsplit=1)[0].strip(" \t\r\n`'\"*:").replace("\\_", "_")
    return _NAME_PREFIX.sub("", shown, count=1)


class BrokenJson(ValueError):
    """There is no JSON value; `end` is where it breaks off, so that no call begins before it."""

    def __init__(self, end: int) -> None:
        super().__init__("it is no JSON")
        self.end = end


class CallSource:
    """A text with calls. Its JSON is read in place, and broken JSON is repaired up to a total length."""

    def __init__(
        self, text: str, names: Set[str] = frozenset(), *, repairable: int = MAX_REPAIRED_CHARACTERS
    ) -> None:
        self.text = text
        self.names = names
        self._repairable = [repairable]

    def of_part(self, text: str) -> "CallSource":
        """Return the source for a part of the text; what it repairs counts for both."""
        part = CallSource(text, self.names)
        part._repairable = self._repairable
        return part

    def json_at(self, start: int) -> tuple[Any, int]:
        """Return the JSON value that begins at `start` and its end.

        Raises `BrokenJson` if there is none. Only a part of the text is decoded as long as that suffices,
        because the time of an error grows with the text.
        """
        if not _JSON_BEGIN.match(self.text, start):
            raise BrokenJson(start + 1)
        for window in (*_WINDOWS, len(self.text)):
            part = self.text[start : start + window]
            try:
                value, end = _DECODER.raw_decode(part)
            except RecursionError as error:
                raise BrokenJson(start + _MIN_NESTED) from error
            except json.JSONDecodeError as error:
                is_cut = error.pos >= len(part) - _ESCAPE_CHARACTERS or "Unterminated" in error.msg
                if not is_cut or start + window >= len(self.text):
                    raise BrokenJson(start + error.pos) from error
            except ValueError as error:
                raise BrokenJson(start) from error
            else:
                return value, start + end
        raise BrokenJson(start)

    def repaired(self, start: int, end: int) -> Any:
        """Return the JSON value in a part of the text, repaired if it ends as a value does, else None."""
        if end - start > self._repairable[0]:
            return None
        part = self.text[start:end].strip()
        if not part.endswith(("}", "]")):
            return None  # a repair would close a cut value in the middle of a program
        self._repairable[0] -= len(part)
        try:
            return read_json(part)
        except ValueError:
            return None


def calls_in_json(value: Any, names: Set[str] = frozenset(), *, is_marked: bool = False) -> Calls:
    """Return the calls in a JSON value; none if one of its entries is anything else.

    With `is_marked`, it stands where only a call can be, so that a call need not have arguments.
    """
    key = next((one for one in _LIST_KEYS if is_dict(value) and is_list(value.get(one))), None)
    entries = value[key] if key else value if is_list(value) else [value]
    calls = [_call_in_json(one, names, is_envelope=key is not None, is_marked=is_marked) for one in entries]
    return _complete(calls)


def _complete(calls: list[TextCall | None]) -> Calls:
    """Return the calls, unless one of the entries is none."""
    known = [one for one in calls if one is not None]
    return tuple(known) if len(known) == len(calls) else ()


def _call_in_json(entry: Any, names: Set[str], *, is_envelope: bool, is_marked: bool) -> TextCall | None:
    if not is_dict(entry):
        return None
    is_envelope = is_envelope or is_marked
    if inner := next((entry[key] for key in _CALL_KEYS if is_dict(entry.get(key))), None):
        entry, is_envelope = inner, True
    name = next((entry[key] for key in _NAME_KEYS if isinstance(entry.get(key), str)), None)
    if name is None:
        return _call_by_key(entry, names, is_marked=is_marked)
    if _is_definition(entry):
        return None
    arguments, positional = _arguments_in(entry)
    if arguments is None and is_marked and not any(entry.get(key) for key in _ARGUMENT_KEYS):
        arguments = {}
    if arguments is None and not is_envelope:
        return None
    is_sure = is_marked or not _SURE_KEYS.isdisjoint(entry) or str(entry.get("type")) in _SURE_TYPES
    return TextCall(clean_name(name, names), arguments, positional, is_sure=is_sure, is_envelope=is_envelope)


def _call_by_key(entry: dict[str, Any], names: Set[str], *, is_marked: bool) -> TextCall | None:
    """Return the call in an object whose only key is a tool's name."""
    if len(entry) != 1 or not (is_marked or not names.isdisjoint(entry)):
        return None
    [(name, value)] = entry.items()
    if not is_dict(value):
        return None
    return TextCall(clean_name(name, names), value, is_sure=is_marked, is_envelope=is_marked)


def _arguments_in(entry: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the arguments of a call by name, and those without; None if there are none to be read."""
    values = (as_arguments(entry.get(key)) for key in _ARGUMENT_KEYS)
    if (arguments := next((one for one in values if one is not None), None)) is not None:
        return arguments, ()
    text = next((entry[key] for key in _INPUT_KEYS if is_plain_text(entry.get(key))), None)
    return (None, ()) if text is None else ({}, (text,))


def is_plain_text(value: Any) -> bool:
    """Return whether a value is a text, and no JSON or code block that could not be read."""
    return isinstance(value, str) and bool(value.strip()) and not value.lstrip().startswith(("{", "[", "`"))


def _is_definition(entry: dict[str, Any]) -> bool:
    """Return whether an entry describes a tool, as prompts do."""
    parameters = entry.get("parameters")
    return (
        is_dict(parameters) and parameters.get("type") == "object" and is_dict(parameters.get("properties"))
    )


def as_arguments(value: Any) -> dict[str, Any] | None:
    """Return a value that is an object, or the JSON text of one, encoded once or more; else None."""
    for _ in range(_MAX_ENCODINGS):
        if not isinstance(value, str) or not value.lstrip().startswith(("{", '"', "```")):
            break
        try:
            value = read_json(value)
        except ValueError:
            return None
    return value if is_dict(value) else None


def calls_in_python(text: str, names: Set[str] = frozenset()) -> Calls:
    """Return the calls in Python's form that a text consists of.

    One whose arguments cannot be read is known by its name.
    """
    text = text.strip()
    if len(text) > MAX_PYTHON_CHARACTERS or not text.endswith((")", ")]", ");")):
        return ()
    if not _PYTHON_START.match(text):
        return ()
    found = _FUNCTION.fullmatch(text)
    # A model may write the lines of a program into a string without escaping their ends.
    for source in (text, text.replace("\n", "\\n")):
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        calls = _complete([_call_in_python(one, names) for one in _statements(body)])
        if not found or len(calls) != 1 or calls[0].arguments is not None:
            return calls
        break
    if not found:
        return ()
    inside = found["inside"].strip()
    arguments = as_arguments(inside) if inside.endswith("}") else None  # such as with JSON's `true`
    return (TextCall(clean_name(found["name"], names), arguments),)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    """Yield the statements; of one that is a list, its elements."""
    for one in body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.List):
            yield from one.value.elts
        else:
            yield one


def _call_in_python(one: ast.stmt | ast.expr, names: Set[str]) -> TextCall | None:
    value = one.value if isinstance(one, ast.Expr | ast.Assign) else one
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Name) and value.func.id == _PRINT and len(value.args) == 1:
        [printed] = value.args
        value = printed if isinstance(printed, ast.Call) else value
    function = value.func
    parts = ast.unparse(function).split(".")
    name = next((one for one in reversed(parts) if one in names), clean_name(parts[-1], names))
    try:
        named = {one.arg or "": _literal(one.value) for one in value.keywords}
        positional = tuple(_literal(one) for one in value.args)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return TextCall(name, None)
    if not named and len(positional) == 1 and is_dict(positional[0]):
        return TextCall(name, positional[0])
    return TextCall(name, None if "" in named else named, positional)


def is_program(text: str) -> bool:
    """Return whether a text is Python that does something, and no prose."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(not isinstance(one, ast.Expr) or isinstance(one.value, ast.Call) for one in body)


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal as JSON data; raises `ValueError` or `TypeError` for anything else."""
    return json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
