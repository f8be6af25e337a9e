"""What an agent is shown of a page as text: rows within a number of tokens, options and search results.

Text of pages is untrusted: `sanitize_text` and `to_one_line` make it safe to show.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from maniple.browser.page import FoundPage

BYTES_PER_TOKEN = 3
"""An estimate for UTF-8: brackets and digits take more tokens than prose, and Chinese one a character."""
NO_SEARCH = "there is no search here; open the page of a search engine, or a page that you know"
_MAX_RESULTS = 5
_RESULT_CHARACTERS = 300
_ITEMS_OUT_OF_SIGHT = 20
"""The number of items of a long list that are shown although they are outside of the window."""
_TOKENS_FOR_MARKS = 60
_WIDEST_INDEX = 9_999


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A piece of a page: a text, a control if `role` is set, or a mark for pieces that are left out."""

    line: int
    """Pieces of one line are side by side on the page."""
    text: str
    """The text or the control's accessible name, sanitized; "up" or "down" for a mark."""
    seen: bool = True
    """Whether it is visible in the window."""
    group: int = 0
    """The long list that contains it; 0 for none."""
    item: int = 0
    role: str = ""
    details: tuple[str, ...] = ()
    index: int = _WIDEST_INDEX
    is_new: bool = False
    left_out: int = 0
    """The number of pieces that a mark replaces."""
    is_notice: bool = False
    """Whether it says what the listing lacks; it is never left out itself."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def render_row(row: ListingRow) -> str:
    """Return a row as a model reads it, such as `*[3]<button>Send</button>`."""
    if row.left_out:
        kind = " like this" if row.group else ""
        return f"… {row.left_out:,} more{kind}; scroll {row.text} or use scroll_to_text"
    if not row.role:
        return row.text
    opening = " ".join((row.role, *row.details))
    return f"{'*' if row.is_new else ''}[{row.index}]<{opening}>{row.text}</{row.role.split()[0]}>"


def select_rows(rows: Sequence[ListingRow], tokens: int) -> list[ListingRow]:
    """Return the rows to show within about `tokens`: those in the window first, then the nearest ones.

    A mark replaces each stretch of rows that is left out; notices stay.
    """
    notices = {position for position, row in enumerate(rows) if row.is_notice}
    left = tokens - _TOKENS_FOR_MARKS - sum(estimate_tokens(render_row(rows[at])) + 1 for at in notices)
    selected = set(notices)
    for position in _by_importance(rows):
        left -= estimate_tokens(render_row(rows[position])) + 1
        if left < 0:
            break
        selected.add(position)
    return list(_with_marks(rows, selected))


def render_rows(rows: Iterable[ListingRow]) -> str:
    """Return the rows as text; rows of the same line share a line."""
    lines = (" ".join(render_row(row) for row in line) for _, line in groupby(rows, key=lambda row: row.line))
    return "\n".join(lines)


def _by_importance(rows: Sequence[ListingRow]) -> list[int]:
    """Return the positions of the rows that may be shown, the most important first."""
    pieces = [position for position, row in enumerate(rows) if not row.left_out and not row.is_notice]
    seen = [position for position in pieces if rows[position].seen]
    first, last = (seen[0], seen[-1]) if seen else (0, 0)
    unseen = (position for position in pieces if not rows[position].seen)
    near = sorted(unseen, key=lambda position: max(first - position, position - last, 0))
    shown: dict[int, set[int]] = {}
    return seen + [position for position in near if _is_among_first(rows[position], shown)]


def _is_among_first(row: ListingRow, shown: dict[int, set[int]]) -> bool:
    items = shown.setdefault(row.group, set())
    if row.group and row.item not in items and len(items) >= _ITEMS_OUT_OF_SIGHT:
        return False
    items.add(row.item)
    return True


def _with_marks(rows: Sequence[ListingRow], selected: set[int]) -> Iterator[ListingRow]:
    """Yield the selected rows, and a mark for each stretch between them."""
    window = next((position for position, row in enumerate(rows) if row.seen and not row.left_out), 0)
    for is_kept, positions in groupby(range(len(rows)), key=lambda position: position in selected):
        first, *others = positions
        stretch = [rows[position] for position in (first, *others)]
        if is_kept:
            yield from stretch
        else:
            yield _mark(stretch, "up" if first < window else "down")


def _mark(stretch: Sequence[ListingRow], direction: str) -> ListingRow:
    groups = {row.group for row in stretch}
    pieces = {
        (row.group, row.item if row.group else position)
        for position, row in enumerate(stretch)
        if not row.left_out
    }
    count = len(pieces) + sum(row.left_out for row in stretch)
    return ListingRow(
        stretch[0].line, direction, group=groups.pop() if len(groups) == 1 else 0, left_out=count
    )


# All that a reader could take for `[12]`: other brackets and digits, with blanks between them.
_INDEX = re.compile(r"[\[［〔【⟦❲]((?:[\s*\u200c\u200d]*\d)+[\s*\u200c\u200d]*)(?:[\]］〕】⟧❳]|\Z)")
_HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})
# Persian and emoji need the joiners.
_JOINERS = "\u200c\u200d"


def sanitize_text(text: str, limit: int) -> str:
    """Return text of a page on one line, with at most `limit` characters.

    Hidden characters are removed, and nothing in it can pass for an index.
    """
    cut = text[: limit * 4]
    if not (cut.isascii() and cut.isprintable()):
        cut = "".join(map(_visible, cut))
    text = _INDEX.sub(r"(\1)", " ".join(cut.split()))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category in _HIDDEN and character not in _JOINERS else character


def describe_options(options: Sequence[Any], count: int, total: int, text: str | None) -> str:
    """Return the text about a dropdown: the first of `count` options that contain `text`, of `total`."""
    listed = f"Dropdown options: {json.dumps(options, ensure_ascii=False)}"
    if text:
        return f"{listed} (of {total}, the first {len(options)} of {count} with '{to_one_line(text, 100)}')"
    is_cut = total > len(options)
    return f"{listed} (the first {len(options)} of {total}; `text` finds others)" if is_cut else listed


def describe_search_results(query: str, results: Sequence[FoundPage]) -> str:
    """Return the first results of a search as a numbered list, one or two lines each."""
    lines = [f"Search results for '{query}':"]
    for number, found in enumerate(results[:_MAX_RESULTS], 1):
        lines.append(f"{number}. {to_one_line(found.title, 200)}\n   {to_one_line(found.url, 2_000)}")
        if content := to_one_line(found.content, _RESULT_CHARACTERS):
            lines.append(f"   {content}")
    return "\n".join(lines)


def to_one_line(text: str, characters: int) -> str:
    """Return untrusted text as one line of at most `characters`."""
    # Cut before splitting, which takes long for megabytes.
    line = " ".join(text[: 4 * characters].split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"
