"""The Mermaid diagrams of a report as pictures, drawn by a browser with the library of the page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from maniple.browser import Browser
from maniple.document import nodes, parse_document
from maniple.document.bounds import is_readable
from maniple.errors import BrowserError
from maniple.reading.pictures import identify_picture
from maniple.run_files.pictures import Figure

MAX_DIAGRAMS = 20
_MAX_CHARACTERS, _MAX_STATEMENTS = 3_000, 80
"""As in `web/src/diagrams.ts`: longer diagrams are not drawn there either."""
_COSTLY = re.compile(r"^[ \t]*(?:excludes|tickInterval)\b", re.MULTILINE)
"""Syntax by which a short text can cause much work."""
_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n.*?\n[ \t]*---[ \t]*(?:\n|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"%%\{.*?(?:\}%%|\Z)", re.DOTALL)
_STATEMENT_ENDS = re.compile(r"[\n;&]")
DIAGRAM = "diagram:"
"""The begin of the paths of drawn diagrams, which no file has."""
_SCALE = 2
"""The pixels of the pictures in one of the page."""


async def draw_diagrams(browser: Browser, markdown: str) -> dict[str, Figure]:
    """Return the diagrams of a report that can be drawn, by their source."""
    sources = await asyncio.to_thread(find_diagrams, markdown)
    if not sources:
        return {}
    try:
        drawn = await browser.draw(_find_page(), [_without_settings(one) for one in sources], _SCALE)
    except BrowserError:
        return {}  # each diagram is then shown as its text, with the remark that it could not be drawn
    return dict(_as_figures(sources, drawn))


def find_diagrams(markdown: str) -> list[str]:
    """Return the sources of the diagrams in a report that may be drawn, without repetition. Blocks."""
    if "mermaid" not in markdown.casefold() or not is_readable(markdown):
        return []
    every = (node for one in parse_document(markdown).children for node in nodes.iterate_nodes(one))
    sources = dict.fromkeys(one.text for one in every if isinstance(one, nodes.MermaidNode))
    return [one for one in sources if _is_drawable(one)][:MAX_DIAGRAMS]


def _is_drawable(source: str) -> bool:
    plain = _without_settings(source)
    is_short = len(plain) <= _MAX_CHARACTERS and len(_STATEMENT_ENDS.split(plain)) <= _MAX_STATEMENTS
    return is_short and _COSTLY.search(plain) is None


def _without_settings(source: str) -> str:
    """Return a diagram without its settings, such as colours, which it cannot change."""
    return _DIRECTIVE.sub("", _FRONT_MATTER.sub("", source, count=1))


def _as_figures(sources: Sequence[str], drawn: Sequence[bytes]) -> Iterator[tuple[str, Figure]]:
    for number, (source, content) in enumerate(zip(sources, drawn, strict=True), start=1):
        info = identify_picture(content) if content else None
        if info is not None:
            width, height = (max(one // _SCALE, 1) for one in (info.width, info.height))
            yield source, Figure(f"{DIAGRAM}{number}", content, replace(info, width=width, height=height))


def _find_page() -> Path:
    """Return the folder of the built page, which has the library."""
    return Path(__file__).parents[1] / "api" / "page"
