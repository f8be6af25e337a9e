"""What a plain interpreter does not tell of code that it ran: its last value, and the figures it drew."""

import ast
import base64
import binascii
import json
from typing import Any

from maniple.sandbox.remote import MAX_FIGURE_BYTES, MAX_FIGURES

_NAME = "_maniple_value"
_VALUE_CHARACTERS = 4000

AFTERWARDS = f"""
def _maniple_afterwards(value):
    import base64, io, json, sys
    figures, plots = [], sys.modules.get("matplotlib.pyplot")
    for number in (plots.get_fignums()[:{MAX_FIGURES}] if plots else ()):
        file = io.BytesIO()
        plots.figure(number).savefig(file, format="png")
        figures.append(base64.b64encode(file.getvalue()).decode())
    if plots:
        plots.close("all")
    told = "" if value is None else repr(value)[:{_VALUE_CHARACTERS}]
    print(json.dumps({{"value": told, "figures": figures}}))
_maniple_afterwards(globals().pop("{_NAME}", None))
del _maniple_afterwards
"""
"""Prints them as JSON, in the namespace of the code that was run by `keeping_value`."""


def keeping_value(code: str) -> str:
    """Return the same code, which also remembers what its last line comes to, if that is an expression.

    Code that is not understood is returned as it is, for the interpreter to say why.
    """
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        return code
    lines = code.encode().split(b"\n")
    above, expression = lines[: last.lineno - 1], lines[last.lineno - 1 : last.end_lineno]
    expression[-1] = expression[-1][: last.end_col_offset]
    before, first = expression[0][: last.col_offset], expression[0][last.col_offset :]
    kept = [*above, before + f"{_NAME} = (".encode() + first, *expression[1:], b")"]
    return b"\n".join(kept).decode()


def read_afterwards(printed: str) -> tuple[str, tuple[bytes, ...]]:
    """Value and figures that `AFTERWARDS` printed; nothing where that makes no sense."""
    try:
        told = json.loads(printed)
    except (ValueError, RecursionError):
        return "", ()
    if not isinstance(told, dict):
        return "", ()
    value, figures = told.get("value"), told.get("figures")
    decoded = [_figure(one) for one in (figures if isinstance(figures, list) else ())[:MAX_FIGURES]]
    return (
        value[:_VALUE_CHARACTERS].encode(errors="replace").decode() if isinstance(value, str) else "",
        tuple(one for one in decoded if one),
    )


def _figure(told: Any) -> bytes:
    if not isinstance(told, str) or len(told) > MAX_FIGURE_BYTES * 4 // 3:
        return b""
    try:
        return base64.b64decode(told, validate=True)
    except (binascii.Error, ValueError):
        return b""
