"""A table of a source: its cells, and the words that tell its rows and columns apart."""

import re
from collections import Counter
from collections.abc import Iterable

from maniple.claims.passages import IndexedPassage
from maniple.claims.terms import find_terms

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_SMALL = re.compile(r"(?<![\d.,/])\d{1,2}(?![\d.,/%])")
_CODE = re.compile(
    r"(?<![\w.,/-])(?:[A-Z]{1,4}[- ]?\d{1,4}(?:\.\d+)*|\d{1,2}\.\d{1,2}(?:\.\d+)*|(?:19|20)\d\d/\d\d)"
    r"(?![\w%/]|[.,]\d)"
)
"""A model, version, quarter or season, as in `C2`, `7.1`, `Q3`, `2022/23`."""


TOTAL_TERMS = find_terms(
    "total totale totaal totalt sum summe gesamt insgesamt zusammen somme ensemble suma soma totali "
    "всего итого razem celkem összesen toplam yhteensä σύνολο المجموع 合计 总计 全体 합계 總計 合計 all"
)
"""The terms of the heads of total rows and columns."""


def find_label_terms(text: str) -> frozenset[str]:
    """Return the terms and years of the head of a row or column, or of a text that may name it."""
    codes = (found[0].replace(" ", "") for found in _CODE.finditer(text))
    return find_terms(text).union(_YEAR.findall(text), codes, _SMALL.findall(text))


def find_years(text: str) -> list[str]:
    """Return the years of a text, of four digits."""
    return _YEAR.findall(text)


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


class LabelIndex:
    """The heads of the rows or columns of a table, by the terms that only one of them has."""

    def __init__(self, labels: Iterable[str]) -> None:
        terms = {label: find_label_terms(label) for label in dict.fromkeys(labels)}
        counts = Counter(term for known in terms.values() for term in known)
        self._own = {
            label: frozenset(term for term in known if counts[term] == 1) or known
            for label, known in terms.items()
        }
        self._by_code: dict[str, list[str]] = {}
        for label, known in terms.items():
            for code in filter(_has_digit, known):
                self._by_code.setdefault(code, []).append(label)
        self._labels: dict[str, list[str]] = {}
        for label, known in self._own.items():
            for term in known:
                self._labels.setdefault(term, []).append(label)

    def shares_more(self, label: str, wanted: frozenset[str], named: Iterable[str]) -> bool:
        """Whether a text has terms of a head that those which it names (`named`) do not have."""
        known = frozenset[str]().union(*(self._own[one] for one in named))
        return not (self.own_terms(label) & wanted) <= known

    def find_siblings(self, label: str, wanted: frozenset[str]) -> list[str]:
        """Return the heads that differ from `label` in a year or code only, of which a text names theirs."""
        terms = find_label_terms(label)
        codes = frozenset(filter(_has_digit, terms))
        if not codes or codes & wanted:
            return []
        rest, names = terms - codes, frozenset(filter(_has_digit, wanted))
        return [
            other
            for other in dict.fromkeys(one for code in names for one in self._by_code.get(code, ()))
            if find_label_terms(other) - names == rest
        ]

    def own_terms(self, label: str) -> frozenset[str]:
        """Return the terms that tell a head from the others."""
        return self._own.get(label, frozenset())

    def find_named(self, wanted: frozenset[str]) -> set[str]:
        """Return the heads that a text with the terms `wanted` names; "in total" names none."""
        near = {label for term in wanted for label in self._labels.get(term, ())}
        return {label for label in near if self._own[label] <= wanted and not self._own[label] <= TOTAL_TERMS}


class TableIndex:
    """The cells of a table without its heads. `finish` indexes the heads, once all cells are there."""

    def __init__(self) -> None:
        self.cells: list[IndexedPassage] = []
        self.rows = LabelIndex(())
        self.columns = LabelIndex(())
        self._by_heads: dict[tuple[str, str], IndexedPassage] = {}

    def finish(self) -> None:
        self.rows = LabelIndex(one.row for one in self.cells)
        self.columns = LabelIndex(one.column for one in self.cells)
        self._by_heads = {(one.row, one.column): one for one in reversed(self.cells)}

    def find_cells(self, rows: Iterable[str], columns: Iterable[str]) -> list[IndexedPassage]:
        """Return the cells at these rows and columns."""
        columns = [*columns]
        places = ((row, column) for row in rows for column in columns)
        return [self._by_heads[place] for place in places if place in self._by_heads]

    def find_columns(self) -> list[list[IndexedPassage]]:
        """Return the cells of each column."""
        columns: dict[str, list[IndexedPassage]] = {}
        for one in self.cells:
            columns.setdefault(one.column, []).append(one)
        return [*columns.values()]
