"""A report as a document of title, contents, text and sources, which each file format renders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.addresses import comparable_url
from maniple.evidence.check import MARK
from maniple.evidence.record import Source
from maniple.evidence.source_list import format_source_list, heading_for, language_of
from maniple.report_files.citations import annotate_citations, cited_numbers, keep_lines_together
from maniple.report_files.document_texts import DocumentTexts, texts_for
from maniple.report_files.markdown import FigureNames, parse_markdown, plain_text, text_token, wrap_tokens
from maniple.run_page.pictures import Figure
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from markdown_it.token import Token

LEAST_HEADINGS = 3
"""A document with fewer headings has no table of contents."""
_DEEPEST = 3
# Characters that are invalid in HTML or XML.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run. `ended_at` is Unix time in seconds; `is_partial` is set if the budget ran out.

    By workspace path, `figures` are the pictures that the report shows, `files` the files that it links to,
    and `made` those that the run made. `left_out` names those that are too large or too many.
    """

    title: str
    markdown: str
    sources: Sequence[Source] = ()
    ended_at: float | None = None
    is_partial: bool = False
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    made: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Heading:
    """A line of the table of contents. It links to the element `id`; `level` counts from 1."""

    level: int
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A report that is ready to be rendered.

    `body` are Markdown tokens. The attribute `id` of headings and of entries of the list of sources is the
    target of links in the text. `language` is a code such as `en`; `marks` is the number of `[unverified]`.
    """

    title: str
    language: str
    texts: DocumentTexts
    body: Sequence[Token]
    contents: Sequence[Heading]
    marks: int
    ended_at: float | None
    is_partial: bool
    figures: Mapping[str, Figure]

    @property
    def date(self) -> str:
        """The day on which the run ended, in the document's language; "" if it is not known."""
        return self.texts.date(self.ended_at)


def lay_out_report(report: Report) -> Document:
    """Return a report as a document. Blocks for up to some seconds."""
    markdown = clean(report.markdown)
    language = language_of(markdown)
    texts = texts_for(language)
    shown = FigureNames(report.figures, texts.missing)
    labels = [MARK.strip("[]"), *(str(source.number) for source in report.sources)]
    title, body = _split_title(clean(report.title), parse_markdown(markdown, labels, shown))
    body = append_source_list(body, markdown, report.sources)
    anchored = anchor_sources(body, report.sources, texts)
    keep_lines_together(body)
    marks = annotate_citations(body, anchored, texts.unverified)
    headings = _headings(body)
    contents = headings if len(headings) >= LEAST_HEADINGS else ()
    return Document(
        title, language, texts, body, contents, marks, report.ended_at, report.is_partial, report.figures
    )


def clean(text: str) -> str:
    """Return `text` without the characters that are invalid in HTML or XML."""
    return _NO_CHARACTER.sub("", fix_surrogates(text))


def _split_title(title: str, tokens: list[Token]) -> tuple[str, list[Token]]:
    """Return the title and the other tokens. A report's own first heading takes precedence over `title`."""
    if len(tokens) > 2 and (tokens[0].type, tokens[0].tag) == ("heading_open", "h1"):
        own = " ".join(plain_text(tokens[1].children).split())
        if own:
            return own, tokens[3:]
    return " ".join(title.split()), tokens


def _headings(tokens: Sequence[Token]) -> list[Heading]:
    """Set the `id` of each top-level heading token, and return the headings for the contents."""
    found: list[Heading] = []
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.level:
            continue
        level, text = int(token.tag[1:]), " ".join(plain_text(tokens[index + 1].children).split())
        if level <= _DEEPEST and text:
            token.attrSet("id", f"section-{len(found) + 1}")
            found.append(Heading(level, f"section-{len(found) + 1}", text))
    return found


_NUMBER = re.compile(r"\[(\d{1,4})\] ")


def append_source_list(tokens: list[Token], markdown: str, sources: Sequence[Source]) -> list[Token]:
    """Return the tokens of a report, with a list of the cited sources appended if it has no list."""
    known = {source.number: source for source in sources}
    if any(_entries(tokens, known)) or not known:
        return tokens
    named = [known[number] for number in sorted(cited_numbers(tokens) & known.keys())]
    return [*tokens, *parse_markdown(format_source_list(named, heading_for(markdown)))]


def anchor_sources(tokens: list[Token], sources: Sequence[Source], texts: DocumentTexts) -> set[int]:
    """Give each entry of the list of sources an `id` and the day it was read or found; return the numbers."""
    known = {source.number: source for source in sources}
    found: dict[int, tuple[Token, Token]] = {}
    for number, item, content in _entries(tokens, known):
        found[number] = (
            item,
            content,
        )  # the list is at the end, so later entries win
    for number, (item, content) in found.items():
        item.attrs = {"id": f"source-{number}", "class": "source"}
        got_on = texts.got_on(known[number].kind, known[number].retrieved_at)
        content.children = _format_entry(number, content.children or [])
        if got_on:
            day = wrap_tokens("small", "small", [text_token(got_on)])
            content.children += [text_token(texts.comma), *day]
    return set(found)


def _entries(tokens: list[Token], known: Mapping[int, Source]) -> Iterator[tuple[int, Token, Token]]:
    """Yield the number, item and inline token of each entry: `[3]` and then a link to the source 3."""
    for index, token in enumerate(tokens):
        if token.type != "list_item_open" or len(tokens) < index + 3:
            continue
        content = tokens[index + 2]
        children = content.children or []
        number = _NUMBER.match(children[0].content) if children and children[0].type == "text" else None
        source = known.get(int(number[1])) if number else None
        hrefs = [str(one.attrGet("href") or "") for one in children if one.type == "link_open"]
        if source is not None and hrefs and _is_address_of(source, hrefs[-1]):
            yield source.number, token, content


def _is_address_of(source: Source, href: str) -> bool:
    known = {comparable_url(hide_secrets(one)) for one in (source.url, *source.also)}
    return comparable_url(hide_secrets(href)) in known


def _format_entry(number: int, children: list[Token]) -> list[Token]:
    children[0].content = children[0].content[len(f"[{number}] ") :]
    return [
        *wrap_tokens("number", "span", [text_token(f"[{number}]")], class_="number"),
        text_token(" "),
        *children,
    ]
