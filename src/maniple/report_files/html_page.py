"""A report as one self-contained HTML file without scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from jinja2 import Template, Undefined
from markupsafe import Markup

from maniple.reading.formula_syntax import FORMULA
from maniple.report_files.document import Document
from maniple.report_files.formulas import FormulaRenderer
from maniple.report_files.markdown import FIGURE, plain_text, wrap_tokens
from maniple.run_page.markup import FIGURE_SCHEME, figure_element, figure_source
from maniple.run_page.page_assets import csp_hash, load_templates, read_style

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

_PACKAGE = __name__.rpartition(".")[0]
_TEXT = (
    "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li mark ol p pre s small span strong table "
    "tbody td th thead tr ul"
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


def render_html_page(document: Document) -> str:
    """Return the document as HTML. Blocks."""
    return _template().render(
        document=document, body=Markup(_body(document)), policy=policy(), style=Markup(_style())
    )


def policy() -> str:
    """Return the page's content security policy. It allows only the page's style and embedded pictures."""
    return (
        f"default-src 'none'; style-src {csp_hash(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _body(document: Document) -> str:
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
        markdown.renderer.render(_lay_out_tables(document.body), markdown.options, {}),
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


# A number, its unit of at most two words, and a mark or a citation.
_QUANTITY = re.compile(r"[^\w\s]{0,3}\s?\d[\W\d]*+(?:[^\W\d]\S{0,9}\s?){0,2}[\W\d]{0,5}")
_MAX_QUANTITY_LENGTH = 24


def _lay_out_tables(tokens: Sequence[Token]) -> list[Token]:
    """Wrap tables in elements that scroll horizontally, and keep each number, unit or date on one line.

    The elements scroll with the keyboard, too.
    """
    shown: list[Token] = []
    opening, closing = wrap_tokens("room", "div", [], class_="wide", tabindex="0")
    for index, token in enumerate(tokens):
        if token.type == "td_open" and _is_quantity(tokens[index + 1]):
            token = token.copy(attrs={"class": f"{token.attrGet('class') or ''} quantity".strip()})
        shown += [opening, token] if token.type == "table_open" else [token]
        if token.type == "table_close":
            shown.append(closing)
    return shown


def _is_quantity(cell: Token) -> bool:
    text = plain_text(cell.children).strip()
    return len(text) <= _MAX_QUANTITY_LENGTH and _QUANTITY.fullmatch(text) is not None


def _style() -> str:
    return read_style(_PACKAGE, "document.css")


@cache
def _template() -> Template:
    return load_templates(_PACKAGE, Undefined).get_template("document.html")
