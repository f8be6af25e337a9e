"""Sanitises the Markdown of reports, which models write after reading untrusted pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from maniple.document import nodes, parse_document
from maniple.document.bounds import enable_tables, is_readable, is_table_code
from maniple.document.syntax import keep_footnotes
from maniple.reading.pictures import FIGURE, figure_path

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^|]+?(?<!`)\1(?!`)")
_ADDRESS = r"(?:https?|mailto|folder):[^\s<>]*>"
_TAG = re.compile(rf"<(?!{_ADDRESS})(?=[A-Za-z/!?])")
_TAG_BUT_BREAK = re.compile(rf"<(?!{_ADDRESS}|br[ \t]*/?>)(?=[A-Za-z/!?])", re.IGNORECASE)
_BREAKS = re.compile(r"(?:\s|<br[ \t]*/?>)*", re.IGNORECASE)
_IMAGE = re.compile(r"(?<!!)!++(?=\[)")

FigureText = Callable[[str, str], str]
"""Returns the Markdown for a figure, given its caption (Markdown) and its workspace path, which may be ""."""


def image_targets(markdown: str) -> list[str]:
    """Return the targets of the images in a report. Blocks for up to some seconds."""
    return [one.target for one in _nodes(markdown, "![") if isinstance(one, nodes.FigureNode)]


def link_targets(markdown: str) -> list[str]:
    """Return the targets of the links in a report. Blocks for up to some seconds."""
    return [one.target for one in _nodes(markdown, "[") if isinstance(one, nodes.LinkNode)]


def _nodes(markdown: str, beginning: str) -> Iterator[nodes.DocumentNode]:
    """Yield the nodes of a report in which such an element can be: `beginning` is how it begins."""
    if beginning in markdown and is_readable(markdown):
        yield from nodes.iterate_nodes(parse_document(markdown))


def sanitize_markdown(
    markdown: str, figure: FigureText = lambda caption, _: caption, allowed: Collection[str] = ()
) -> str:
    """Return a report as Markdown whose images are links and whose HTML is escaped, except for line breaks.

    Code is unchanged, and all other text is as it is written, with the form that its author gave it.

    An image whose target is not a URL is replaced by the result of `figure`, which may contain images with
    the targets `allowed`. Inline code that another parser may read as text is escaped, too, and so is a whole
    report that exceeds `bounds.is_readable`. Blocks for up to some seconds.
    """
    if not is_readable(markdown):
        return _plain(markdown)

    for plain in _with_breaks, _plain:
        escaped = partial(_escaped, figure=figure, plain=plain)
        with_code = _map_lines(markdown, partial(_escape_outside_code, escaped=escaped))
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


def _with_breaks(line: str) -> str:
    return _TAG_BUT_BREAK.sub("&lt;", _IMAGE.sub("", line))


def _escaped(line: str, figure: FigureText, plain: Callable[[str], str]) -> str:
    done, end = [], 0
    for found in FIGURE.finditer(line):
        shown = figure(plain(found["caption"]), figure_path(found["target"]))
        done += [plain(line[end : found.start()]), shown]
        end = found.end()
    return "".join([*done, plain(line[end:])])


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
        or (one.type in ("html_inline", "html_block") and not _BREAKS.fullmatch(one.content))
        or is_table_code(one)
        for one in every
    )


def _parser(*, html: bool = False) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return (
        MarkdownIt("commonmark", {"html": html})
        .enable("strikethrough")
        .use(enable_tables)
        .use(keep_footnotes)
    )
