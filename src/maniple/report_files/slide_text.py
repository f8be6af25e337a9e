"""The text of slides: pieces of one format each, which can be cut."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maniple.claims.sentences import find_sentence_ends
from maniple.document import nodes
from maniple.report_document.formulas import FormulaRenderer
from maniple.report_document.report_nodes import shown_text, split_citation

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Formats = frozenset[str]
NO_FORMATS: Formats = frozenset()
BOLD, ITALIC, STRUCK, CODE, MARKED, RAISED, LOWERED, DIM = (
    *("bold", "italic", "struck", "code"),
    *("marked", "raised", "lowered", "dim"),
)
MAX_CHARACTERS = 260
"""A longer paragraph is cut on the slide, behind its last sentence that ends before."""
_LEAST_CHARACTERS = 40
_ELLIPSIS = " …"
_FORMATS = {nodes.EmphasisNode: ITALIC, nodes.StrongNode: BOLD, nodes.StrikeNode: STRUCK}
_CITED = re.compile(r"(?:\s*\[(?:[\d,; –-]{1,40}|unverified)\])+")
_ROOT, _BAR = "√", "/"


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A text of one format. `target` is an address, or an id of the document behind a `#`; "" for no link."""

    text: str
    formats: Formats = NO_FORMATS
    target: str = ""


Pieces = tuple[TextPiece, ...]


class PieceReader:
    """Reads inline nodes as pieces of text. Citations of `sources` and notes, by label, become links."""

    def __init__(self, sources: Collection[int], notes: Mapping[str, int]) -> None:
        self._sources = sources
        self._notes = notes
        self._formulas = FormulaRenderer()

    def read(self, children: Sequence[nodes.InlineNode], formats: Formats = NO_FORMATS) -> Pieces:
        """Return inline nodes as pieces. A hard line break is a line feed, a figure its caption."""
        return tuple(piece for one in children for piece in self._inline(one, formats))

    def _inline(self, one: nodes.InlineNode, formats: Formats) -> Iterator[TextPiece]:
        match one:
            case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
                yield from self.read(one.children, formats | {_FORMATS[type(one)]})
            case nodes.LinkNode(target=target, children=children):
                for piece in self.read(children, formats):
                    yield replace(piece, target=target)
            case nodes.CitationNode():
                for piece in split_citation(one, self._sources):
                    target = "" if piece.number is None else f"#source-{piece.number}"
                    yield TextPiece(piece.text, formats, target)
            case nodes.FootnoteReferenceNode(label=label):
                yield self._reference(label, formats)
            case nodes.MathNode():
                yield from self.formula(one, formats)
            case _:
                yield _leaf(one, formats)

    def _reference(self, label: str, formats: Formats) -> TextPiece:
        number = self._notes.get(label.casefold())
        if number is None:
            return TextPiece(f"[^{label}]", formats)
        return TextPiece(str(number), formats | {RAISED}, f"#footnote-{number}")

    def formula(self, node: nodes.MathNode, formats: Formats = NO_FORMATS) -> Pieces:
        """Return a formula on one line, with raised and lowered letters; as TeX if it has no such form.

        Slides have no element for formulas that all programs show.
        """
        math = self._formulas.convert(node.tex, display=node.is_display)
        if math is None or any(one.tag in _WITHOUT_LINE for one in math.iter()):
            return (TextPiece(node.tex, formats | {CODE}),)
        return tuple(_linear(math, formats))


def _leaf(one: nodes.InlineNode, formats: Formats) -> TextPiece:
    match one:
        case nodes.MarkNode(text=text):
            return TextPiece(text, formats | {MARKED})
        case nodes.CodeNode(text=text):
            return TextPiece(text, formats | {CODE})
        case nodes.LineBreakNode(is_hard=is_hard):
            return TextPiece("\n" if is_hard else " ", formats)
        case _:
            return TextPiece(shown_text((one,)), formats)


_WITHOUT_LINE = frozenset(("mtable", "menclose", "mmultiscripts"))


def _linear(one: Element, formats: Formats) -> Iterator[TextPiece]:
    """Yield an element of MathML as pieces on one line."""
    children = [*one]
    match str(one.tag):
        case "mi" | "mn" | "mo" | "mtext" | "ms":
            yield from _symbol(one, formats)
        case "mfrac" if len(children) == 2:
            yield from (
                *_group(children[0], formats),
                TextPiece(_BAR, formats),
                *_group(children[1], formats),
            )
        case "msqrt":
            yield from (TextPiece(f"{_ROOT}(", formats), *_all(children, formats), TextPiece(")", formats))
        case "mroot" if len(children) == 2:
            yield from (*_linear(children[1], formats | {RAISED}), TextPiece(_ROOT, formats))
            yield from _group(children[0], formats)
        case "msub" | "msup" | "msubsup" | "munder" | "mover" | "munderover" if len(children) > 1:
            yield from _linear(children[0], formats)
            for place, child in zip(_PLACES[str(one.tag)], children[1:], strict=False):
                yield from _linear(child, formats | {place})
        case _:
            yield from _all(children, formats)


_PLACES = {
    **dict.fromkeys(("msub", "munder"), (LOWERED,)),
    **dict.fromkeys(("msup", "mover"), (RAISED,)),
    **dict.fromkeys(("msubsup", "munderover"), (LOWERED, RAISED)),
}


def _symbol(one: Element, formats: Formats) -> Iterator[TextPiece]:
    text = (one.text or "").strip("\n")
    if text:
        is_letter = one.tag == "mi" and len(text) == 1
        yield TextPiece(text, formats | {ITALIC} if is_letter else formats)


def _all(children: Sequence[Element], formats: Formats) -> Iterator[TextPiece]:
    for one in children:
        yield from _linear(one, formats)


def _group(one: Element, formats: Formats) -> Pieces:
    """Return an operand, in brackets if it is more than one symbol."""
    pieces = tuple(_linear(one, formats))
    if len(text_of(pieces)) <= 1 or str(one.tag) in ("mi", "mn"):
        return pieces
    return (TextPiece("(", formats), *pieces, TextPiece(")", formats))


def text_of(pieces: Sequence[TextPiece]) -> str:
    """Return the text of pieces."""
    return "".join(one.text for one in pieces)


def cut_pieces(pieces: Sequence[TextPiece], start: int, end: int) -> Pieces:
    """Return the pieces of the characters from `start` to before `end`."""
    made: list[TextPiece] = []
    at = 0
    for one in pieces:
        text = one.text[max(start - at, 0) : max(end - at, 0)]
        if text:
            made.append(replace(one, text=text))
        at += len(one.text)
    return tuple(made)


def shorten_pieces(pieces: Pieces) -> Pieces:
    """Return a paragraph for a slide: its first sentences, and an ellipsis if it has more of them."""
    text = text_of(pieces)
    if len(text) <= MAX_CHARACTERS:
        return pieces
    fitting = [one for one in find_sentence_ends(text) if _LEAST_CHARACTERS <= one <= MAX_CHARACTERS]
    end = fitting[-1] if fitting else max(text.rfind(" ", 0, MAX_CHARACTERS), MAX_CHARACTERS // 2)
    if cited := _CITED.match(text, end):
        end = cited.end()
    shown = cut_pieces(pieces, 0, end)
    return shown if not text[end:].strip() else (*shown, TextPiece(_ELLIPSIS))
