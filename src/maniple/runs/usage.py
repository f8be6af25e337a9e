"""What a run has used, as far as its events tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from maniple.agents.budget import Prices, price_of
from maniple.agents.meter import credible
from maniple.events import Event, ToolCalled
from maniple.events import Usage as ModelUsage
from maniple.store import Usage

Shares = Mapping[str, "Share"]


@dataclass(frozen=True, slots=True)
class Share:
    """What one member of the team has used of a run; the seconds are those of its model calls.

    `cost` is that of the models that have a price; without `is_priced` it asked others, too.
    """

    agent_name: str
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    is_priced: bool = True

    def with_call(self, call: ModelUsage, prices: Mapping[str, Prices]) -> "Share":
        """Return the share with one model call more."""
        given, said = credible(call.input_tokens), credible(call.output_tokens)
        price = price_of(prices, call.model)
        return Share(
            self.agent_name,
            self.model_calls + 1,
            self.input_tokens + given,
            self.output_tokens + said,
            self.seconds + call.seconds,
            self.cost + (price.of(given, said) if price else 0.0),
            self.is_priced and price is not None,
        )


def with_calls(shares: Shares, events: Iterable[Event], prices: Mapping[str, Prices]) -> Shares:
    """Return the shares, by agent in the order of first calls, with the model calls that `events` tell."""
    more = dict(shares)
    for event in events:
        if isinstance(event, ModelUsage):
            share = more.get(event.agent_name) or Share(event.agent_name)
            more[event.agent_name] = share.with_call(event, prices)
    return more


def used_by(events: Iterable[Event], prices: Mapping[str, Prices]) -> Usage:
    """Add up the model and tool calls that `events` tell of; the seconds are those of the model calls.

    For a run whose process was killed: what it counted is gone, and its budget is not to begin anew.
    """
    told = list(events)
    shares = with_calls({}, told, prices).values()
    return Usage(
        model_calls=sum(share.model_calls for share in shares),
        tool_calls=sum(isinstance(event, ToolCalled) for event in told),
        input_tokens=sum(share.input_tokens for share in shares),
        output_tokens=sum(share.output_tokens for share in shares),
        seconds=sum(share.seconds for share in shares),
        cost=sum(share.cost for share in shares),
    )
