"""Elements of WordprocessingML (ISO/IEC 29500-1, 17). The order of properties is the schema's."""

from functools import cache
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONSHIP = f"{{{_OFFICE}}}id"
_PREFIXES = {"w": _MAIN, "r": _OFFICE}
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def element(name: str, /, *inner: Any, **attributes: str | int) -> Any:
    """Return the element `w:name` with `inner` elements; the attribute `r_id` is `r:id`, others are `w:`."""
    # Not python-docx's own elements: their making takes ten times as long, and a table has many.
    made = etree.Element(_name(name), nsmap=_PREFIXES)
    for key, value in attributes.items():
        made.set(_RELATIONSHIP if key == "r_id" else _name(key), str(value))
    for one in inner:
        made.append(one)
    return made


def preserved(name: str, text: str) -> Any:
    """Return `w:t` or another element of text, whose spaces count."""
    made = element(name)
    made.text = text
    made.set(_SPACE, "preserve")
    return made


def run(*content: Any, properties: tuple[Any, ...] = ()) -> Any:
    """Return a run."""
    return element("r", *([element("rPr", *properties)] if properties else []), *content)


def paragraph(*content: Any, style: str = "", properties: tuple[Any, ...] = ()) -> Any:
    """Return a paragraph."""
    named = [element("pStyle", val=style)] if style else []
    return element("p", element("pPr", *named, *properties), *content)


def field(code: str) -> tuple[list[Any], list[Any]]:
    """Return what stands before and behind what a field (17.16) shows until Word works it out anew."""
    begin, separate, end = (run(element("fldChar", fldCharType=kind)) for kind in _FIELD)
    return [begin, run(preserved("instrText", code)), separate], [end]


_FIELD = ("begin", "separate", "end")


@cache
def _name(local: str) -> str:
    return f"{{{_MAIN}}}{local}"
