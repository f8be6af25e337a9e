"""Equations of Office documents (OMML) as TeX."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from maniple.reading.xml_parts import find_child, find_children, local_attribute, local_name

if TYPE_CHECKING:
    from maniple.reading.xml_parts import Element

_SPECIAL: Mapping[str, str] = {
    **{letter: f"\\{letter}" for letter in "#$%&_{}"},
    "\\": r"\backslash ",
    "−": "-",
    "^": r"\hat{} ",
    "~": r"\sim ",
}
_OPERATORS: Mapping[str, str] = {
    "×": "times", "÷": "div", "±": "pm", "∓": "mp", "·": "cdot", "⋅": "cdot", "∗": "ast", "≤": "le",
    "≥": "ge", "≠": "ne", "≈": "approx", "≡": "equiv", "∝": "propto", "∞": "infty", "→": "to",
    "←": "leftarrow", "↔": "leftrightarrow", "⇒": "Rightarrow", "⇔": "Leftrightarrow", "∈": "in",
    "∉": "notin", "⊂": "subset", "⊆": "subseteq", "∪": "cup", "∩": "cap", "∅": "emptyset", "∀": "forall",
    "∃": "exists", "¬": "neg", "∧": "wedge", "∨": "vee", "∂": "partial", "∇": "nabla", "…": "ldots",
    "⋯": "cdots", "∘": "circ", "⊕": "oplus", "⊗": "otimes", "⟨": "langle", "⟩": "rangle", "‖": "|",
    "∼": "sim", "≪": "ll", "≫": "gg", "ℏ": "hbar", "ℓ": "ell", "°": "circ",
}  # fmt: skip
_NARY: Mapping[str, str] = {
    "∑": r"\sum", "∏": r"\prod", "∐": r"\coprod", "∫": r"\int", "∬": r"\iint", "∭": r"\iiint",
    "∮": r"\oint", "⋃": r"\bigcup", "⋂": r"\bigcap", "⋁": r"\bigvee", "⋀": r"\bigwedge", "": r"\int",
}  # fmt: skip
_ACCENTS: Mapping[str, str] = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar",
    "\u0305": "overline", "\u0306": "breve", "\u0307": "dot", "\u0308": "ddot", "\u030c": "check",
    "\u20d7": "vec", "": "hat", "→": "vec", "¯": "bar",
}  # fmt: skip
_FUNCTIONS = frozenset(
    ("arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim", "exp",
     "gcd", "hom", "inf", "ker", "lg", "lim", "liminf", "limsup", "ln", "log", "max", "min", "Pr", "sec",
     "sin", "sinh", "sup", "tan", "tanh")
)  # fmt: skip
_FENCES: Mapping[str, str] = {
    "{": r"\{", "}": r"\}", "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ",
    "⌈": r"\lceil ", "⌉": r"\rceil ", "‖": r"\|", "": ".",
}  # fmt: skip
_GREEK_VARIANTS: Mapping[str, str] = {
    "ϵ": "epsilon",
    "ϑ": "vartheta",
    "ϕ": "phi",
    "φ": "varphi",
    "ε": "varepsilon",
}
_ROW_END = r" \\ "
_MATRIX_BEGIN, _MATRIX_END = r"\begin{matrix}", r"\end{matrix}"
_MATRICES: Mapping[tuple[str, str], str] = {
    ("(", ")"): "pmatrix", ("[", "]"): "bmatrix", ("{", "}"): "Bmatrix", ("|", "|"): "vmatrix",
    ("‖", "‖"): "Vmatrix", ("{", ""): "cases",
}  # fmt: skip
"""The environments of a matrix between two fences."""
_STYLES = (("DOUBLE-STRUCK", "mathbb"), ("FRAKTUR", "mathfrak"), ("SCRIPT", "mathcal"), ("BOLD", "mathbf"))
_RUN_SCRIPTS: Mapping[str, str] = {"double-struck": "mathbb", "fraktur": "mathfrak", "script": "mathcal"}


def to_tex(equation: "Element") -> str:
    """Return an `m:oMath` as TeX, without delimiters. Characters that have no command stay."""
    return " ".join(_children(equation).split())


def _children(element: "Element | None") -> str:
    return "" if element is None else "".join(map(_convert, element))


def _convert(element: "Element") -> str:
    name = local_name(element)
    if name.endswith("Pr"):
        return ""
    convert = _CONVERTERS.get(name)
    return convert(element) if convert else _children(element)


def _part(element: "Element", name: str) -> str:
    return _children(find_child(element, name)).strip()


def _property(element: "Element", name: str, default: str = "") -> str:
    """Return a property's value; `default` where the property is absent."""
    found = find_child(find_child(element, f"{local_name(element)}Pr"), name)
    return default if found is None else local_attribute(found, "val")


