"""What a run had used, as far as its events tell."""

from collections.abc import Iterable, Mapping

from maniple.agents.budget import Prices
from maniple.agents.meter import credible
from maniple.events import Event, ToolCalled
from maniple.events import Usage as ModelUsage
from maniple.store import Usage


def used_by(events: Iterable[Event], prices: Mapping[str, Prices]) -> Usage:
    """Add up the model and tool calls that `events` tell of; the seconds are those of the model calls.

    For a run whose process was killed: what it counted is gone, and its budget is not to begin anew.
    """
    told = list(events)
    calls = [event for event in told if isinstance(event, ModelUsage)]
    tokens = [(call.model, credible(call.input_tokens), credible(call.output_tokens)) for call in calls]
    free = Prices()
    return Usage(
        model_calls=len(calls),
        tool_calls=sum(isinstance(event, ToolCalled) for event in told),
        input_tokens=sum(given for _, given, _ in tokens),
        output_tokens=sum(said for _, _, said in tokens),
        seconds=sum(call.seconds for call in calls),
        cost=sum(prices.get(model, free).of(given, said) for model, given, said in tokens),
    )
