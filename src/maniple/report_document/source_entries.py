"""The list of sources of a report: its entries become targets of the citations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from maniple.document import nodes
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.addresses import comparable_url
from maniple.report_document.report_nodes import SourceItemNode, shown_text
from maniple.report_document.safe_nodes import find_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from maniple.evidence.record import Source


@dataclass(frozen=True, slots=True)
class _Entry:
    """An item that names a source, and its text without the number."""

    number: int
    rest: tuple[nodes.InlineNode, ...]


@dataclass(frozen=True, slots=True)
class SourceEntries:
    """Finds the entries for `sources`, by number. `got_on` says when a source was read or found.

    An entry is an item of a list, or one of the lines of a paragraph, that begins with the number of a source
    and has a link to it.
    """

    sources: Mapping[int, Source]
    got_on: Callable[[Source], str]

    def anchor(self, blocks: Sequence[nodes.BlockNode]) -> tuple[tuple[nodes.BlockNode, ...], frozenset[int]]:
        """Return the blocks with their entries as `SourceItemNode`, and the numbers of these.

        Of several entries with one number, the last counts: the list is at the end.
        """
        listed = [_list_lines(one, self) for one in blocks]
        last = {entry.number: item.start for item, entry in self._find(listed)}
        return tuple(self._replace(one, last) for one in listed), frozenset(last)

    def _find(self, blocks: Iterable[nodes.BlockNode]) -> Iterator[tuple[nodes.ListItemNode, _Entry]]:
        for one in blocks:
            if isinstance(one, nodes.ListNode):
                for index, item in enumerate(one.items):
                    if entry := self.entry_of(item, _position(one, index)):
                        yield item, entry
                    yield from self._find(item.children)
            elif isinstance(one, nodes.BlockQuoteNode):
                yield from self._find(one.children)

    def _replace(self, block: nodes.BlockNode, last: Mapping[int, int]) -> nodes.BlockNode:
        match block:
            case nodes.ListNode(items=items):
                made = (self._item(one, _position(block, index), last) for index, one in enumerate(items))
                return replace(block, items=tuple(made))
            case nodes.BlockQuoteNode(children=children):
                return replace(block, children=tuple(self._replace(one, last) for one in children))
            case _:
                return block

    def _item(
        self, item: nodes.ListItemNode, position: int | None, last: Mapping[int, int]
    ) -> nodes.ListItemNode:
        entry = self.entry_of(item, position)
        if entry is None or last[entry.number] != item.start:
            return replace(item, children=tuple(self._replace(one, last) for one in item.children))
        first = replace(item.children[0], children=entry.rest)
        children = (first, *item.children[1:])
        got_on = self.got_on(self.sources[entry.number])
        return SourceItemNode(item.start, item.end, children, None, entry.number, got_on)

    def entry_of(self, item: nodes.ListItemNode, position: int | None = None) -> _Entry | None:
        """Return the entry that an item is; `position` is its number in an ordered list."""
        if not item.children or not isinstance(first := item.children[0], nodes.ParagraphNode):
            return None
        number, rest = position, first.children
        if rest and isinstance(rest[0], nodes.CitationNode):
            number, rest = rest[0].numbers[0] if len(rest[0].numbers) == 1 else None, _left_stripped(rest[1:])
        source = self.sources.get(number) if number is not None else None
        if source is None or not _names(source, rest):
            return None
        return _Entry(source.number, rest)


def cited_numbers(blocks: Iterable[nodes.BlockNode]) -> set[int]:
    """Return the numbers that a report cites."""
    every = (node for one in blocks for node in nodes.iterate_nodes(one))
    return {number for one in every if isinstance(one, nodes.CitationNode) for number in one.numbers}


def _position(list_: nodes.ListNode, index: int) -> int | None:
    return None if list_.first is None else list_.first + index


def _names(source: Source, children: Sequence[nodes.InlineNode]) -> bool:
    """Whether the last link of an entry leads to the source."""
    every = (node for one in children for node in nodes.iterate_nodes(one))
    targets = [one.target for one in every if isinstance(one, nodes.LinkNode)]
    text = "" if targets else shown_text(children)
    targets += [text[start:end] for start, end in find_addresses(text)]
    known = {_comparable(one) for one in (source.url, *source.also)}
    return bool(targets) and _comparable(targets[-1]) in known


def _comparable(address: str) -> str:
    # Of a file in a folder, the list quotes the path, such as its spaces, and the record does not.
    is_of_web = address.casefold().startswith(("http:", "https:"))
    return comparable_url(hide_secrets(address if is_of_web else unquote(address)))


def _list_lines(block: nodes.BlockNode, entries: SourceEntries) -> nodes.BlockNode:
    """Return a paragraph whose lines are all entries as a list of them; any other block as it is."""
    if not isinstance(block, nodes.ParagraphNode) or not isinstance(block.children[0], nodes.CitationNode):
        return block
    lines: list[list[nodes.InlineNode]] = [[]]
    for one in block.children:
        if isinstance(one, nodes.LineBreakNode):
            lines.append([])
        else:
            lines[-1].append(one)
    items = [_as_item(line) for line in lines if line]
    if not all(one.children and entries.entry_of(one) for one in items):
        return block
    return nodes.ListNode(block.start, block.end, None, True, tuple(items))


def _as_item(line: Sequence[nodes.InlineNode]) -> nodes.ListItemNode:
    start, end = line[0].start, line[-1].end
    return nodes.ListItemNode(start, end, (nodes.ParagraphNode(start, end, tuple(line)),), None)


def _left_stripped(children: tuple[nodes.InlineNode, ...]) -> tuple[nodes.InlineNode, ...]:
    if not children or not isinstance(first := children[0], nodes.TextNode):
        return children
    text = first.text.lstrip(" .:)")
    return (*((replace(first, text=text),) if text else ()), *children[1:])
