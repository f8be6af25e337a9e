"""A report's Markdown as safe tokens: they load and run nothing, and link only to the web and to mail."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from maniple.document.bounds import enable_tables, is_readable
from maniple.document.syntax import keep_footnotes
from maniple.reading.formula_syntax import enable_formulas
from maniple.reading.pictures import figure_path

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_SCHEMES = ("http://", "https://", "mailto:")
_SIDE = re.compile(r"text-align:(center|right)")


FIGURE = "figure"
"""The type of a token that shows a figure. `content` is its caption, the attribute `src` its path, and
`info` is `block` for a figure that is a paragraph of its own."""


@dataclass(frozen=True, slots=True)
class FigureNames:
    """The paths of the available figures. `missing` is the format of the text for a path that is missing."""

    paths: Collection[str] = ()
    missing: str = "{}"

    def describe_missing(self, caption: str, path: str) -> str:
        """Return the text that replaces a missing figure."""
        return f"{caption} ({self.missing.format(path)})" if path else caption


def parse_markdown(
    markdown: str, labels: Collection[str] = (), figures: FigureNames | None = None
) -> list[Token]:
    """Return the tokens of a report. One that exceeds `bounds.is_readable` is one block of code.

    Images of `figures` are tokens of the type `FIGURE`; other images become links or text. Links to anything
    but the web and mail become text, followed by the path of the file that they name. `labels` in brackets
    are never references, even if the report defines them. Blocks for up to some seconds.
    """
    from markdown_it.token import Token

    if not is_readable(markdown):
        return [Token("code_block", "code", 0, content=markdown, block=True)]
    return _parser().parse(markdown, {"labels": labels, "figures": figures or FigureNames()})


def plain_text(children: list[Token] | None) -> str:
    """Return the text of an inline token's children, without formatting."""
    return "".join(" " if one.type.endswith("break") else one.content for one in children or ())


def text_token(content: str) -> Token:
    """Return a text as a token."""
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)


def wrap_tokens(name: str, tag: str, inner: list[Token], **attrs: str) -> list[Token]:
    """Return `inner` between the opening and closing token of an element; `class_` sets `class`."""
    from markdown_it.token import Token

    given: dict[str, Any] = {key.rstrip("_"): value for key, value in attrs.items()}
    return [Token(f"{name}_open", tag, 1, attrs=given), *inner, Token(f"{name}_close", tag, -1)]


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    parser.use(enable_tables).use(enable_formulas).use(keep_footnotes)
    parser.core.ruler.after("block", "labels", _forget_labels)
    parser.core.ruler.push("sanitize", _sanitize)
    return parser


def _forget_labels(state: StateCore) -> None:
    for label in state.env["labels"]:
        state.env.get("references", {}).pop(label.upper(), None)


def _sanitize(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("th_open", "td_open"):
            side = _SIDE.fullmatch(str(token.attrGet("style") or ""))
            token.attrs = {"class": side[1]} if side else {}
        elif token.type == "inline":
            token.children = list(_sanitize_inline(token.children or [], state.env["figures"]))
    state.tokens = list(_with_figures_apart(state.tokens))
    for opening, content in pairwise(state.tokens):
        children = content.children or []
        if opening.type == "paragraph_open" and _is_figure(children):
            children[0].info = "block"


def _with_figures_apart(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens; a figure that is alone on a line of a paragraph has a paragraph of its own."""
    for index, token in enumerate(tokens):
        if token.type != "inline" or tokens[index - 1].type != "paragraph_open":
            yield token
            continue
        opening, closing = tokens[index - 1], tokens[index + 1]
        for number, children in enumerate(_split_at_figures(token.children or [])):
            if number:
                yield from (closing.copy(), opening.copy())
            yield token.copy(children=children)


def _split_at_figures(children: list[Token]) -> list[list[Token]]:
    """Split the children of a paragraph so that each figure alone on its line is a part of its own."""
    lines: list[list[Token]] = [[]]
    breaks: list[Token] = []
    depth = 0
    for one in children:
        depth += one.nesting
        if one.type.endswith("break") and depth == 0:
            breaks.append(one)
            lines.append([])
        else:
            lines[-1].append(one)
    parts: list[list[Token]] = []
    for number, line in enumerate(lines):
        shown = [one for one in line if one.type != "text" or one.content.strip()]
        if _is_figure(shown):
            parts.append(shown)
        elif parts and not _is_figure(parts[-1]):
            parts[-1] += [breaks[number - 1], *line]
        else:
            parts.append(line)
    return parts


def _is_figure(children: list[Token]) -> bool:
    return [one.type for one in children] == [FIGURE]


def _sanitize_inline(children: list[Token], figures: FigureNames) -> Iterator[Token]:
    in_link, named, text = False, "", ""
    for token in children:
        if token.type == "link_open":
            href = str(token.attrGet("href") or "")
            in_link = _is_link_target(href)
            named, text = ("", "") if in_link else (figure_path(href), "")
            if in_link:
                token.attrs = {"href": href}
                yield token
        elif token.type == "link_close":
            if in_link:
                yield token
            elif named and named not in text:
                yield text_token(f" ({named})")
            in_link = False
        elif token.type == "image":
            yield from _replace_image(token, figures, in_link=in_link)
        else:
            text += token.content
            yield token


def _replace_image(image: Token, figures: FigureNames, *, in_link: bool) -> list[Token]:
    from markdown_it.token import Token

    href = str(image.attrGet("src") or "")
    path, caption = figure_path(href), plain_text(image.children)
    if path in figures.paths:
        return [Token(FIGURE, "img", 0, content=caption, attrs={"src": path})]
    words = [text_token(caption or href)]
    if _is_link_target(href):
        return words if in_link else wrap_tokens("link", "a", words, href=href)
    return [text_token(figures.describe_missing(caption, path))] if path else words


def _is_link_target(href: str) -> bool:
    return href.casefold().startswith(_SCHEMES)
