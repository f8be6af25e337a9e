"""TeX in a report, converted to MathML, which browsers show without scripts or extra fonts."""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element, tostring

_MAX_CHARACTERS = 50_000
# Macros can make a line of TeX expand without limit.
_DEFINITION = re.compile(r"\\(?:newcommand|newenvironment|def|DeclareMathOperator)(?![a-zA-Z])")


class FormulaRenderer:
    """Renders the formulas of one document. Beyond `_MAX_CHARACTERS` in total, formulas are shown as TeX."""

    def __init__(self) -> None:
        self._left = _MAX_CHARACTERS

    def render(self, tex: str, *, display: bool) -> str:
        """Return `tex` as a `math` element, or as code if it cannot be converted. Blocks."""
        element = self.convert(tex, display=display)
        return _as_code(tex) if element is None else tostring(element, encoding="unicode")

    def convert(self, tex: str, *, display: bool) -> Element | None:
        """Return `tex` as a `math` element of MathML; None if it cannot be converted. Blocks."""
        self._left -= len(tex)
        if self._left < 0 or _DEFINITION.search(tex):
            return None
        from latex2mathml.converter import convert_to_element

        try:
            element = convert_to_element(tex, display="block" if display else "inline")
        except Exception:  # noqa: BLE001 - for TeX that it does not support, the library raises various errors
            return None
        for one in element.iter():
            # The library returns some characters as HTML references in plain text.
            one.text = html.unescape(one.text) if one.text else None
        return element


def _as_code(tex: str) -> str:
    return f"<code>{html.escape(tex)}</code>"
