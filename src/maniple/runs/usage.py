"""The usage of a run and of each of its agents, with the cost at the configured prices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from maniple.agents.budget import Prices, find_price
from maniple.events import UsageTotals
from maniple.store import RunUsage


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """What one agent has used of a run. `seconds` are those of its model calls.

    `cost` counts the models that have a price; `is_priced` is False when the agent also called others.
    """

    agent_name: str
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    is_priced: bool = True


def usage_by_agent(totals: UsageTotals, prices: Mapping[str, Prices]) -> list[AgentUsage]:
    """Return the usage of each agent, in the order of their first model calls."""
    agents: dict[str, AgentUsage] = {}
    for one in totals.by_model.values():
        price = find_price(prices, one.model)
        before = agents.get(one.agent_name, AgentUsage(one.agent_name))
        agents[one.agent_name] = replace(
            before,
            model_calls=before.model_calls + one.calls,
            input_tokens=before.input_tokens + one.input_tokens,
            output_tokens=before.output_tokens + one.output_tokens,
            seconds=before.seconds + one.seconds,
            cost=before.cost + (price.of(one.input_tokens, one.output_tokens) if price else 0.0),
            is_priced=before.is_priced and price is not None,
        )
    return [*agents.values()]


def usage_of_run(totals: UsageTotals, prices: Mapping[str, Prices]) -> RunUsage:
    """Return the usage of a whole run; `seconds` are those of its model calls.

    It restores the count of a run whose process was killed, so that its budget does not begin again.
    """
    agents = usage_by_agent(totals, prices)
    return RunUsage(
        model_calls=totals.model_calls,
        tool_calls=totals.tool_calls,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        seconds=sum(one.seconds for one in agents),
        cost=sum(one.cost for one in agents),
    )
