"""Tell when an agent goes round in circles: by its calls and their results, not by what it says of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from maniple.agents.observations import Observed

Kind = Literal["same", "alternating", "nothing_new"]

NUDGE_AT: dict[Kind, int] = {"same": 3, "alternating": 6, "nothing_new": 5}
"""Answers in a row after which an agent is told."""
END_AT: dict[Kind, int] = {"same": 5, "alternating": 8, "nothing_new": 10}
"""Answers in a row after which its step ends."""
PATIENCE = 3
"""So many times as long for whoever waits for something: it is expected to stay the same for a while."""
MOST_NUDGES = 3
"""Who gets stuck once more in one step after so many nudges is not nudged again."""
_NAMES, _NAME_CHARACTERS, _TRIED_CHARACTERS = 3, 60, 200

Things = frozenset[str]
"""What a result says, a digest for each thing."""
Signature = frozenset[tuple[str, Things]]
"""The calls of an answer with what they gave."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """How an agent is stuck, in words, and whether it was told in vain."""

    kind: Kind
    words: str
    is_final: bool = False


class StuckDetector:
    """Watches one step of one agent, from its first answer on.

    Stuck is: the same calls with the same results again and again; two answers in turn; calls that bring
    nothing which an earlier one did not bring. The same call with another result is progress.
    """

    def __init__(self) -> None:
        self._results: dict[str, Things] = {}
        self._known: set[str] = set()
        self._last: list[Signature] = []
        self._lasts: dict[Kind, int] = dict.fromkeys(NUDGE_AT, 0)
        self._waited = False
        self._nudges = 0
        self._is_nudged = False

    def see(self, calls: Sequence[Observed]) -> Stuck | None:
        """Take the calls of the next answer; say whether, with it, the agent is stuck."""
        found = [(one, one.call, one.found()) for one in calls]
        self._lasts["nothing_new"] = self._lasts["nothing_new"] + 1 if self._is_stale(found) else 0
        signature = frozenset((call, things) for _, call, things in found)
        before, one_before = (self._last[-1:] or [None])[0], (self._last[:-1] or [None])[0]
        self._lasts["same"] = self._lasts["same"] + 1 if signature == before else 1
        turns = signature == one_before and signature != before
        self._lasts["alternating"] = self._lasts["alternating"] + 1 if turns else min(len(self._last) + 1, 2)
        self._last = [*self._last[-1:], signature]
        waits = any(one.waits() for one in calls)
        stuck = self._verdict(calls, PATIENCE if waits or self._waited else 1)
        self._waited = waits
        return stuck

    def _is_stale(self, found: Sequence[tuple[Observed, str, Things]]) -> bool:
        """Say whether no call of an answer brings anything new, and remember what they bring."""
        stale = bool(found)
        for one, call, things in found:
            earlier = self._results.get(call)
            is_known = things == earlier if earlier is not None else one.could_be_known()
            stale = stale and is_known and things <= self._known
            self._results[call] = things
        for _, _, things in found:
            self._known |= things
        return stale

    def _verdict(self, calls: Sequence[Observed], patience: int) -> Stuck | None:
        reached: list[Kind] = [kind for kind in NUDGE_AT if self._lasts[kind] >= patience * NUDGE_AT[kind]]
        if not reached:
            self._is_nudged = False
            return None
        if not self._is_nudged:
            self._is_nudged = True
            self._nudges += 1
        is_final = self._nudges > MOST_NUDGES or any(
            self._lasts[kind] >= patience * END_AT[kind] for kind in reached
        )
        return Stuck(reached[0], _words(reached[0], self._lasts[reached[0]], calls), is_final)


def _tried(calls: Sequence[Observed]) -> str:
    """Return what the calls were given, in short."""
    return ", ".join(
        json.dumps(dict(one.arguments), ensure_ascii=False, default=str)[:_TRIED_CHARACTERS]
        for one in calls[:_NAMES]
    )


def _words(kind: Kind, answers: int, calls: Sequence[Observed]) -> str:
    names = sorted({one.name[:_NAME_CHARACTERS] for one in calls})
    named = ", ".join(names[:_NAMES]) + (", …" if len(names) > _NAMES else "")
    match kind:
        case "same":
            return (
                f"the same call of {named} was made {answers} times in a row, always with the same result: "
                f"{_tried(calls)}"
            )
        case "alternating":
            return (
                f"two calls were made in turn, {answers} in all, the last of {named}, with the same results"
            )
        case "nothing_new":
            return f"the last {answers} calls brought nothing that was not known, the last one of {named}"
