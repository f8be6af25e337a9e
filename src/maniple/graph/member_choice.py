"""Chooses the member for a whole request without a model, where no plan says who works on it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from maniple.agents.compact import FILE_NAME
from maniple.agents.hand_work import find_ordered_work
from maniple.tools.web import find_address
from maniple.types import Worker

_READERS: tuple[Worker, ...] = ("researcher", "browser")
_COMPUTING: tuple[Worker, ...] = ("coder",)
_FILING: tuple[Worker, ...] = ("coder", "file_manager")
_ARITHMETIC = re.compile(r"\d\s*[+*/×÷^%]\s*\d|\d\s+[-–−]\s+\d|=\s*\?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_STEM_CHARACTERS = 6
"""Words with the same beginning of this length are one, such as `calculate` and `calculation`."""


def choose_member(
    request: str, members: Sequence[Worker], briefs: Mapping[Worker, str], written: str = ""
) -> Worker | None:
    """Return the member that fits a request best; None if `members` is empty.

    It is the only one that `written`, the planner's text, or the request names; else the one whose tools the
    request needs; else the one whose brief has the most words of the request that no other brief has; else
    the first.
    """
    for text in (written, request):
        named = [name for name in members if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
        if len(named) == 1:
            return named[0]
    able = next((name for name in _find_able(request) if name in members), None)
    return able or _find_described(request, members, briefs) or next(iter(members), None)


def _find_able(request: str) -> list[Worker]:
    """Return the built-in members that have the tools for a request, the best first."""
    address = find_address(request)
    ordered = find_ordered_work(request, has_address=address is not None)
    able: list[Worker] = []
    if "runs" in ordered or "draws" in ordered:
        able += _COMPUTING
    if address is not None:
        able += _READERS
    if _ARITHMETIC.search(request):
        able += _COMPUTING
    if "saves" in ordered or FILE_NAME.search(request):
        able += _FILING
    return able


def _find_described(request: str, members: Sequence[Worker], briefs: Mapping[Worker, str]) -> Worker | None:
    asked = _stems(request)
    known = {name: _stems(briefs.get(name, "")) for name in members}
    uses = Counter(stem for stems in known.values() for stem in stems)
    scores = {name: sum(uses[stem] == 1 for stem in stems & asked) for name, stems in known.items()}
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] else None


def _stems(text: str) -> set[str]:
    return {word[:_STEM_CHARACTERS] for word in _WORD.findall(text.casefold())}
