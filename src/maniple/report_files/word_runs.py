"""Text runs of the paragraphs of a Word document, and the WordprocessingML elements that they consist of.

The order of properties follows the schema (ISO/IEC 29500-1, 17).
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from maniple.document import nodes
from maniple.report_document.formulas import FormulaRenderer
from maniple.report_document.report_nodes import describe_figure, shown_text, split_citation
from maniple.report_files.office_files import is_office_address, office_picture
from maniple.report_files.word_formulas import write_formula
from maniple.run_files.pictures import Figure

_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONSHIP = f"{{{_OFFICE}}}id"
_PREFIXES = {"w": _MAIN, "r": _OFFICE}
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def element(name: str, /, *inner: Any, **attributes: str | int) -> Any:
    """Return the element `w:name` with `inner` elements; the attribute `r_id` is `r:id`, others are `w:`."""
    # python-docx's own elements take ten times as long to create, and a table has many.
    made = etree.Element(_name(name), nsmap=_PREFIXES)
    for key, value in attributes.items():
        made.set(_RELATIONSHIP if key == "r_id" else _name(key), str(value))
    for one in inner:
        made.append(one)
    return made


def text_element(name: str, text: str) -> Any:
    """Return `w:t` or another element of text, with its white space preserved."""
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
    """Return the runs before and after the cached result of a field (17.16), which Word updates."""
    begin, separate, end = (run(element("fldChar", fldCharType=kind)) for kind in _FIELD)
    return [begin, run(text_element("instrText", code)), separate], [end]


_FIELD = ("begin", "separate", "end")


@cache
def _name(local: str) -> str:
    return f"{{{_MAIN}}}{local}"


Formats = frozenset[str]
NO_FORMATS: Formats = frozenset()
BOLD, DIM = "b", "dim"
_CODE, _LINK, _MARK, _MATH, _RAISED = "code", "link", "mark", "math", "raised"
_TOGGLES = {nodes.StrongNode: BOLD, nodes.EmphasisNode: "i", nodes.StrikeNode: "strike"}
_MAX_LINKS = 1_000
_EMU = 9_525
"""English Metric Units of a pixel, at 96 pixels an inch."""
_PICTURE_WIDTH, _PICTURE_HEIGHT = 620, 454
"""The largest size of a figure, in pixels. It fits within the margins, and leaves room for text about it."""


@dataclass(frozen=True, slots=True)
class LinkTargets:
    """What the text may link to within the document.

    `sources` are numbers of sources; `notes` are the numbers of footnotes, by label.
    """

    sources: Collection[int]
    notes: Mapping[str, int]


class Runs:
    """Creates the runs of one part of a document, and its relationships to the targets of links.

    `refer` returns the elements of the first reference to a footnote of Word's own, by its number; otherwise
    nothing.
    """

    def __init__(
        self,
        part: Any,
        figures: Mapping[str, Figure],
        targets: LinkTargets,
        refer: Callable[[int], Sequence[Any]] = lambda _: (),
    ) -> None:
        self._refer = refer
        self._part = part
        self._figures = figures
        self._targets = targets
        self._addresses: dict[str, str] = {}
        self._formulas = FormulaRenderer()

    def of(self, children: Sequence[nodes.InlineNode], formats: Formats = NO_FORMATS) -> list[Any]:
        """Return inline nodes as runs and links."""
        return [made for one in children for made in self._inline(one, formats)]

    def _inline(self, one: nodes.InlineNode, formats: Formats) -> Iterator[Any]:
        match one:
            case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
                yield from self.of(one.children, formats | {_TOGGLES[type(one)]})
            case nodes.LinkNode(target=target, children=children):
                link = self._link(target)
                runs = self.of(children, formats | {_LINK} if link is not None else formats)
                yield from runs if link is None else [_filled(link, runs)]
            case nodes.CitationNode():
                yield from self._citation(one, formats)
            case nodes.FootnoteReferenceNode(label=label):
                yield from self._reference(label, formats)
            case nodes.MathNode():
                yield self.formula(one, formats)
            case nodes.FigureNode():
                picture = self.picture(one)
                yield text_run(shown_text(one.children), formats) if picture is None else picture
            case _:
                yield _leaf(one, formats)

    def _citation(self, citation: nodes.CitationNode, formats: Formats) -> Iterator[Any]:
        linked = () if _LINK in formats else self._targets.sources
        for piece in split_citation(citation, linked):
            if piece.number is not None:
                link = internal_link(f"source-{piece.number}")
                yield _filled(link, [text_run(piece.text, formats | {_LINK})])
            elif piece.text:
                yield text_run(piece.text, formats)

    def _reference(self, label: str, formats: Formats) -> Sequence[Any]:
        number = self._targets.notes.get(label.casefold())
        if number is None:
            return [text_run(f"[^{label}]", formats)]
        if made := self._refer(number):
            return made
        raised = text_run(str(number), formats | {_LINK, _RAISED})
        return [raised if _LINK in formats else _filled(internal_link(f"footnote-{number}"), [raised])]

    def formula(self, node: nodes.MathNode, formats: Formats = NO_FORMATS, *, alone: bool = False) -> Any:
        """Return a formula as Office Math; one that cannot be converted is its TeX. `alone` centres it."""
        math = self._formulas.convert(node.tex, display=node.is_display)
        made = None if math is None else write_formula(math, display=alone)
        return text_run(node.tex, formats | {_MATH, "i"}) if made is None else made

    def picture(self, node: nodes.FigureNode) -> Any:
        """Return a run that shows a figure; None for a figure that Word cannot show."""
        figure = self._figures[node.target]
        scale = min(1, _PICTURE_WIDTH / figure.info.width, _PICTURE_HEIGHT / figure.info.height)
        width, height = (max(round(one * scale) * _EMU, 1) for one in (figure.info.width, figure.info.height))
        try:
            inline = self._part.new_pic_inline(io.BytesIO(office_picture(figure)), width, height)
        except Exception:  # noqa: BLE001 - of a damaged picture, the libraries raise various errors
            return None
        inline.docPr.set("descr", describe_figure(node))
        return run(element("drawing", inline))

    def _link(self, href: str) -> Any:
        if href not in self._addresses:
            if len(self._addresses) >= _MAX_LINKS or not is_office_address(href):
                return None
            from docx.opc.constants import RELATIONSHIP_TYPE

            self._addresses[href] = self._part.relate_to(href, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        return element("hyperlink", r_id=self._addresses[href], history=1)


def bookmark_name(id_: str) -> str:
    """Return the name of the bookmark for the element `id_`."""
    return id_.replace("-", "_")


def add_bookmark(number: int, id_: str, runs: Sequence[Any]) -> list[Any]:
    """Return `runs` inside of the bookmark for `id_`; `number` is unique in the document."""
    start = element("bookmarkStart", id=number, name=bookmark_name(id_))
    return [start, *runs, element("bookmarkEnd", id=number)]


def _leaf(one: nodes.InlineNode, formats: Formats) -> Any:
    match one:
        case nodes.MarkNode(text=text):
            return text_run(text, formats | {_MARK})
        case nodes.CodeNode(text=text):
            return text_run(text, formats | {_CODE})
        case nodes.LineBreakNode(is_hard=True):
            return run(element("br"))
        case _:
            return text_run(shown_text((one,)), formats)


def internal_link(id_: str) -> Any:
    """Return a link, still without text, to the element `id_` of the document."""
    return element("hyperlink", anchor=bookmark_name(id_), history=1)


def _filled(link: Any, runs: Sequence[Any]) -> Any:
    link.extend(runs)
    return link


def text_run(text: str, formats: Formats = NO_FORMATS) -> Any:
    """Return a text as a run."""
    properties: list[Any] = []
    if _CODE in formats:
        properties.append(element("rStyle", val="InlineCode"))
    elif _LINK in formats:
        properties.append(element("rStyle", val="Hyperlink"))
    if _MATH in formats:
        properties.append(element("rFonts", ascii="Cambria Math", hAnsi="Cambria Math"))
    properties += [element(tag) for tag in _TOGGLES.values() if tag in formats]
    if DIM in formats:
        properties.append(element("color", val="59636E"))
    if _MARK in formats:
        properties.append(element("highlight", val="yellow"))
    if _RAISED in formats:
        properties.append(element("vertAlign", val="superscript"))
    return run(text_element("t", text.replace("\n", " ")), properties=tuple(properties))
