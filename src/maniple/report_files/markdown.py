"""A report's Markdown as tokens in which nothing loads, runs or leads anywhere but to the web and to mail."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from maniple.reading.pictures import figure_path
from maniple.report_files.formulas import with_formulas
from maniple.run_page.bounds import is_readable, with_tables

_SCHEMES = ("http://", "https://", "mailto:")
_SIDE = re.compile(r"text-align:(center|right)")


FIGURE = "figure"
"""The type of the token that shows a figure: `content` is its caption, the attribute `src` its path, and
`info` is `block` for one that is a paragraph of its own."""


@dataclass(frozen=True, slots=True)
class FigureNames:
    """The paths of the figures that there are, and what stands for one that is `missing`, with its path."""

    paths: Collection[str] = ()
    missing: str = "{}"

    def describe_missing(self, caption: str, path: str) -> str:
        """Return the text in the place of a figure that there is not."""
        return f"{caption} ({self.missing.format(path)})" if path else caption


def tokens_of(markdown: str, labels: Collection[str] = (), figures: FigureNames | None = None) -> list[Token]:
    """Return what a report consists of; one that is not readable (`bounds.is_readable`) is one block of code.

    Images of `figures` are tokens of the type `FIGURE`, others links or text. Links to anything but the web
    and mail are text, and `labels` in brackets are no references, whatever the report defines. Blocks: some
    seconds for the longest of reports.
    """
    if not is_readable(markdown):
        return [Token("code_block", "code", 0, content=markdown, block=True)]
    return _parser().parse(markdown, {"labels": labels, "figures": figures or FigureNames()})


def said(children: list[Token] | None) -> str:
    """Return the bare words of an inline token's children."""
    return "".join(" " if one.type.endswith("break") else one.content for one in children or ())


def text(content: str) -> Token:
    """Return words as a token."""
    return Token("text", "", 0, content=content)


def around(name: str, tag: str, inner: list[Token], **attrs: str) -> list[Token]:
    """Return `inner` within an element; `class_` stands for `class`."""
    given: dict[str, Any] = {key.rstrip("_"): value for key, value in attrs.items()}
    return [Token(f"{name}_open", tag, 1, attrs=given), *inner, Token(f"{name}_close", tag, -1)]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    parser.use(with_tables).use(with_formulas)
    parser.core.ruler.after("block", "labels", _forget_labels)
    parser.core.ruler.push("harmless", _make_harmless)
    return parser


def _forget_labels(state: StateCore) -> None:
    for label in state.env["labels"]:
        state.env.get("references", {}).pop(label.upper(), None)


def _make_harmless(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("th_open", "td_open"):
            side = _SIDE.fullmatch(str(token.attrGet("style") or ""))
            token.attrs = {"class": side[1]} if side else {}
        elif token.type == "inline":
            token.children = list(_harmless(token.children or [], state.env["figures"]))
    for opening, words in pairwise(state.tokens):
        children = words.children or []
        if opening.type == "paragraph_open" and [one.type for one in children] == [FIGURE]:
            children[0].info = "block"


def _harmless(children: list[Token], figures: FigureNames) -> Iterator[Token]:
    in_link = False
    for token in children:
        if token.type == "link_open":
            in_link = True
            href = str(token.attrGet("href") or "")
            token.attrs = {"href": href} if _is_followed(href) else {}
            yield token
        elif token.type == "image":
            yield from _shown(token, figures, in_link=in_link)
        else:
            in_link = in_link and token.type != "link_close"
            yield token


def _shown(image: Token, figures: FigureNames, *, in_link: bool) -> list[Token]:
    href = str(image.attrGet("src") or "")
    path, caption = figure_path(href), said(image.children)
    if path in figures.paths:
        return [Token(FIGURE, "img", 0, content=caption, attrs={"src": path})]
    words = [text(caption or href)]
    if _is_followed(href):
        return words if in_link else around("link", "a", words, href=href)
    return [text(figures.describe_missing(caption, path))] if path else words


def _is_followed(href: str) -> bool:
    return href.casefold().startswith(_SCHEMES)
