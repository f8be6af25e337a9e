"""Formulas as Office Math (ISO/IEC 29500-1, 22.1), made from MathML."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from xml.etree.ElementTree import Element

_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_LARGE = frozenset("∑∏∐∫∬∭∮∯∰⋀⋁⋂⋃⨀⨁⨂")
"""Operators that have limits and an operand."""
_BARS = {"¯": "top", "‾": "top", "―": "top", "_": "bot"}
_ACCENTS = {"^": "\u0302", "~": "\u0303", "→": "\u20d7", "˙": "\u0307", "¨": "\u0308", "ˇ": "\u030c"}
"""The combining characters of accents that MathML writes as characters of their own."""
_BRACES = "⏞⏟"


def write_formula(math: Element, *, display: bool) -> Any:
    """Return a `math` element as `m:oMath`, in `m:oMathPara` for a formula on a line of its own."""
    formula = _make("oMath", *_convert_row([*math]))
    return _make("oMathPara", formula) if display else formula


def _make(name: str, /, *inner: Any, **attributes: str) -> Any:
    made = etree.Element(_name(name), nsmap={"m": _MATH})
    for key, value in attributes.items():
        made.set(_name(key), value)
    made.extend(inner)
    return made


@cache
def _name(local: str) -> str:
    return f"{{{_MATH}}}{local}"


def _convert_row(row: Sequence[Element]) -> list[Any]:
    """Return the elements of a row; fences, and large operators with what follows, become one element."""
    made: list[Any] = []
    at = 0
    while at < len(row):
        one = row[at]
        if _is_fence(one, "prefix") and (end := _find_fence_end(row, at)) > 0:
            closing = _text(row[end]) if end < len(row) else ""
            made.append(_delimit(_text(one), closing, _convert_row(row[at + 1 : end])))
            at = end + 1
        elif _is_large(one):
            operand = row[at + 1 : at + 2]
            made.append(_nary(one, _convert_row(operand)))
            at += 2
        else:
            made += _convert(one)
            at += 1
    return made


def _convert(one: Element) -> list[Any]:
    """Return an element of MathML as elements of Office Math."""
    kind = one.tag
    if kind in _TEXTS:
        return [_run(_text(one), is_text=kind == "mtext")] if _text(one) else []
    convert = _STRUCTURES.get(str(kind))
    children = [*one]
    if convert is None or len(children) < _LEAST.get(str(kind), 0):
        return _convert_row(children)
    return [convert(one, children)]


_TEXTS = frozenset(("mi", "mn", "mo", "mtext", "ms"))


def _run(text: str, *, is_text: bool = False) -> Any:
    shown = _make("t")
    shown.text = text
    shown.set(_SPACE, "preserve")
    # Letters are italic unless they are words, such as `lim`.
    looks = [_make("nor")] if is_text else [_make("sty", val="p")] if len(text) > 1 else []
    return _make("r", *([_make("rPr", *looks)] if looks else []), shown)


def _part(name: str, *children: Element) -> Any:
    """Return a part of a structure, such as `m:num`."""
    inner = [made for one in children for made in _convert_row([one])]
    return _make(name, *inner)


def _text(one: Element) -> str:
    return (one.text or "").strip("\n") if one.tag in _TEXTS else "".join(map(_text, one))


def _is_fence(one: Element, form: str) -> bool:
    return one.tag == "mo" and one.get("fence") == "true" and one.get("form") == form


def _find_fence_end(row: Sequence[Element], start: int) -> int:
    """Return the index of the fence that closes the one at `start`; the end if there is none."""
    depth = 0
    for index in range(start, len(row)):
        depth += _is_fence(row[index], "prefix") - _is_fence(row[index], "postfix")
        if depth == 0:
            return index
    return len(row)


def _delimit(opening: str, closing: str, inner: list[Any]) -> Any:
    shown = [_make("begChr", val=opening.strip(".")), _make("endChr", val=closing.strip("."))]
    return _make("d", _make("dPr", *shown), _make("e", *inner))


def _is_large(one: Element) -> bool:
    return one.tag in ("msub", "msup", "msubsup", "munder", "mover", "munderover") and (
        len(one) > 1 and _text(one[0]) in _LARGE
    )


def _nary(one: Element, operand: list[Any]) -> Any:
    kind = str(one.tag)
    has_lower, has_upper = kind not in ("msup", "mover"), kind not in ("msub", "munder")
    sign = _text(one[0])
    where = "subSup" if kind.startswith("ms") and "∫" <= sign <= "∰" else "undOvr"
    properties = [_make("chr", val=sign), _make("limLoc", val=where)]
    properties += [] if has_lower else [_make("subHide", val="1")]
    properties += [] if has_upper else [_make("supHide", val="1")]
    lower = _part("sub", one[1]) if has_lower else _make("sub")
    upper = _part("sup", one[-1]) if has_upper else _make("sup")
    return _make("nary", _make("naryPr", *properties), lower, upper, _make("e", *operand))


def _fraction(one: Element, children: Sequence[Element]) -> Any:
    kind = [_make("fPr", _make("type", val="noBar"))] if one.get("linethickness") in ("0", "0em") else []
    return _make("f", *kind, _part("num", children[0]), _part("den", children[1]))


def _square_root(_: Element, children: Sequence[Element]) -> Any:
    hidden = _make("radPr", _make("degHide", val="1"))
    return _make("rad", hidden, _make("deg"), _part("e", *children))


def _root(_: Element, children: Sequence[Element]) -> Any:
    return _make("rad", _part("deg", children[1]), _part("e", children[0]))


def _below(one: Element, children: Sequence[Element]) -> Any:
    if one.tag == "munder":
        return _over_or_under(children, "bot", "limLow")
    return _make("sSub", _part("e", children[0]), _part("sub", children[1]))


def _above(one: Element, children: Sequence[Element]) -> Any:
    if one.tag == "mover":
        return _over_or_under(children, "top", "limUpp")
    return _make("sSup", _part("e", children[0]), _part("sup", children[1]))


def _over_or_under(children: Sequence[Element], side: str, limit: str) -> Any:
    sign = _text(children[1])
    if _BARS.get(sign) and len(sign) == 1:
        return _make("bar", _make("barPr", _make("pos", val=side)), _part("e", children[0]))
    if sign in _BRACES and sign:
        vertical = "bot" if side == "top" else "top"
        shape = _make(
            "groupChrPr", _make("chr", val=sign), _make("pos", val=side), _make("vertJc", val=vertical)
        )
        return _make("groupChr", shape, _part("e", children[0]))
    if sign in _ACCENTS and side == "top":
        return _make("acc", _make("accPr", _make("chr", val=_ACCENTS[sign])), _part("e", children[0]))
    return _make(limit, _part("e", children[0]), _part("lim", children[1]))


def _both(one: Element, children: Sequence[Element]) -> Any:
    base, lower, upper = children[:3]
    if one.tag == "msubsup":
        return _make("sSubSup", _part("e", base), _part("sub", lower), _part("sup", upper))
    inner = _make("limLow", _part("e", base), _part("lim", lower))
    return _make("limUpp", _make("e", inner), _part("lim", upper))


def _matrix(_: Element, rows: Sequence[Element]) -> Any:
    columns = max((len(row) for row in rows), default=1)
    sides = [
        next((cell.get("columnalign", "center") for row in rows for cell in [*row][at : at + 1]), "center")
        for at in range(columns)
    ]
    shown = [_make("mc", _make("mcPr", _make("count", val="1"), _make("mcJc", val=side))) for side in sides]
    lines = [
        _make(
            "mr",
            *(_make("e", *_convert_row([*cell])) for cell in row),
            *(_make("e") for _ in range(columns - len(row))),
        )
        for row in rows
    ]
    return _make("m", _make("mPr", _make("mcs", *shown)), *lines)


def _box(_: Element, children: Sequence[Element]) -> Any:
    return _make("borderBox", _part("e", *children))


_STRUCTURES: dict[str, Callable[[Element, Sequence[Element]], Any]] = {
    "mfrac": _fraction,
    "msqrt": _square_root,
    "mroot": _root,
    "msub": _below,
    "munder": _below,
    "msup": _above,
    "mover": _above,
    "msubsup": _both,
    "munderover": _both,
    "mtable": _matrix,
    "menclose": _box,
}
_LEAST = {
    "mfrac": 2,
    "mroot": 2,
    "msub": 2,
    "munder": 2,
    "msup": 2,
    "mover": 2,
    "msubsup": 3,
    "munderover": 3,
}
"""The children without which an element is no structure."""
