"""What a run may use up, what models cost, and how far a limit is used up."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from maniple.config import ModelsSettings
from maniple.store.records import Usage

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one run; `None` is none. `cost` is in the currency of the prices."""

    tokens: int | None = None
    """Input and output together."""
    seconds: float | None = None
    """Of work: the time in which a run waits for people does not count."""
    model_calls: int | None = None
    tool_calls: int | None = None
    cost: float | None = None

    def within(self, ceiling: "Budget") -> "Budget":
        """Return this budget with no limit above that of `ceiling`."""
        both = {
            field.name: (getattr(self, field.name), getattr(ceiling, field.name)) for field in fields(self)
        }
        return Budget(
            **{
                name: min((one for one in pair if one is not None), default=None)
                for name, pair in both.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs, per million tokens, in any one currency."""

    input: float = 0.0
    output: float = 0.0

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Return what so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


def price_of(prices: Mapping[str, Prices], model: str) -> Prices | None:
    """Return what a model costs, by the name that its answer has: at times its own with a date behind it."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


def prices_of(settings: ModelsSettings) -> dict[str, Prices]:
    """Return what the configured models and their fallbacks cost, by name; without a price they cost nothing.

    A name that stands there twice has the price that is named first.
    """
    prices: dict[str, Prices] = {}
    for one in settings.each():
        if one.has_price:
            prices.setdefault(one.model, Prices(one.price_input or 0.0, one.price_output or 0.0))
    return prices


@dataclass(frozen=True, slots=True)
class Level:
    """How far one limit is used up."""

    limit: str
    """The field of `Budget`."""
    allowed: float
    used: float
    next: float = 0
    """What the call that is asked for would add, as far as it can be known."""
    is_daily: bool = False
    """Whether it is a limit of the key's day, which all its runs share, and not one of the run."""

    @property
    def is_over(self) -> bool:
        """Whether the call would go beyond the limit."""
        return self.used >= self.allowed or self.used + self.next > self.allowed

    @property
    def left(self) -> float:
        """How much may still be used."""
        return max(self.allowed - self.used, 0)

    @property
    def whose(self) -> str:
        """Whose limit it is, in words."""
        return "the key's daily limit" if self.is_daily else "the run's budget"

    def __str__(self) -> str:
        more = f", and the next call needs about {self.next:.6g}" if self.used < self.allowed else ""
        return f"{self._name} is used up ({self.used:.6g} used{more})"

    @property
    def _name(self) -> str:
        is_cost = self.limit == "cost"
        amount = f"{self.allowed:.6g}" if is_cost else f"{self.allowed:.6g} {self.limit.replace('_', ' ')}"
        if self.is_daily:
            return f"{self.whose} of {amount}{' (cost)' if is_cost else ''}"
        return f"the {'cost' if is_cost else 'budget'} of {amount}"


class SharedLimits(Protocol):
    """Limits that a run has in common with others."""

    def levels(self, **coming: float) -> Iterable[Level]:
        """Yield how far all together, this run included, have used each up; see `levels`."""
        ...


LIMITS = tuple(field.name for field in fields(Budget))
"""What can be limited."""


def amount(used: Usage, limit: str) -> float:
    """Return how much is used of what a field of `Budget` limits."""
    return used.input_tokens + used.output_tokens if limit == "tokens" else getattr(used, limit)


def amounts(used: Usage) -> dict[str, float]:
    """Return what is used, by the field of `Budget` that limits it."""
    return {limit: amount(used, limit) for limit in LIMITS}


def levels(
    budget: Budget,
    used: Mapping[str, float],
    coming: Mapping[str, float],
    reserved: Mapping[str, float],
    *,
    is_daily: bool = False,
) -> Iterator[Level]:
    """Yield the level of each limit that is set; all amounts are by limit.

    `coming` are those that a call would add, `reserved` those that calls under way will use for certain.
    """
    for limit, so_far in used.items():
        allowed = getattr(budget, limit)
        # A call of one kind is no matter of the other kind's limit.
        if allowed is not None and (limit in coming or limit not in ("model_calls", "tool_calls")):
            added = coming[limit] + reserved.get(limit, 0) if limit in coming else 0
            yield Level(limit, allowed, so_far, added, is_daily)