def _is_on(element: "Element", name: str) -> bool:
    return _property(element, name, "0") not in ("0", "off", "false")


def _run(element: "Element") -> str:
    text = "".join("".join(one.itertext()) for one in find_children(element, "t"))
    style = find_child(element, "rPr")
    if find_child(style, "nor") is not None:
        return rf"\text{{{text}}}" if text.strip() else text
    tex = "".join(map(_character, text))
    script = _RUN_SCRIPTS.get(local_attribute(find_child(style, "scr"), "val"), "")
    is_bold = "b" in local_attribute(find_child(style, "sty"), "val")
    command = script or ("mathbf" if is_bold else "")
    return rf"\{command}{{{tex}}}" if command and tex.strip() else tex


def _character(letter: str) -> str:
    if letter in _SPECIAL or letter.isascii():
        return _SPECIAL.get(letter, letter)
    if letter in _OPERATORS:
        return rf"\{_OPERATORS[letter]} "
    if letter in _NARY:
        return f"{_NARY[letter]} "
    plain = unicodedata.normalize("NFKC", letter)
    name = unicodedata.name(letter, "")
    command = next((tex for word, tex in _STYLES if word in name), "") if plain != letter else ""
    tex = "".join(_greek(one) for one in (plain if letter not in _GREEK_VARIANTS else letter))
    return rf"\{command}{{{tex.strip()}}}" if command and tex.strip() else tex


def _greek(letter: str) -> str:
    if letter in _GREEK_VARIANTS:
        return rf"\{_GREEK_VARIANTS[letter]} "
    words = unicodedata.name(letter, "").split()
    if words[:1] != ["GREEK"] or len(words) != 4 or words[2] != "LETTER":
        return letter
    name = words[3].lower().replace("lamda", "lambda")
    return rf"\{name if words[1] == 'SMALL' else name.capitalize()} "


def _fraction(element: "Element") -> str:
    numerator, denominator = _part(element, "num"), _part(element, "den")
    match _property(element, "type", "bar"):
        case "noBar":
            return rf"\genfrac{{}}{{}}{{0pt}}{{}}{{{numerator}}}{{{denominator}}}"
        case "lin":
            return f"{{{numerator}}}/{{{denominator}}}"
    return rf"\frac{{{numerator}}}{{{denominator}}}"


def _scripts(element: "Element") -> str:
    base, below, above = (_part(element, name) for name in ("e", "sub", "sup"))
    base = base if len(base) == 1 or (base.startswith("\\") and base[1:].isalpha()) else f"{{{base}}}"
    lower = f"_{{{below}}}" if find_child(element, "sub") is not None else ""
    upper = f"^{{{above}}}" if find_child(element, "sup") is not None else ""
    if local_name(element) == "sPre":
        return f"{{}}{lower}{upper}{base}"
    return f"{base}{lower}{upper}"


def _radical(element: "Element") -> str:
    degree = "" if _is_on(element, "degHide") else _part(element, "deg")
    return rf"\sqrt[{degree}]{{{_part(element, 'e')}}}" if degree else rf"\sqrt{{{_part(element, 'e')}}}"


