"""A sentence or table cell of a source with what claims are compared with."""

from dataclasses import dataclass

from maniple.claims.dates import DateMention
from maniple.claims.quantities import FigureMention
from maniple.claims.verdict import SourcePassage


@dataclass(slots=True, eq=False)
class IndexedPassage:
    """A sentence, or a cell of a table with the heads of its row and column."""

    passage: SourcePassage
    terms: frozenset[str]
    figures: tuple[FigureMention, ...]
    dates: tuple[DateMention, ...]
    around: frozenset[str] = frozenset[str]()
    """The terms of the headings above it."""
    row: str = ""
    column: str = ""
    table: int = -1
    """The number of its table in the source."""
    cell: str = ""
    corner: str = ""
    """The head of the first column of its table."""
