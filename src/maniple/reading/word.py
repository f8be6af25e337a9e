"""The reader of Word documents.

Mammoth converts a document to HTML. What it does not know is prepared before that: equations become TeX,
moved and inserted text becomes plain text, and pictures become their descriptions.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.containers import open_archive, read_part
from maniple.reading.grids import expand_spans, restore_pipes
from maniple.reading.html import read_fragment
from maniple.reading.omml import to_tex
from maniple.reading.xml_parts import find_child, local_attribute, local_name, parse_xml, text_of
from maniple.text import counted, shorten

if TYPE_CHECKING:
    from maniple.reading.xml_parts import Element

_NAME = "a Word document"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TEXT_PARTS = re.compile(r"word/(?:document|footnotes|endnotes|comments)\d*\.xml")
_MARGIN_PARTS = re.compile(r"word/(header|footer)\d*\.xml")
_UNWRAPPED = frozenset({"ins", "moveTo", "smartTag", "customXml", "fldSimple"})
_DROPPED = frozenset({"del", "moveFrom", "checkbox"})
_DELETED = frozenset({"del", "moveFrom"})
_INSERTED = frozenset({"ins", "moveTo"})
_PICTURES = frozenset({"pic", "imagedata"})
_STYLES = "comment-reference => sup"
_MAX_MARGINS = 6
_MARGIN_CHARACTERS = 300
_DESCRIPTION_CHARACTERS = 300


@dataclass(slots=True)
class _Preparation:
    """What is counted while the parts of a document are prepared."""

    insertions: int = 0
    deletions: int = 0
    pictures: int = 0
    margins: dict[str, str] = field(default_factory=dict[str, str])
    """The texts of headers and footers, with what each is."""

    @property
    def note(self) -> str:
        """What of the document is read otherwise, or not at all."""
        changes = [counted(self.insertions, "insertion")] if self.insertions else []
        changes += [f"{counted(self.deletions, 'deletion')} left out"] if self.deletions else []
        parts = [f"Its tracked changes are read as accepted: {', '.join(changes)}."] if changes else []
        if self.pictures:
            parts.append(f"{counted(self.pictures, 'picture')} in it cannot be seen here.")
        return " ".join(parts)


def read_docx(body: bytes, url: str) -> MarkdownDocument:
    """Return a Word document as Markdown: headings, lists, tables, links, equations, notes and comments.

    Tracked insertions are part of the text, deletions are not; merged cells have their text in each cell.

    Raises:
        UnreadableDocument: it is damaged, or too large when unpacked.
    """
    import mammoth

    try:
        prepared, about, title = _prepare(body)
        pictures = mammoth.images.img_element(lambda _: {})
        html = mammoth.convert_to_html(
            prepared, convert_image=pictures, external_file_access=False, style_map=_STYLES
        ).value
    except (zipfile.BadZipFile, ExpatError, KeyError, ValueError, AttributeError, OSError) as error:
        raise UnreadableDocument("is a damaged Word document") from error
    document = read_fragment(expand_spans(html) + _margins_html(about.margins), title, url)
    markdown = restore_pipes(document.markdown)
    return replace(document, markdown=markdown, note=" ".join(filter(None, (document.note, about.note))))


def _prepare(body: bytes) -> tuple[io.BytesIO, _Preparation, str]:
    """Return the document as mammoth can read it, what was counted, and its title."""
    about, target = _Preparation(), io.BytesIO()
    with open_archive(body, _NAME) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as prepared:
        for name in dict.fromkeys(source.namelist()):
            if _TEXT_PARTS.fullmatch(name):
                prepared.writestr(name, _prepare_part(read_part(source, name), about))
            elif match := _MARGIN_PARTS.fullmatch(name):
                _add_margin(about, match[1], read_part(source, name))
            elif not name.startswith(("word/media/", "word/fonts/", "word/embeddings/")):
                prepared.writestr(name, read_part(source, name))
        title = _title_of(read_part(source, "docProps/core.xml"))
    target.seek(0)
    return target, about, title


def _title_of(properties: bytes) -> str:
    found = find_child(parse_xml(properties), "title") if properties else None
    return "" if found is None else text_of(found)


def _add_margin(about: _Preparation, kind: str, part: bytes) -> None:
    root = parse_xml(part)
    _change_part(root, _Preparation())
    paragraphs = (text_of(one) for one in root.iter(f"{{{_WORD}}}p"))
    text = shorten(" ".join(filter(None, paragraphs)), _MARGIN_CHARACTERS)
    if text and len(about.margins) < _MAX_MARGINS:
        about.margins.setdefault(text, kind)


def _margins_html(margins: Mapping[str, str]) -> str:
    return "".join(f"<p>[{kind} of the pages: {escape(text)}]</p>" for text, kind in margins.items())


def _prepare_part(part: bytes, about: _Preparation) -> bytes:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    root = parse_xml(part)
    _change_part(root, about)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _change_part(root: "Element", about: _Preparation) -> None:
    for element in list(root.iter()):
        name, parent = local_name(element), element.getparent()
        if parent is None:
            continue
        # A mark in properties says that the paragraph or row itself was inserted or deleted.
        is_mark = local_name(parent) in ("rPr", "trPr", "numPr")
        about.insertions += name in _INSERTED and not is_mark
        about.deletions += name in _DELETED and not is_mark
        if name in _DROPPED and not is_mark:
            parent.remove(element)
        elif name in _UNWRAPPED and not is_mark:
            _unwrap(element, parent)
        elif name in ("oMathPara", "oMath"):
            _replace_equation(element, parent)
        elif name in ("drawing", "pict"):
            _describe_pictures(element, parent, about)


def _unwrap(element: "Element", parent: "Element") -> None:
    at = parent.index(element)
    parent[at : at + 1] = [one for one in element if local_name(one) not in ("smartTagPr", "customXmlPr")]


def _replace_equation(element: "Element", parent: "Element") -> None:
    if any(local_name(one) in ("oMathPara", "oMath") for one in element.iterancestors()):
        return
    is_display = local_name(element) == "oMathPara"
    equations = [one for one in element if local_name(one) == "oMath"] if is_display else [element]
    tex = " ".join(filter(None, map(to_tex, equations)))
    mark = "$$" if is_display else "$"
    run = _run_of(parent, f"{mark}{tex}{mark}" if tex else "")
    if local_name(parent) in ("body", "tc", "txbxContent"):  # a run stands in a paragraph only
        paragraph = parent.makeelement(f"{{{_WORD}}}p")
        paragraph.append(run)
        run = paragraph
    parent.replace(element, run)


def _run_of(parent: "Element", text: str) -> "Element":
    run = parent.makeelement(f"{{{_WORD}}}r")
    content = parent.makeelement(f"{{{_WORD}}}t")
    content.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    content.text = text
    run.append(content)
    return run


def _describe_pictures(element: "Element", parent: "Element", about: _Preparation) -> None:
    """Replace a picture by its description; a text box stays."""
    names = {local_name(one) for one in element.iter()}
    if names.isdisjoint(_PICTURES) or "txbxContent" in names:
        return
    # Of two versions of a picture, the second one is for older programs.
    about.pictures += all(local_name(one) != "Fallback" for one in element.iterancestors())
    text = shorten(next(_descriptions(element), ""), _DESCRIPTION_CHARACTERS)
    shown = _run_of(parent, f"[picture: {text}]" if text else "[picture]").find(f"{{{_WORD}}}t")
    assert shown is not None, "a run has its text"
    parent.replace(element, shown)


def _descriptions(element: "Element") -> Iterator[str]:
    for one in element.iter():
        for name in ("descr", "alt"):
            if text := local_attribute(one, name).strip():
                yield text
