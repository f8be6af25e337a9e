"""A citation in a report."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["url", "number", "quotation", "claim"]


@dataclass(frozen=True, slots=True)
class Citation:
    """An address, a source number, a quotation, or a whole claim. `start` and `end` are offsets in the block.

    A mark about the citation is inserted at `end`.
    """

    kind: Kind
    start: int
    end: int
    text: str
    """The address (with a scheme, even if only `host/path` is written), the quoted text, the numbers, or the
    claim."""
    numbers: tuple[int, ...] = ()
    """The source numbers: of the citation itself, of the address's source, or those cited by the sentence of
    a quotation."""
    separator: str = " "
    """What is between the citation and a mark about it."""


def index_spans(spans: Iterable[tuple[int, int]]) -> Callable[[int], int]:
    """Return a function from an offset to the end of the span around it, or 0. Spans do not overlap."""
    ordered = sorted(spans)
    starts = [start for start, _ in ordered]

    def end_of(offset: int) -> int:
        before = bisect_right(starts, offset) - 1
        return ordered[before][1] if before >= 0 and offset < ordered[before][1] else 0

    return end_of
