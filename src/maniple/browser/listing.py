"""What an agent is shown of a page: its pieces as lines of text, within a number of tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

BYTES_PER_TOKEN = 3
"""Of UTF-8, estimated: brackets and figures take more tokens than prose; of Chinese it is one a character."""
_ITEMS_OUT_OF_SIGHT = 20
"""So many items of a long list are shown although one would have to scroll to see them."""
_TOKENS_FOR_MARKS = 60
_WIDEST_INDEX = 9_999


@dataclass(frozen=True, slots=True)
class Row:
    """A piece of a page: a text, a control when `role` is set, or what stands for pieces left out."""

    line: int
    """Pieces of one line stand beside each other on the page."""
    text: str
    """The text, or the control's accessible name; safe to show. "up" or "down" for what is left out there."""
    seen: bool = True
    """Whether it is in the window."""
    group: int = 0
    """The long list that it is part of; 0 for none."""
    item: int = 0
    role: str = ""
    details: tuple[str, ...] = ()
    index: int = _WIDEST_INDEX
    is_new: bool = False
    left_out: int = 0
    """How many items of a list it stands for."""


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def rendered(row: Row) -> str:
    """Return the row as a model reads it, such as `*[3]<button>Send</button>`."""
    if row.left_out:
        kind = " like this" if row.group else ""
        return f"… {row.left_out:,} more{kind}; scroll {row.text} or use scroll_to_text"
    if not row.role:
        return row.text
    opening = " ".join((row.role, *row.details))
    return f"{'*' if row.is_new else ''}[{row.index}]<{opening}>{row.text}</{row.role.split()[0]}>"


def chosen(rows: Sequence[Row], tokens: int) -> list[Row]:
    """Return what of `rows` is shown within about `tokens`: the window first, then what is nearest to it.

    Where pieces are left out, a row of its own says how many items of which list.
    """
    left = tokens - _TOKENS_FOR_MARKS
    kept: set[int] = set()
    for place in _by_importance(rows):
        left -= tokens_of(rendered(rows[place])) + 1
        if left < 0:
            break
        kept.add(place)
    return list(_with_marks(rows, kept))


def text_of(rows: Iterable[Row]) -> str:
    """Return the rows as text, what stands in one line of the page in one line."""
    lines = (" ".join(rendered(row) for row in line) for _, line in groupby(rows, key=lambda row: row.line))
    return "\n".join(lines)


def _by_importance(rows: Sequence[Row]) -> list[int]:
    """The places of the rows that may be shown, the most important first."""
    seen = [place for place, row in enumerate(rows) if row.seen and not row.left_out]
    first, last = (seen[0], seen[-1]) if seen else (0, 0)
    unseen = (place for place, row in enumerate(rows) if not row.seen and not row.left_out)
    near = sorted(unseen, key=lambda place: max(first - place, place - last, 0))
    shown: dict[int, set[int]] = {}
    return seen + [place for place in near if _is_among_first(rows[place], shown)]


def _is_among_first(row: Row, shown: dict[int, set[int]]) -> bool:
    items = shown.setdefault(row.group, set())
    if row.group and row.item not in items and len(items) >= _ITEMS_OUT_OF_SIGHT:
        return False
    items.add(row.item)
    return True


def _with_marks(rows: Sequence[Row], kept: set[int]) -> Iterator[Row]:
    """The rows that are kept, and one for each stretch of rows that are not."""
    window = next((place for place, row in enumerate(rows) if row.seen and not row.left_out), 0)
    for is_kept, places in groupby(range(len(rows)), key=lambda place: place in kept):
        first, *others = places
        stretch = [rows[place] for place in (first, *others)]
        if is_kept:
            yield from stretch
        else:
            yield _mark(stretch, "up" if first < window else "down")


def _mark(stretch: Sequence[Row], direction: str) -> Row:
    groups = {row.group for row in stretch}
    pieces = {
        (row.group, row.item if row.group else place) for place, row in enumerate(stretch) if not row.left_out
    }
    count = len(pieces) + sum(row.left_out for row in stretch)
    return Row(stretch[0].line, direction, group=groups.pop() if len(groups) == 1 else 0, left_out=count)
