"""One claim of a report that something stands somewhere."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["url", "number", "quotation"]


@dataclass(frozen=True, slots=True)
class Citation:
    """`start` and `end` are offsets in the block; what is said of it belongs behind `end`."""

    kind: Kind
    start: int
    end: int
    text: str
    """The address (in full, where only `host/path` is written), the words, or the numbers as written."""
    numbers: tuple[int, ...] = ()
    """Of a citation its numbers, of an address that of its source; of a quotation those that its sentence
    cites."""


def covering(spans: Iterable[tuple[int, int]]) -> Callable[[int], int]:
    """Return what gives the end of the one of `spans` that an offset lies in, or 0; they do not overlap."""
    ordered = sorted(spans)
    starts = [start for start, _ in ordered]

    def end_of(offset: int) -> int:
        before = bisect_right(starts, offset) - 1
        return ordered[before][1] if before >= 0 and offset < ordered[before][1] else 0

    return end_of
