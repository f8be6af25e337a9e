"""The prose of the pages that a person wrote, as sentences and words."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.serving import ROOT

_NOT_THE_MANUAL = {"reference", "decisions", "example-report.md"}
"""Generated pages, dated ones, and a report that a team wrote: only its introduction is a person's."""
_FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1\s*?$", re.S | re.M)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_NOT_PROSE = re.compile(r"^ *(?:\||<).*$", re.M)
"""Rows of tables, and HTML."""
_BLOCK_START = re.compile(r"^(?= *(?:[-*] |\d+\. |#+ ))", re.M)
_MARK = re.compile(r"^ *(?:[-*] |\d+\. |#+ )")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ADDRESS = re.compile(r"https?://\S+")
_CODE = re.compile(r"`[^`]+`\w*")
_SENTENCE_END = re.compile(r"(?<=[.!?;])[)*\"”]*\s+")
"""A semicolon is one, too: a full stop could take its place."""
_WORD = re.compile(r"(?<!\w)[A-Za-z][a-z]+(?!\w)")
"""Abbreviations, names with capitals inside and `5xx` are no words."""


def find_pages() -> list[Path]:
    """Return README, changelog and the pages of the manual, without those that are not its own text."""
    manual = sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not _NOT_THE_MANUAL & set(page.relative_to(ROOT / "docs").parts)
    )
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *manual]


def split_sentences(page: str) -> Iterator[str]:
    """Yield the sentences of Markdown without code blocks and tables; inline code is the word `X`."""
    prose = _NOT_PROSE.sub("", _COMMENT.sub("", _FENCE.sub("\n", page)))
    for paragraph in re.split(r"\n\s*\n", prose):
        for block in _BLOCK_START.split(paragraph):
            text = _IMAGE_OR_LINK.sub(r"\1", _CODE.sub("X", " ".join(_MARK.sub("", block).split())))
            yield from filter(None, _SENTENCE_END.split(_ADDRESS.sub("X", text)))


def split_words(sentence: str) -> list[str]:
    """Return the words of a sentence in lower case, without abbreviations, numbers and signs."""
    return [word.lower() for word in _WORD.findall(sentence)]
