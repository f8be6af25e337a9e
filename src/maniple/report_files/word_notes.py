"""The part of a Word document that has its footnotes (ISO/IEC 29500-1, 17.11)."""

from typing import Any

from maniple.document import nodes
from maniple.report_document.layout import ReportDocument
from maniple.report_document.report_nodes import FootnoteListNode
from maniple.report_files.word_runs import element, paragraph, run

_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
NOTE_STYLE, _REFERENCE = "footnotetext", "footnotereference"
"""The ids that the library gives the styles of these names with a space."""
_SEPARATORS = {-1: "separator", 0: "continuationSeparator"}


def find_word_notes(document: ReportDocument) -> frozenset[str]:
    """Return the labels, in lower case, of the footnotes that can be Word's own.

    Word shows a footnote on the page of its reference, which must be in the text: a note without one, or
    with references in other notes only, is not among them.
    """
    text = (one for one in document.body if not isinstance(one, FootnoteListNode))
    every = (node for one in text for node in nodes.iterate_nodes(one))
    return frozenset(one.label.casefold() for one in every if isinstance(one, nodes.FootnoteReferenceNode))


def add_notes_part(word: Any) -> Any:
    """Add the part for footnotes to a document and return it; its element is `w:footnotes`."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.packuri import PackURI
    from docx.oxml import parse_xml
    from docx.parts.story import StoryPart
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    separators = [
        element("footnote", paragraph(run(element(kind))), id=id_, type=kind)
        for id_, kind in _SEPARATORS.items()
    ]
    root = parse_xml(etree.tostring(element("footnotes", *separators)))
    part = StoryPart(PackURI("/word/footnotes.xml"), _TYPE, root, word.part.package)
    word.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    properties = element("footnotePr", *(element("footnote", id=id_) for id_ in _SEPARATORS))
    settings = word.settings.element
    compat = settings.find(element("compat").tag)
    settings.append(properties) if compat is None else compat.addprevious(properties)
    return part


def note_reference(number: int) -> Any:
    """Return the run in the text that refers to a footnote."""
    return run(element("footnoteReference", id=number), properties=(element("rStyle", val=_REFERENCE),))


def add_note(part: Any, number: int, content: list[Any]) -> None:
    """Add a footnote with its paragraphs and tables, of which the first one gets the number."""
    mark = run(element("footnoteRef"), properties=(element("rStyle", val=_REFERENCE),))
    if not content or content[0].tag != element("p").tag:
        content = [paragraph(style=NOTE_STYLE), *content]
    content[0][1:1] = [mark]
    part._element.append(element("footnote", *content, id=number))
