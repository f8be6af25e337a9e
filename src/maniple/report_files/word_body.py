"""The body of a Word document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it.token import Token

from maniple.evidence.check import MARK
from maniple.report_files.document import Document, Heading
from maniple.report_files.markdown import FIGURE, around, text
from maniple.report_files.word_lists import Lists, entry, further, item
from maniple.report_files.word_runs import Runs, bookmarked, place
from maniple.report_files.word_tables import table
from maniple.report_files.word_xml import element, field, paragraph, preserved, run
from maniple.run_page.pictures import Figure


@dataclass(slots=True)
class _Open:
    """A list that is open: its number, and its item that has no paragraph yet."""

    number: int
    is_ordered: bool
    item: Token | None = None


class Body:
    """Makes the paragraphs and tables of one document."""

    def __init__(self, part: Any, figures: Mapping[str, Figure]) -> None:
        self._runs = Runs(part, figures)
        self._lists = Lists(part.numbering_part.element)
        self._open: list[_Open] = []
        self._quotes = 0
        self._places = 0

    def of(self, document: Document) -> Iterator[Any]:
        """Yield what stands in the document, in order."""
        yield paragraph(run(preserved("t", document.title)), style="Title")
        for note in _notes(document):
            yield paragraph(*self._runs.of(note), style="About")
        if document.contents:
            yield paragraph(run(preserved("t", document.wording.contents)), style="TOCHeading")
            yield from _contents(document.contents)
        yield from self._blocks(document.body)

    def _blocks(self, tokens: Sequence[Token]) -> Iterator[Any]:
        begun = 0
        for index, token in enumerate(tokens):
            match token.type:
                case "heading_open":
                    yield self._paragraph(token, tokens[index + 1], f"Heading{token.tag[1:]}")
                case "paragraph_open":
                    yield self._paragraph(token, tokens[index + 1], "Quote" if self._quotes else "")
                    yield from _caption(tokens[index + 1])
                case "fence" | "code_block":
                    yield self._code(token.content)
                case "hr":
                    yield _rule()
                case "table_open":
                    begun = index
                case "table_close":
                    yield from table(tokens[begun:index], self._runs)
                case _:
                    self._enter(token)

    def _enter(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._open.append(_Open(self._lists.bullets, is_ordered=False))
            case "ordered_list_open":
                number = self._lists.numbered(len(self._open), int(token.attrGet("start") or 1))
                self._open.append(_Open(number, is_ordered=True))
            case "bullet_list_close" | "ordered_list_close":
                self._open.pop()
            case "list_item_open":
                self._open[-1].item = token
            case "blockquote_open" | "blockquote_close":
                self._quotes += token.nesting

    def _paragraph(self, opening: Token, words: Token, style: str) -> Any:
        runs = self._runs.of(words.children)
        begun, list_style, properties = self._place_in_list()
        for one in (opening, begun):
            if one is not None and (id_ := one.attrGet("id")):
                self._places += 1
                runs = bookmarked(self._places, str(id_), runs)
        return paragraph(*runs, style=style or list_style, properties=properties)

    def _place_in_list(self) -> tuple[Token | None, str, tuple[Any, ...]]:
        """Return the item that begins with the next paragraph, if one does, and its style and place."""
        if not self._open:
            return None, "", ()
        inner, level = self._open[-1], len(self._open) - 1
        begun, inner.item = inner.item, None
        if begun is None:
            return None, "ListContinue", further(level)
        if begun.attrGet("id"):
            return begun, "ListContinue", entry(level)
        return begun, "ListNumber" if inner.is_ordered else "ListBullet", item(inner.number, level)

    def _code(self, content: str) -> Any:
        _, _, properties = self._place_in_list()
        parts: list[Any] = []
        for line in content.rstrip("\n").replace("\t", "    ").split("\n"):
            parts += [element("br"), preserved("t", line)] if parts else [preserved("t", line)]
        return paragraph(run(*parts), style="Code", properties=properties)


def _notes(document: Document) -> Iterator[list[Token]]:
    if document.date:
        yield [text(document.date)]
    if document.is_partial:
        yield [text(document.wording.partial)]
    if document.marks:
        yield [*around("mark", "mark", [text(MARK)]), text(f" {document.wording.unverified}")]


def _contents(headings: Sequence[Heading]) -> Iterator[Any]:
    """Yield the entries as what a table of contents shows, which Word makes anew with page numbers."""
    opening, closing = field(r"TOC \o 1-3 \h \z \u")
    for index, heading in enumerate(headings):
        link = element("hyperlink", run(preserved("t", heading.words)), anchor=place(heading.id), history=1)
        before = opening if index == 0 else []
        after = closing if index == len(headings) - 1 else []
        yield paragraph(*before, link, *after, style=f"toc{heading.level}")


def _caption(words: Token) -> Iterator[Any]:
    """Yield the caption below a figure that is a paragraph of its own."""
    for one in words.children or ():
        if one.type == FIGURE and one.info == "block" and one.content:
            yield paragraph(run(preserved("t", one.content)), style="Caption")


def _rule() -> Any:
    line = element("bottom", val="single", sz=6, space=1, color="D1D9E0")
    return paragraph(properties=(element("pBdr", line),))
