"""A report, which a model wrote after reading strangers' pages, made harmless for whoever shows it."""

import html
import re
from collections.abc import Callable, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from maniple.run_page.bounds import is_readable, is_table, with_tables

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^|]+?(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?!(?:https?|mailto):[^\s<>]*>)(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"(?<!!)!++(?=\[)")


def as_html(markdown: str) -> str:
    """Return Markdown as a piece of HTML without scripts and without anything that loads by itself.

    What is not readable (`bounds.is_readable`) is one block of code. Blocks.
    """
    if not is_readable(markdown):
        return f"<pre><code>{html.escape(markdown)}</code></pre>"
    return nh3.clean(
        _parser().render(markdown),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )


def harmless(markdown: str) -> str:
    """Return a report as Markdown whose images are links and whose HTML is text; code stays as it is.

    Where what looks like code within a line may be none, it is treated as text, too, and so is all of what is
    not readable (`bounds.is_readable`). Blocks: some seconds for the longest of reports.
    """
    if not is_readable(markdown):
        return _escaped(markdown)
    gentle = _changed(markdown, _escaped_beside_code)
    return gentle if _is_harmless(gentle) else _changed(markdown, _escaped)


def _changed(markdown: str, change: Callable[[str], str]) -> str:
    code = set[int]()
    for token in _parser().disable("inline").parse(markdown):
        if token.type in ("fence", "code_block") and token.map and not is_table(token):
            code.update(range(*token.map))
    lines = markdown.split("\n")
    return "\n".join(line if number in code else change(line) for number, line in enumerate(lines))


def _escaped(line: str) -> str:
    return _TAG.sub("&lt;", _IMAGE.sub("", line))


def _escaped_beside_code(line: str) -> str:
    done, end = [], 0
    for span in _CODE_SPAN.finditer(line):
        done += [_escaped(line[end : span.start()]), span.group()]
        end = span.end()
    return "".join([*done, _escaped(line[end:])])


def _is_harmless(markdown: str) -> bool:
    tokens = _parser(html=True).parse(markdown)
    every = (one for token in tokens for one in (token, *(token.children or ())))
    return not any(one.type in ("image", "html_inline", "html_block") or is_table(one) for one in every)


def _parser(*, html: bool = False) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": html}).enable("strikethrough").use(with_tables)
    parser.add_render_rule("image", _image_as_link)
    return parser


def _image_as_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """An image would tell its server, and whoever wrote its address, that the report is being read."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    words = renderer.renderInlineAsText(token.children, options, env) or source
    return f'<a href="{html.escape(source)}">{html.escape(words)}</a>'
