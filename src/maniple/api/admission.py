"""How a request becomes a run: within what its key may use."""

from collections.abc import Callable

from maniple.agents.budget import Budget
from maniple.api.auth import Caller
from maniple.api.quota import left_of
from maniple.api.state import Service
from maniple.runs import Accepted, RunRequest


async def admit(
    service: Service, caller: Caller, asked: Budget, request: Callable[[str, Budget], RunRequest]
) -> Accepted:
    """Submit what `request` makes of the caller's id and the budget that it may use.

    Raises what `Engine.submit` does, and `DailyLimit`.
    """
    budget = asked.within(await left_of(caller, service.store))
    return await service.engine.submit(request(caller.owner, budget), most=caller.limits.max_runs)
