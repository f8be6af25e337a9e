"""The lists of a Word document."""

from typing import Any

from maniple.report_files.word_xml import element

_BULLETS = "•◦▪"
_DEEPEST = 9
_INDENT = 360
"""Of each level, in twentieths of a point."""


class Lists:
    """Counts the lists of one document: each has numbers of its own."""

    def __init__(self, numbering: Any) -> None:
        self._numbering = numbering
        # What the template brings is not used.
        self._abstract = 1_000
        numbering[:0] = [
            _definition(self._abstract + is_ordered, is_ordered=is_ordered) for is_ordered in (False, True)
        ]
        self.bullets = self._last = 1_000
        """The number of every list without numbers."""
        self._add(self._abstract)

    def numbered(self, level: int, start: int) -> int:
        """Return the number of a new list that counts from `start`; `level` counts from 0."""
        self._last += 1
        first = element("startOverride", val=start)
        self._add(self._abstract + 1, element("lvlOverride", first, ilvl=min(level, _DEEPEST - 1)))
        return self._last

    def _add(self, abstract: int, *overrides: Any) -> None:
        kind = element("abstractNumId", val=abstract)
        self._numbering.append(element("num", kind, *overrides, numId=self._last))


def item(list_: int, level: int) -> tuple[Any, ...]:
    """Return the properties of an item's first paragraph; `level` counts from 0."""
    return (element("numPr", element("ilvl", val=min(level, _DEEPEST - 1)), element("numId", val=list_)),)


def further(level: int) -> tuple[Any, ...]:
    """Return the properties of an item's further paragraphs."""
    return (element("ind", left=_INDENT * (min(level, _DEEPEST - 1) + 1)),)


def entry(level: int) -> tuple[Any, ...]:
    """Return the properties of an item that brings its number itself."""
    return (element("ind", left=_INDENT * (min(level, _DEEPEST - 1) + 1), hanging=_INDENT),)


def _definition(number: int, *, is_ordered: bool) -> Any:
    levels = [
        element(
            "lvl",
            element("start", val=1),
            element("numFmt", val="decimal" if is_ordered else "bullet"),
            element("lvlText", val=f"%{level + 1}." if is_ordered else _BULLETS[level % len(_BULLETS)]),
            element("lvlJc", val="left"),
            element("pPr", element("ind", left=_INDENT * (level + 1), hanging=_INDENT)),
            ilvl=level,
        )
        for level in range(_DEEPEST)
    ]
    kind = element("multiLevelType", val="hybridMultilevel")
    return element("abstractNum", kind, *levels, abstractNumId=number)
