"""Tell when an agent goes round in circles: by its calls and their results, not by what it says of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from maniple.agents.leads import Leads
from maniple.agents.observations import Observed

Kind = Literal["same", "alternating", "nothing_new", "unchanged"]

NUDGE_AT: dict[Kind, int] = {"same": 3, "alternating": 6, "nothing_new": 5, "unchanged": 15}
"""Answers in a row after which an agent is told."""
END_AT: dict[Kind, int] = {"same": 5, "alternating": 8, "nothing_new": 10, "unchanged": 22}
"""Answers in a row after which its step ends."""
PATIENCE = 3
"""So many times as long for whoever waits for something: it is expected to stay the same for a while."""
BLIND_PATIENCE = 15
"""So many times as long for who does the same and is told only that it was done: it may be `Next`."""
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
    nothing which an earlier one did not bring; and after a longer while, other calls that are all told the
    same few words. The same call with another result is progress. So is what becomes of the addresses that
    the texts it was `told` and its results name.
    """

    def __init__(self, told: Iterable[str] = ()) -> None:
        self._leads = Leads()
        for text in told:
            self._leads.take(text)
        self._gists: set[str] = set()
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
        is_stale, is_unchanged = self._is_stale(found), self._is_unchanged(calls)
        self._lasts["nothing_new"] = self._lasts["nothing_new"] + 1 if is_stale else 0
        self._lasts["unchanged"] = self._lasts["unchanged"] + 1 if is_stale or is_unchanged else 0
        signature = frozenset((call, things) for _, call, things in found)
        before, one_before = (self._last[-1:] or [None])[0], (self._last[:-1] or [None])[0]
        self._lasts["same"] = self._lasts["same"] + 1 if signature == before else 1
        turns = signature == one_before and signature != before
        self._lasts["alternating"] = self._lasts["alternating"] + 1 if turns else min(len(self._last) + 1, 2)
        self._last = [*self._last[-1:], signature]
        waits = any(one.waits() for one in calls)
        patience: dict[Kind, int] = dict.fromkeys(NUDGE_AT, PATIENCE if waits or self._waited else 1)
        if calls and all(one.is_blind for one in calls):
            patience |= {"same": BLIND_PATIENCE, "nothing_new": BLIND_PATIENCE, "unchanged": BLIND_PATIENCE}
        self._waited = waits
        for one in calls:
            if not one.failed:
                self._leads.take(one.result)
        return self._verdict(calls, patience)

    def _is_stale(self, found: Sequence[tuple[Observed, str, Things]]) -> bool:
        """Say whether no call of an answer brings anything new, and remember what they bring."""
        stale = bool(found)
        for one, call, things in found:
            earlier = self._results.get(call)
            is_known = things == earlier if earlier is not None else self._could_be_known(one)
            stale = stale and is_known and things <= self._known
            self._results[call] = things
        for _, _, things in found:
            self._known |= things
        return stale

    def _could_be_known(self, one: Observed) -> bool:
        return one.could_be_known() and not (one.failed and self._leads.are_followed_by(one.arguments))

    def _is_unchanged(self, calls: Sequence[Observed]) -> bool:
        """Say whether all calls of an answer were told what others were, and remember what they were told."""
        gists = {one.gist() for one in calls if not self._leads.are_followed_by(one.arguments)}
        unchanged = bool(gists) and "" not in gists and gists <= self._gists
        self._gists |= gists
        return unchanged

    def _verdict(self, calls: Sequence[Observed], patience: Mapping[Kind, int]) -> Stuck | None:
        reached: list[Kind] = [
            kind for kind in NUDGE_AT if self._lasts[kind] >= patience[kind] * NUDGE_AT[kind]
        ]
        if not reached:
            self._is_nudged = False
            return None
        if not self._is_nudged:
            self._is_nudged = True
            self._nudges += 1
        is_final = self._nudges > MOST_NUDGES or any(
            self._lasts[kind] >= patience[kind] * END_AT[kind] for kind in reached
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
        case "unchanged":
            return f"the last {answers} calls were all told the same few words, the last one of {named}"
