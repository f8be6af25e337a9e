"""What a fetched page came to."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A response as it came: its last address after redirects, its type and its decompressed bytes."""

    url: str
    media_type: str
    """Lower case, without parameters; empty when the server named none."""
    charset: str | None
    body: bytes
    frames: tuple["Document", ...] = ()
    """Those in its frames: what is read then, instead of the body."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document that is too long to be read at once."""

    heading: str
    level: int
    """1 to 6 as in Markdown; 0 for what stands before the first heading."""
    characters: int


@dataclass(frozen=True, slots=True)
class Article:
    """The readable part of a page, ready for a model."""

    url: str
    """Where the page really was, after redirects."""
    title: str
    markdown: str
    """As many whole sections as fit into the characters asked for; links and images are absolute."""
    sections: tuple[Section, ...] = ()
    """Those of the whole document, numbered from 1; empty when `markdown` is all of it."""
    first: int = 1
    last: int = 1
    """The numbers of the first and the last section in `markdown`."""
    note: str = ""
    """What of the document could not be read, as a sentence; empty when nothing is missing."""
    whole: str = ""
    """All of a document of which `markdown` is a part; empty when that is all of it."""
    was_named: bool = False
    """Whether the part was asked for: who did has seen the outline."""

    @property
    def text(self) -> str:
        """The article under its title and its address, with the outline of a long one, for a model."""
        parts = (f"# {self.title}", f"Source: {self.url}", self.note, self._outline(), self.markdown)
        return "\n\n".join(part for part in parts if part)

    def _outline(self) -> str:
        if not self.sections:
            return ""
        here = f"Section {self.first}" if self.first == self.last else f"Sections {self.first} to {self.last}"
        if self.was_named:
            return f"{here} of {len(self.sections)}."
        lines = [
            f"{number}. {self.sections[number - 1].heading} ({characters:,} characters)"
            for number, characters in _lines(self.sections)
        ]
        return f"{here} of {len(self.sections)}; to read others, name a number or a heading as section:\n" + (
            "\n".join(lines)
        )


# An outline of more lines is no overview.
_MAX_LINES = 40


def _lines(sections: tuple[Section, ...]) -> Iterator[tuple[int, int]]:
    """The numbers to show, with the characters up to the next one shown; of many, the upper levels."""
    shown: list[int] = []
    for deepest in range(6, -1, -1):
        shown = [number for number, section in enumerate(sections, 1) if section.level <= deepest]
        if len(shown) <= _MAX_LINES:
            break
    if len(shown) < _MAX_LINES // 8:
        # So few upper ones tell nothing: every so manieth of all.
        shown = list(range(1, len(sections) + 1, -(-len(sections) // _MAX_LINES)))
    for number, following in zip(shown, [*shown[1:], len(sections) + 1], strict=True):
        yield number, sum(section.characters for section in sections[number - 1 : following - 1])