def _nary(element: "Element") -> str:
    sign = _property(element, "chr")
    operator = _NARY.get(sign) or _character(sign).strip()
    lower, upper = _part(element, "sub"), _part(element, "sup")
    limits = (f"_{{{lower}}}" if lower else "") + (f"^{{{upper}}}" if upper else "")
    return f"{operator}{limits} {_part(element, 'e')}"


def _fenced(element: "Element") -> str:
    begin, end = _property(element, "begChr", "("), _property(element, "endChr", ")")
    between = _property(element, "sepChr", "|")
    inside = f" {between} ".join(_children(one).strip() for one in find_children(element, "e"))
    if name := _MATRICES.get((begin, end)):
        bare = inside.removeprefix(_MATRIX_BEGIN).removesuffix(_MATRIX_END)
        if len(inside) - len(bare) == len(_MATRIX_BEGIN + _MATRIX_END) and _MATRIX_BEGIN not in bare:
            return rf"\begin{{{name}}}{bare}\end{{{name}}}"
    return rf"\left{_FENCES.get(begin, begin)}{inside}\right{_FENCES.get(end, end)}"


def _function(element: "Element") -> str:
    name = _part(element, "fName")
    plain = name.removeprefix(r"\text{").removesuffix("}") if name.startswith(r"\text{") else name
    if plain in _FUNCTIONS:
        name = rf"\{plain}"
    elif plain.isalpha() and len(plain) > 1:
        name = rf"\operatorname{{{plain}}}"
    return f"{name} {_part(element, 'e')}"


def _limit(element: "Element") -> str:
    base, limit = _part(element, "e"), _part(element, "lim")
    is_below = local_name(element) == "limLow"
    if base in _FUNCTIONS:
        return rf"\{base}{'_' if is_below else '^'}{{{limit}}}"
    if [local_name(one) for one in find_children(element, "e")[0]] == ["groupChr"]:
        return f"{base}{'_' if is_below else '^'}{{{limit}}}"
    return rf"\{'underset' if is_below else 'overset'}{{{limit}}}{{{base}}}"


def _accent(element: "Element") -> str:
    sign = _property(element, "chr")
    command = _ACCENTS.get(sign, "")
    inside = _part(element, "e")
    return rf"\{command}{{{inside}}}" if command else rf"\overset{{{sign}}}{{{inside}}}"


def _bar(element: "Element") -> str:
    command = "underline" if _property(element, "pos", "bot") == "bot" else "overline"
    return rf"\{command}{{{_part(element, 'e')}}}"


def _grouped(element: "Element") -> str:
    is_below = _property(element, "pos", "bot") == "bot"
    return rf"\{'underbrace' if is_below else 'overbrace'}{{{_part(element, 'e')}}}"


def _matrix(element: "Element") -> str:
    rows = [
        " & ".join(_children(cell).strip() for cell in find_children(row, "e"))
        for row in find_children(element, "mr")
    ]
    return f"{_MATRIX_BEGIN}{_ROW_END.join(rows)}{_MATRIX_END}"


def _lines(element: "Element") -> str:
    lines = [_children(one).strip().replace(r"\&", "&") for one in find_children(element, "e")]
    return rf"\begin{{aligned}}{_ROW_END.join(lines)}\end{{aligned}}"


def _boxed(element: "Element") -> str:
    return rf"\boxed{{{_part(element, 'e')}}}"


_CONVERTERS: Mapping[str, Callable[["Element"], str]] = {
    "r": _run,
    "f": _fraction,
    **dict.fromkeys(("sSup", "sSub", "sSubSup", "sPre"), _scripts),
    "rad": _radical,
    "nary": _nary,
    "d": _fenced,
    "func": _function,
    **dict.fromkeys(("limLow", "limUpp"), _limit),
    "acc": _accent,
    "bar": _bar,
    "groupChr": _grouped,
    "m": _matrix,
    "eqArr": _lines,
    "borderBox": _boxed,
}
