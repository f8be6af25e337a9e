"""How well a model judges claims, as measured with labelled ones, and whether that is enough."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

MAX_FALSE_MARKS = 0.03
"""The largest share of honest claims that a judge may mark."""
LEAST_HONEST = 300
"""Honest claims that a measurement needs."""
LEAST_RECALL = 0.85
"""The smallest share of wrong claims that a judge has to mark."""
NORMAL_QUANTILE = 1.96
"""The quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class JudgeMeasurement:
    """The verdicts of a model on labelled claims.

    `prompt` names the prompt that was used, because another one makes another judge. `at` is when it ended,
    in seconds since the epoch.
    """

    honest: int
    false_marks: int
    wrong: int
    caught: int
    not_checked: int
    prompt: str
    at: float

    @classmethod
    def of(cls, stored: object) -> Self | None:
        """Return a measurement from its JSON; None if it is none."""
        if not isinstance(stored, Mapping):
            return None
        values: dict[str, Any] = {one.name: stored.get(one.name) for one in fields(cls)}
        prompt, at = values.pop("prompt"), values.pop("at")
        counts = [one for one in values.values() if isinstance(one, int) and one >= 0]
        if len(counts) < len(values) or not isinstance(prompt, str) or not isinstance(at, int | float):
            return None
        return cls(**values, prompt=prompt, at=at)

    def to_json(self) -> dict[str, Any]:
        """Return its JSON, with the intervals for readers."""
        intervals = {
            "false_mark_interval": find_interval(self.false_marks, self.honest),
            "recall_interval": find_interval(self.caught, self.wrong),
        }
        return asdict(self) | intervals

    def find_objection(self, prompt: str) -> str:
        """Return why a model that was measured so does not judge claims by itself; "" if it does."""
        if self.prompt != prompt:
            return "it was measured with another prompt"
        if self.honest < LEAST_HONEST:
            return f"it was measured with {self.honest} honest claims, and {LEAST_HONEST} are needed"
        if self.false_marks > MAX_FALSE_MARKS * self.honest:
            return f"it marks more than {MAX_FALSE_MARKS:.0%} of the honest claims"
        if self.caught < LEAST_RECALL * self.wrong or not self.wrong:
            return f"it marks fewer than {LEAST_RECALL:.0%} of the wrong claims"
        return ""

    def describe(self) -> str:
        """Return the rates with their intervals, in one line."""
        return (
            f"false marks {describe_rate(self.false_marks, self.honest)}, "
            f"wrong claims marked {describe_rate(self.caught, self.wrong)}"
        )


def find_interval(hits: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, from 0 to 1 (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    share, square = hits / total, NORMAL_QUANTILE**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    half = NORMAL_QUANTILE * spread / (1 + square / total)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def describe_rate(hits: int, total: int) -> str:
    """Return a share with its interval as text: `3 of 300 = 1.0 % (0.3 to 2.9)`."""
    low, high = find_interval(hits, total)
    return f"{hits} of {total} = {100 * hits / max(total, 1):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
