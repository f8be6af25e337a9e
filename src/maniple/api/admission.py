"""How a request becomes a run: within what its key may use."""

from collections.abc import Awaitable, Callable

from maniple.agents.budget import Budget
from maniple.api.auth import Caller
from maniple.api.quota import budget_for, refuse_more
from maniple.api.state import Service
from maniple.runs import Accepted, RunRequest


async def admit(
    service: Service, caller: Caller, asked: Budget, request: Callable[[str, Budget], RunRequest]
) -> Accepted:
    """Submit what `request` makes of the caller's id and the budget that it may use.

    Raises what `Engine.submit` does, and `DailyLimit`.
    """

    async def submit() -> Accepted:
        budget = await budget_for(caller, asked, service.settings, service.store)
        return await service.engine.submit(request(caller.owner, budget))

    return await _in_turn(service, caller, submit)


async def readmit(service: Service, caller: Caller, go_on: Callable[[], Awaitable[Accepted]]) -> Accepted:
    """Let a waiting run go on by `go_on`, when its key may have one run more."""
    return await _in_turn(service, caller, go_on)


async def _in_turn(service: Service, caller: Caller, begin: Callable[[], Awaitable[Accepted]]) -> Accepted:
    if caller.limits.max_runs is None:
        return await begin()
    # Two requests of one key must not both take its last place.
    async with service.admission.take(caller.owner):
        refuse_more(service.engine, caller)
        return await begin()
