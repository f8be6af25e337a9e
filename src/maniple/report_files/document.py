"""A report as a document: title, contents, text and sources, for whatever form it is to have."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from maniple.evidence.check import MARK
from maniple.evidence.record import Source
from maniple.evidence.source_list import language_of
from maniple.report_files.citations import mark
from maniple.report_files.markdown import FigureNames, said, tokens_of
from maniple.report_files.sources import anchored, with_list
from maniple.report_files.wording import Wording, wording_of
from maniple.run_page.pictures import Figure
from maniple.text import fix_surrogates

LEAST_HEADINGS = 3
"""A document with fewer has no contents."""
_DEEPEST = 3
# What neither HTML nor XML may hold.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to. `ended_at` is Unix time in seconds, `is_partial` whether its budget ran out.

    `figures` are the thread's pictures that it shows, by path.
    """

    title: str
    markdown: str
    sources: Sequence[Source] = ()
    ended_at: float | None = None
    is_partial: bool = False
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])


@dataclass(frozen=True, slots=True)
class Heading:
    """A line of the contents, which leads to the element `id`; `level` counts from 1."""

    level: int
    id: str
    words: str


@dataclass(frozen=True, slots=True)
class Document:
    """A report laid out.

    `body` is Markdown's tokens: of headings and entries of the list of sources `id` is the place that links
    in the text lead to. `language` is a code such as `en`, `marks` the number of `[unverified]`.
    """

    title: str
    language: str
    wording: Wording
    body: Sequence[Token]
    contents: Sequence[Heading]
    marks: int
    ended_at: float | None
    is_partial: bool
    figures: Mapping[str, Figure]

    @property
    def date(self) -> str:
        """The day that the run ended, in words; "" when that is not known."""
        return self.wording.date(self.ended_at)


def document_of(report: Report) -> Document:
    """Lay a report out. Blocks: some seconds for the longest."""
    markdown = clean(report.markdown)
    language = language_of(markdown)
    wording = wording_of(language)
    shown = FigureNames(report.figures, wording.missing)
    labels = [MARK.strip("[]"), *(str(source.number) for source in report.sources)]
    title, body = _titled(clean(report.title), tokens_of(markdown, labels, shown))
    body = with_list(body, markdown, report.sources)
    marks = mark(body, anchored(body, report.sources, wording), wording.unverified)
    headings = _headings(body)
    contents = headings if len(headings) >= LEAST_HEADINGS else ()
    return Document(
        title, language, wording, body, contents, marks, report.ended_at, report.is_partial, report.figures
    )


def clean(text: str) -> str:
    """Return `text` without what neither HTML nor XML may hold."""
    return _NO_CHARACTER.sub("", fix_surrogates(text))


def _titled(title: str, tokens: list[Token]) -> tuple[str, list[Token]]:
    """Return the title and the rest: a report that begins with one has given it itself."""
    if len(tokens) > 2 and (tokens[0].type, tokens[0].tag) == ("heading_open", "h1"):
        own = " ".join(said(tokens[1].children).split())
        if own:
            return own, tokens[3:]
    return " ".join(title.split()), tokens


def _headings(tokens: Sequence[Token]) -> list[Heading]:
    """Give every heading that is nowhere within something an id, and return those for the contents."""
    found: list[Heading] = []
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.level:
            continue
        level, words = int(token.tag[1:]), " ".join(said(tokens[index + 1].children).split())
        if level <= _DEEPEST and words:
            token.attrSet("id", f"section-{len(found) + 1}")
            found.append(Heading(level, f"section-{len(found) + 1}", words))
    return found
