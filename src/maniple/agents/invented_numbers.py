"""The check that a small model computes with numbers that it was given.

After "1+3=?" had failed, it planned `7*9` for "Und das mal 7?" and reported 63 as the answer: a changed copy
of an example, with a number in place of a result that did not exist.
"""

import ast
import re
from collections.abc import Iterable, Iterator

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CONSTANTS = frozenset({0.0, 1.0, 2.0, 10.0, 24.0, 60.0, 100.0, 365.0, 1000.0, 3600.0})
"""Small numbers, powers of ten, and the units of time: they are known without being given."""
_CALCULATES = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Name, ast.Constant, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context, ast.JoinedStr, ast.FormattedValue),
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Call, ast.Attribute),
    *(ast.Import, ast.ImportFrom, ast.alias),
)
"""What a program is made of that only calculates. Others may need tables and sizes that nobody gives."""


def find_invented(text: str, given: str) -> str:
    """Return the first number of `text` that is neither in `given` nor a usual constant; "" for none.

    A percentage is also given as a fraction: "5 %" allows `0.05`.
    """
    return _find_new(_NUMBER.findall(text), given)


def find_invented_operand(program: str, given: str) -> str:
    """Return the first number of a Python program that only calculates which `given` does not allow, or "".

    Programs with loops, tables or branches are not checked, nor those that do not parse.
    """
    constants = (str(node.value) for node in _parse_calculation(program) if isinstance(node, ast.Constant))
    return _find_new((number for text in constants for number in _NUMBER.findall(text)), given)


def find_uncalculated(program: str) -> str:
    """Return the number that a program prints without calculating anything; "" for any other program."""
    nodes = _parse_calculation(program)
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    is_printed = all(isinstance(one, ast.Name) and one.id == "print" for one in calls)
    has_operation = any(isinstance(node, ast.operator) for node in nodes)
    is_number = len(constants) == 1 and isinstance(constants[0], int | float)
    return str(constants[0]) if is_number and is_printed and not has_operation else ""


def _parse_calculation(program: str) -> list[ast.AST]:
    """Return the nodes of a program that only calculates; none of another, or one that does not parse."""
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return nodes if all(isinstance(node, _CALCULATES) for node in nodes) else []


def _find_new(numbers: Iterable[str], given: str) -> str:
    allowed = _CONSTANTS.union(*map(_allowed_by, _NUMBER.findall(given)))
    return next((number for number in numbers if allowed.isdisjoint(_readings(number))), "")


def _allowed_by(number: str) -> Iterator[float]:
    for value in _readings(number):
        yield from (value, value / 100)


def _readings(number: str) -> set[float]:
    """Return what a number may mean: `1,200` is 1200 or 1.2, and `3.4.25` has three numbers."""
    parts = re.split(r"[.,]", number)
    if len(parts) == 1:
        return {float(number)}
    whole = float("".join(parts))
    return {whole, float(".".join(parts))} if len(parts) == 2 else {whole, *map(float, parts)}
