"""Who may have one run more."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from maniple.runs.active import ActiveRun
from maniple.runs.failures import Stopping, TooManyRuns
from maniple.runs.quota import Quotas
from maniple.runs.rules import Limits


class Admission:
    """Decides whether one run more is taken; `active` are those under way, by id."""

    def __init__(self, limits: Limits, active: Mapping[str, ActiveRun], quotas: Quotas) -> None:
        self._limits = limits
        self._active = active
        self._quotas = quotas
        self._coming: Counter[str] = Counter()
        self._closed = False

    def close(self) -> None:
        """Take no more."""
        self._closed = True

    def _under_way(self, owner: str) -> int:
        return self._coming[owner] + sum(run.record.owner == owner for run in self._active.values())

    @asynccontextmanager
    async def admit(self, owner: str) -> AsyncIterator[None]:
        """Keep a place while a run is begun; raises `Stopping`, `TooManyRuns` or `DailyLimit`."""
        allowance = await self._quotas.refreshed(owner)
        self._refuse_when_full(owner, allowance.limits.max_runs)
        allowance.refuse_when_used_up()
        self._coming[owner] += 1
        try:
            yield
        finally:
            self._coming[owner] -= 1

    def _refuse_when_full(self, owner: str, most: int | None) -> None:
        if self._closed:
            raise Stopping("The service is about to stop. Try again in a moment.")
        if len(self._active) + self._coming.total() >= self._limits.under_way:
            raise TooManyRuns(
                f"{self._limits.under_way} runs are under way or waiting, which is the limit. "
                "Try again in a moment."
            )
        allowed = min((one for one in (self._limits.per_owner, most) if one is not None), default=None)
        if allowed is not None and self._under_way(owner) >= allowed:
            raise TooManyRuns(
                f"{allowed} runs of this key are under way, which is its limit. Try again when one has ended."
            )
