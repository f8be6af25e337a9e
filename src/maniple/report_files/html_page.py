"""A report as one self-contained HTML file without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from jinja2 import Template, Undefined
from markupsafe import Markup

from maniple.reading.formula_syntax import FORMULA
from maniple.report_files.document import Document
from maniple.report_files.formulas import FormulaRenderer
from maniple.report_files.markdown import FIGURE, text_token, wrap_tokens
from maniple.report_files.table_layout import (
    LONG_WORD,
    SIZES,
    Cell,
    TablePart,
    break_word,
    lay_out_table,
    read_rows,
)
from maniple.run_page.markup import FIGURE_SCHEME, figure_element, figure_source
from maniple.run_page.page_assets import csp_hash, load_templates, read_style

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

_PACKAGE = __name__.rpartition(".")[0]
_TEXT = (
    "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li mark ol p pre s small span strong table "
    "tbody td th thead tr ul wbr"
)
_FORMULAS = (
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt "
    "mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none"
)
_OF_FORMULAS = (
    "accent columnalign columnlines display displaystyle fence form linethickness mathvariant maxsize "
    "minsize movablelimits rowlines scriptlevel stretchy width"
)
_TAGS = {*_TEXT.split(), *_FORMULAS.split()}
_LENGTHS = ("linethickness", "maxsize", "minsize", "width")
_LENGTH = re.compile(r"0|-?\d?(?:\.\d{1,4})?em")
_ATTRIBUTES = {
    **{name: set(_OF_FORMULAS.split()) for name in _FORMULAS.split()},
    **{f"h{level}": {"id"} for level in range(1, 7)},
    "a": {"href", "class"},
    "div": {"class", "tabindex"},
    "img": {"alt", "src"},
    "li": {"id", "class"},
    "mark": {"title"},
    "ol": {"start"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}


def render_html_page(document: Document, *, printed: bool = False) -> str:
    """Return the document as HTML; `printed` is the version for a PDF. Blocks."""
    body = Markup(_body(document, printed=printed))
    return _template().render(document=document, body=body, policy=policy(), style=Markup(_style()))


def policy() -> str:
    """Return the page's content security policy. It allows only the page's style and embedded pictures."""
    return (
        f"default-src 'none'; style-src {csp_hash(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _body(document: Document, *, printed: bool) -> str:
    from markdown_it import MarkdownIt

    formulas = FormulaRenderer()

    def formula(_: RendererHTML, tokens: Sequence[Token], index: int, *__: Any) -> str:
        return formulas.render(tokens[index].content, display=bool(tokens[index].info))

    markdown = MarkdownIt("commonmark")
    markdown.add_render_rule(FORMULA, formula)
    markdown.add_render_rule(FIGURE, _figure)

    def bounded(tag: str, attribute: str, value: str) -> str | None:
        return (
            figure_source(value, document.figures)
            if (tag, attribute) == ("img", "src")
            else _bounded(attribute, value)
        )

    import nh3  # takes memory that a server without reports does not need

    return nh3.clean(
        markdown.renderer.render([*_lay_out_tables(document.body, printed=printed)], markdown.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=bounded,
        url_schemes={"http", "https", "mailto", FIGURE_SCHEME},
        link_rel="noopener noreferrer nofollow",
    )


def _figure(_: RendererHTML, tokens: Sequence[Token], index: int, *__: Any) -> str:
    token = tokens[index]
    caption = escape(token.content)
    image = figure_element(str(token.attrGet("src")), token.content)
    if token.info != "block":
        return image
    below = f'<span class="caption">{caption}</span>' if caption else ""
    return f'<span class="figure">{image}{below}</span>'


def _bounded(attribute: str, value: str) -> str | None:
    """Return an attribute's value, or None for a length in a formula that could exceed the page."""
    return None if attribute in _LENGTHS and not _LENGTH.fullmatch(value) else value


def _lay_out_tables(tokens: Sequence[Token], *, printed: bool) -> Iterator[Token]:
    """Yield the tokens with tables in elements that scroll horizontally, also with the keyboard.

    For a PDF, a table that is too wide is split into parts; elsewhere it stays whole.
    """
    begun = 0
    for index, token in enumerate(tokens):
        if token.type == "table_open":
            begun = index + 1
        elif token.type == "table_close":
            rows = read_rows(tokens[begun:index])
            parts = lay_out_table(rows)
            if len(parts) > 1 and not printed:
                whole = replace(parts[0], columns=range(max(map(len, rows))), size=SIZES[-1], is_turned=True)
                yield from _table(rows, whole, " crammed")
            else:
                for part in parts:
                    yield from _table(rows, part)
            begun = 0
        elif not begun:
            yield token


def _table(rows: Sequence[Sequence[Cell]], part: TablePart, crammed: str = "") -> Iterator[Token]:
    """Yield the tokens of a table or of a part of one."""
    turned = " turned" if part.is_turned else ""
    kind = f"wide size-{part.size * 10:.0f}{turned}{crammed}"
    made: list[Token] = []
    heads = [row for row in rows if row and row[0].is_head]
    others = [row for row in rows if not (row and row[0].is_head)]
    for name, tag, of_section in (("thead", "thead", heads), ("tbody", "tbody", others)):
        if of_section:
            made += wrap_tokens(name, tag, [one for row in of_section for one in _row(row, part)])
    yield from wrap_tokens("room", "div", wrap_tokens("table", "table", made), class_=kind, tabindex="0")


def _row(row: Sequence[Cell], part: TablePart) -> list[Token]:
    cells: list[Token] = []
    for column in part.columns:
        if column >= len(row):
            continue
        cell = row[column]
        kinds = [
            str(cell.opening.attrGet("class") or ""),
            "quantity" if cell.is_quantity else "",
            "long" if column in part.broken else "",
        ]
        kind = " ".join(filter(None, kinds))
        tag = "th" if cell.is_head else "td"
        words = cell.words.copy(children=[*_breakable(cell.words.children or [])])
        cells += wrap_tokens(tag, tag, [words], **({"class_": kind} if kind else {}))
    return wrap_tokens("tr", "tr", cells)


def _breakable(children: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of a cell with places at which a line may end in long addresses and paths."""
    for one in children:
        if one.type != "text" or len(one.content) <= LONG_WORD:
            yield one
            continue
        from markdown_it.token import Token

        pieces = [piece for word in _WORDS.split(one.content) for piece in break_word(word)]
        for number, piece in enumerate(pieces):
            if number and not (piece.isspace() or pieces[number - 1].isspace()):
                yield Token("wbr", "wbr", 0)
            yield text_token(piece)


_WORDS = re.compile(r"(\s+)")


def _style() -> str:
    return read_style(_PACKAGE, "document.css")


@cache
def _template() -> Template:
    return load_templates(_PACKAGE, Undefined).get_template("document.html")
