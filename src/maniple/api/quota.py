"""What a key may use: runs at once, and amounts in any 24 hours."""

import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from maniple.agents.budget import Budget
from maniple.api.auth import Caller
from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.runs import Engine, TooManyRuns
from maniple.store import KeyLimits, Store, Usage

DAY_SECONDS = 24 * 3600.0


class DailyLimit(ManipleError):
    """The key has used up one of its daily amounts."""

    code = "daily_limit"
    retryable = True


def lowest(*budgets: Budget) -> Budget:
    """Return the lowest of each limit; one that is set nowhere stays unset."""
    found: dict[str, Any] = {}
    for one in fields(Budget):
        limits = [limit for budget in budgets if (limit := getattr(budget, one.name)) is not None]
        found[one.name] = min(limits, default=None)
    return Budget(**found)


async def budget_for(caller: Caller, asked: Budget, settings: Settings, store: Store) -> Budget:
    """Return what a run may use: as much as server, key and client allow at most.

    Runs under way count when they end. Raises `DailyLimit` when nothing is left of the key's day.
    """
    allowed = Budget(**settings.runs.budget.model_dump())
    left = await _left(caller, store)
    return lowest(allowed, left, asked)


def refuse_more(engine: Engine, caller: Caller) -> None:
    """Raise `TooManyRuns` when the key has as many runs under way as it may."""
    most = caller.limits.max_runs
    if most is not None and engine.under_way(caller.owner) >= most:
        raise TooManyRuns(
            f"{most} runs of this key are under way, which is its limit. Try again when one has ended."
        )


async def _left(caller: Caller, store: Store) -> Budget:
    daily = dict(_daily(caller.limits))
    if not daily:
        return Budget()
    used = _amounts(await store.runs.used(caller.owner, time.time() - DAY_SECONDS))
    for name, limit in daily.items():
        if used[name] >= limit:
            raise DailyLimit(
                f"This key has used up its {name.replace('_', ' ')} of a day: {used[name]:.6g} of "
                f"{limit:.6g} in the last 24 hours. Try again later."
            )
    return Budget(**{name: limit - used[name] for name, limit in daily.items()})


def _daily(limits: KeyLimits) -> Iterator[tuple[str, Any]]:
    for one in fields(Budget):
        limit = getattr(limits, f"daily_{one.name}")
        if limit is not None:
            yield one.name, limit


def _amounts(used: Usage) -> dict[str, Any]:
    return {
        "tokens": used.input_tokens + used.output_tokens,
        "seconds": used.seconds,
        "model_calls": used.model_calls,
        "tool_calls": used.tool_calls,
        "cost": used.cost,
    }
