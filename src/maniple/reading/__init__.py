"""Documents of many kinds, read into Markdown: what comes from strangers is bounded in size and time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """A whole document as Markdown, before it is cut to what is asked for."""

    title: str
    """Empty where the document has none."""
    markdown: str
    """Empty where there is nothing to read."""
    headed: bool = True
    """Whether a line that begins with `#` is a heading."""
    note: str = ""
    """What was left out, as a sentence."""


# What a document is read to at most. A page of more is a collection, and converting it takes seconds of a
# processor.
MAX_CHARACTERS = 400_000


def truncation_note(characters: int) -> str:
    """What is said of a document of which no more than so many were read."""
    return f"Only about the first {characters:,} characters were read."


class UnreadableDocument(Exception):
    """What is wrong with a document, in words that follow its address: "is a damaged PDF"."""
