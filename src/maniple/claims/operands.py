"""The figures from which a figure of a claim may be calculated: its own, and those of passages like it."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import islice

from maniple.claims.context import ClaimContext, with_neighbours
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention
from maniple.claims.source_index import SourceIndex
from maniple.claims.table_index import TableIndex

PASSAGES = 4
"""The most similar passages of each source whose figures are tried."""
MAX_SOURCES = 4
"""Cited sources whose figures are tried."""
MAX_TABLES = 4
MAX_ROWS = 40
"""Rows or columns of a table whose figures are tried with each other."""
MAX_SCANNED = 60
"""Passages from the beginning of a source that are tried if nothing else explains a figure."""
FEW_FIGURES = 24
"""A source with no more figures is tried as a whole."""


class OperandPool:
    """The operands for one figure of a claim from one of its sources."""

    def __init__(self, context: ClaimContext, figure: FigureMention, index: SourceIndex) -> None:
        self.context = context
        self.index = index
        self.own = [one for one in context.figures if one.start != figure.start]
        self.near = [*find_near_passages(context, figure, index)]
        self.tables = self._find_tables()

    def find_groups(self) -> Iterator[list[FigureMention]]:
        """Yield the figures of the claim with those of each passage like it and the ones beside that."""
        nearby = self.context.nearby
        groups = [self.index.find_neighbours(one) for one in self.near]
        for group in groups:
            yield [*self.own, *figures_of(group), *nearby]
        yield [*self.own, *figures_of(self.near[:2]), *nearby]

    def find_wide_groups(self) -> Iterator[list[FigureMention]]:
        """Yield more figures: of sentences before the claim, of rows and columns, of all cited sources."""
        named = [*self._find_named_cells()]
        yield [*self.own, *figures_of(self.near[:2]), *figures_of(named)]
        others = (index for index in self.context.cited if index is not self.index)
        best = (one for index in others for _, one in index.find_similar(self.context.label_terms, most=2))
        yield [*self.own, *figures_of(self.near), *figures_of(best)]
        for table in self.tables:
            yield from _find_table_groups(table, self.context)
        if not self.context.can_compare(self.index):
            scanned = self.index.passages[:MAX_SCANNED]
            yield from (figures_of(scanned[at : at + 2]) for at in range(len(scanned)))
            # The words do not tell whose share is meant: any of the source may be one of the cells.
            shares = (one for passage in scanned for one in passage.figures if one.kind == "percent")
            yield [*_figures_of_cells(named), *shares]
        everything = self.all_figures()
        if len(everything) <= FEW_FIGURES:
            yield [*self.own, *everything]

    def all_figures(self) -> list[FigureMention]:
        """Return the figures of the first passages of the source, sentences before tables."""
        first = self.index.passages[:MAX_SCANNED]
        return figures_of(sorted(first, key=lambda one: one.table >= 0))

    def _find_named_cells(self) -> Iterator[IndexedPassage]:
        """Yield the cells of the rows that the claim names, of all tables."""
        for table in self.tables:
            rows = table.rows.find_named(self.context.label_terms)
            columns = table.columns.find_named(self.context.label_terms)
            cells = [one for one in table.cells if one.row in rows]
            yield from [one for one in cells if one.column in columns] or cells

    def _find_tables(self) -> list[TableIndex]:
        """Return the tables that near passages are in, or all, if the source has few."""
        tables = self.index.tables
        if len(tables) <= MAX_TABLES:
            return tables
        return [tables[number] for number in sorted({one.table for one in self.near if one.table >= 0})]


def _find_table_groups(table: TableIndex, context: ClaimContext) -> Iterator[list[FigureMention]]:
    """Yield the figures of each row, and of each column in the rows that the claim names or in all."""
    rows = table.rows.find_named(context.label_terms)
    by_row = dict[str, list[IndexedPassage]]()
    for one in table.cells:
        by_row.setdefault(one.row, []).append(one)
    if len(by_row) <= MAX_ROWS:
        chosen = [cells for row, cells in by_row.items() if not rows or row in rows]
        yield from (_figures_of_cells(cells) for cells in chosen)
    for column in table.find_columns():
        yield _figures_of_cells([one for one in column if len(rows) < 2 or one.row in rows][:MAX_ROWS])


def _figures_of_cells(cells: Iterable[IndexedPassage]) -> list[FigureMention]:
    """Return the first figure of each cell: with the unit of its head, if that has one."""
    return [one.figures[0] for one in cells if one.figures]


def choose_sources(context: ClaimContext) -> Sequence[SourceIndex]:
    """Return the sources of a claim; of many, those that share most of its words."""
    if len(context.cited) <= MAX_SOURCES:
        return context.cited
    scores = {
        index.number: max((score for score, _ in context.find_similar(index)), default=0)
        for index in context.cited
    }
    return nlargest(MAX_SOURCES, context.cited, key=lambda index: scores[index.number])


def figures_of(passages: Iterable[IndexedPassage]) -> list[FigureMention]:
    """Return the figures of passages; a bare one also in the unit of the one beside it."""
    found = list[FigureMention]()
    for one in passages:
        if one.table >= 0:
            found += one.figures
        else:
            found += (each for group in with_neighbours([(each,) for each in one.figures]) for each in group)
    return found


def find_near_passages(
    context: ClaimContext, figure: FigureMention, index: SourceIndex
) -> Iterator[IndexedPassage]:
    """Yield the passages with other figures of the claim, and those that share its words."""
    # Here units are words, too: what is added up has the same.
    similar = [one for _, one in index.find_similar(context.label_terms, most=PASSAGES)]
    others = (one for one in context.figures if one is not figure and one.is_judged)
    same = [one for other in islice(others, PASSAGES) for _, one in index.find_figure(other)[:PASSAGES]]
    known = {id(one): one for one in (*similar[:1], *same, *similar[1:])}
    yield from (one for one in known.values() if index.has_place(one))
