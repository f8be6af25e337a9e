"""What a key may use in any 24 hours."""

import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from maniple.agents.budget import Budget, amounts
from maniple.api.auth import Caller
from maniple.errors import ManipleError
from maniple.store import KeyLimits, Store

DAY_SECONDS = 24 * 3600.0


class DailyLimit(ManipleError):
    """The key has used up one of its daily amounts."""

    code = "daily_limit"
    retryable = True


async def left_of(caller: Caller, store: Store) -> Budget:
    """Return what is left of the key's day.

    Runs under way count when they end. Raises `DailyLimit` when nothing is left of one of its amounts.
    """
    daily = dict(_daily(caller.limits))
    if not daily:
        return Budget()
    used = amounts(await store.runs.used(caller.owner, time.time() - DAY_SECONDS))
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
