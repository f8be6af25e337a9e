"""Sanitises reports, which models write after reading untrusted pages, before they are shown."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from maniple.document.bounds import enable_tables, is_readable, is_table_code
from maniple.document.syntax import keep_footnotes
from maniple.reading.pictures import FIGURE, figure_path
from maniple.run_page.pictures import Figure

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol",
    "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "img": {"alt", "src"}, "ol": {"start"}}
FIGURE_SCHEME = "figure"
_SCHEMES = {"http", "https", "mailto", FIGURE_SCHEME}
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^|]+?(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?!(?:https?|mailto):[^\s<>]*>)(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"(?<!!)!++(?=\[)")

_MISSING = "figure missing: {}"
FigureText = Callable[[str, str], str]
"""Returns the Markdown for a figure, given its caption (Markdown) and its workspace path, which may be ""."""


def render_markdown(markdown: str, figures: Mapping[str, Figure] | None = None) -> str:
    """Return Markdown as an HTML fragment without scripts and without external resources.

    `figures` are the pictures to embed, by path. A text that exceeds `bounds.is_readable` becomes one code
    block. Blocks.
    """
    if not is_readable(markdown):
        return f"<pre><code>{html.escape(markdown)}</code></pre>"
    shown = figures or {}

    def source(tag: str, attribute: str, value: str) -> str | None:
        return figure_source(value, shown) if (tag, attribute) == ("img", "src") else value

    import nh3  # takes memory that a server without reports does not need

    return nh3.clean(
        _parser().render(markdown, {"figures": shown}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=source,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )


def figure_element(path: str, caption: str) -> str:
    """Return an `img` whose source `figure_source` resolves when the HTML is sanitised."""
    return f'<img src="{FIGURE_SCHEME}:{quote(path)}" alt="{html.escape(caption)}">'


def figure_source(address: str, figures: Mapping[str, Figure]) -> str | None:
    """Return the `data:` URL of the figure that an `img` names; None if there is no such figure."""
    scheme, _, path = address.partition(":")
    figure = figures.get(unquote(path)) if scheme == FIGURE_SCHEME else None
    return figure.data_url if figure else None


def image_targets(markdown: str) -> list[str]:
    """Return the targets of the images in a report. Blocks for up to some seconds."""
    return _targets(markdown, "image", "src") if "![" in markdown else []


def link_targets(markdown: str) -> list[str]:
    """Return the targets of the links in a report. Blocks for up to some seconds."""
    return _targets(markdown, "link_open", "href")


def _targets(markdown: str, kind: str, attribute: str) -> list[str]:
    if not is_readable(markdown):
        return []
    children = (one for token in _parser().parse(markdown) for one in token.children or ())
    return [str(one.attrGet(attribute) or "") for one in children if one.type == kind]


def sanitize_markdown(
    markdown: str, figure: FigureText = lambda caption, _: caption, allowed: Collection[str] = ()
) -> str:
    """Return a report as Markdown whose images are links and whose HTML is escaped; code is unchanged.

    An image whose target is not a URL is replaced by the result of `figure`, which may contain images with
    the targets `allowed`. Inline code that another parser may read as text is escaped, too, and so is a whole
    report that exceeds `bounds.is_readable`. Blocks for up to some seconds.
    """
    if not is_readable(markdown):
        return _plain(markdown)

    def escaped(line: str) -> str:
        return _escaped(line, figure)

    with_code = _map_lines(markdown, lambda line: _escape_outside_code(line, escaped))
    if _is_harmless(with_code, allowed):
        return with_code
    strict = _map_lines(markdown, escaped)
    return strict if _is_harmless(strict, allowed) else _map_lines(markdown, _plain)


def _map_lines(markdown: str, change: Callable[[str], str]) -> str:
    code = set[int]()
    for token in _parser().disable("inline").parse(markdown):
        if token.type in ("fence", "code_block") and token.map and not is_table_code(token):
            code.update(range(*token.map))
    lines = markdown.split("\n")
    return "\n".join(line if number in code else change(line) for number, line in enumerate(lines))


def _plain(line: str) -> str:
    return _TAG.sub("&lt;", _IMAGE.sub("", line))


def _escaped(line: str, figure: FigureText) -> str:
    done, end = [], 0
    for found in FIGURE.finditer(line):
        shown = figure(_plain(found["caption"]), figure_path(found["target"]))
        done += [_plain(line[end : found.start()]), shown]
        end = found.end()
    return "".join([*done, _plain(line[end:])])


def _escape_outside_code(line: str, escaped: Callable[[str], str]) -> str:
    done, end = [], 0
    for span in _CODE_SPAN.finditer(line):
        done += [escaped(line[end : span.start()]), span.group()]
        end = span.end()
    return "".join([*done, escaped(line[end:])])


def _is_harmless(markdown: str, allowed: Collection[str]) -> bool:
    tokens = _parser(html=True).parse(markdown)
    every = (one for token in tokens for one in (token, *(token.children or ())))
    return not any(
        (one.type == "image" and one.attrGet("src") not in allowed)
        or one.type in ("html_inline", "html_block")
        or is_table_code(one)
        for one in every
    )


def _parser(*, html: bool = False) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = (
        MarkdownIt("commonmark", {"html": html})
        .enable("strikethrough")
        .use(enable_tables)
        .use(keep_footnotes)
    )
    parser.add_render_rule("image", _image_as_link)
    return parser


def _image_as_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render an image as a link: loading it would reveal to its server that the report is being read."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    words = renderer.renderInlineAsText(token.children, options, env) or source
    if (path := figure_path(source)) in env.get("figures", ()):
        return figure_element(path, words)
    if path:
        return html.escape(f"{words} ({_MISSING.format(path)})")
    return f'<a href="{html.escape(source)}">{html.escape(words)}</a>'
