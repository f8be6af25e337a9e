"""What a run may use up, what models cost, and how far a limit is used up."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from maniple.config import ModelsSettings
from maniple.store.records import Usage


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


def prices_of(settings: ModelsSettings) -> dict[str, Prices]:
    """Return what the configured models and their fallbacks cost, by name; without a price they cost nothing.

    A name that stands there twice has the price that is named first.
    """
    waiting = [one for one in (settings.basic, settings.reasoning, settings.vision) if one is not None]
    prices: dict[str, Prices] = {}
    while waiting:
        one = waiting.pop(0)
        waiting.extend(one.fallbacks)
        if one.price_input is not None or one.price_output is not None:
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

    @property
    def is_over(self) -> bool:
        """Whether the call would go beyond the limit."""
        return self.used >= self.allowed or self.used + self.next > self.allowed

    def __str__(self) -> str:
        unit = "" if self.limit == "cost" else f" {self.limit.replace('_', ' ')}"
        name = "cost" if self.limit == "cost" else "budget"
        more = f", and the next call needs about {self.next:.6g}" if self.used < self.allowed else ""
        return f"the {name} of {self.allowed:.6g}{unit} is used up ({self.used:.6g} used{more})"


def amounts(used: Usage) -> dict[str, float]:
    """Return what is used, by the field of `Budget` that limits it."""
    return {
        "tokens": used.input_tokens + used.output_tokens,
        "seconds": used.seconds,
        "model_calls": used.model_calls,
        "tool_calls": used.tool_calls,
        "cost": used.cost,
    }


def levels(budget: Budget, used: Usage, **coming: float) -> Iterator[Level]:
    """Yield the level of each limit that is set; `coming` are the amounts that a call would add, by limit."""
    for limit, amount in amounts(used).items():
        allowed = getattr(budget, limit)
        # A call of one kind is no matter of the other kind's limit.
        if allowed is not None and (limit in coming or limit not in ("model_calls", "tool_calls")):
            yield Level(limit, allowed, amount, coming.get(limit, 0))
