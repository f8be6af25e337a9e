"""The scopes of runs without an engine."""

from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from maniple.evidence import MemoryEvidence, Source
from maniple.scope.budget import Budget, Prices, UsageMeter
from maniple.scope.call_ledgers import MemoryLedger
from maniple.scope.run_scope import RunScope, new_evidence
from maniple.store.records import RunUsage

MAX_IDLE_RUNS = 32
MAX_IDLE_CHARACTERS = 8_000_000
"""The number of characters of evidence that is stored for idle runs."""


@dataclass(slots=True)
class _OpenRun:
    scope: RunScope
    meter: UsageMeter
    ledger: MemoryLedger
    evidence: MemoryEvidence
    """Shared by the runs of a thread."""
    users: int = 0
    """The number of the run's nodes that are running."""


class RunScopeRegistry:
    """The scopes of runs without an engine: in a foreign graph, in Studio, by `stream_run`.

    It belongs to the compiled graph, so the same rules apply wherever that runs. The records of runs are in
    memory: those of all active runs and of the most recent others, up to `MAX_IDLE_RUNS` and
    `MAX_IDLE_CHARACTERS`. The tool calls of a run are stored in the ledger that `enter` is given, without one
    in memory until the run ends.
    """

    def __init__(
        self,
        approval: frozenset[str] = frozenset(),
        budget: Budget | None = None,
        prices: Mapping[str, Prices] | None = None,
    ) -> None:
        self._approval = approval
        self._budget = budget or Budget()
        self._prices = prices or {}
        self._runs: OrderedDict[str, _OpenRun] = OrderedDict()

    @contextmanager
    def enter(
        self,
        run_id: str,
        thread_id: str,
        used: RunUsage | None = None,
        ledger: MemoryLedger | None = None,
    ) -> Generator[RunScope]:
        """Yield the scope of a run to one of its nodes; the time in the context counts for its budget.

        `used` is the earlier usage of a run that is not known here, for example after a restart. A new
        `ledger` replaces that of earlier nodes: another process may have continued the run meanwhile.
        """
        if (run := self._runs.get(run_id)) is None:
            run = self._runs[run_id] = self._open(run_id, thread_id, used)
        if ledger is not None and not run.users:
            run.ledger, run.scope = ledger, replace(run.scope, ledger=ledger)
        run.users += 1
        run.meter.start()
        try:
            yield run.scope
        finally:
            run.users -= 1
            if not run.users:
                run.meter.stop()
            self._runs.move_to_end(run_id)
            self._forget_idle()

    def end(self, run_id: str) -> None:
        """Forget the tool calls of a run that is over. A follow-up may still need what it has read."""
        if (run := self._runs.get(run_id)) is not None:
            run.ledger.clear()

    def exhausted(self, run_id: str) -> str | None:
        """Return the limit that the run has reached; `None` if it has not reached any."""
        run = self._runs.get(run_id)
        return run.meter.exhausted if run is not None else None

    async def sources(self, run_id: str) -> Sequence[Source]:
        """Return what the thread of a run has found or read, by number; none for a run that is not known."""
        run = self._runs.get(run_id)
        return await run.evidence.sources() if run is not None else ()

    def _open(self, run_id: str, thread_id: str, used: RunUsage | None) -> _OpenRun:
        meter = UsageMeter(self._budget, self._prices, used)
        # A follow-up may cite what an earlier run of its thread has read.
        earlier = (run for run in reversed(self._runs.values()) if run.scope.thread_id == thread_id)
        evidence = next((one.evidence for one in earlier), None) or new_evidence()
        ledger = MemoryLedger()
        scope = RunScope(run_id, ledger, meter, self._approval, evidence=evidence, thread_id=thread_id)
        return _OpenRun(scope, meter, ledger, evidence)

    def _forget_idle(self) -> None:
        stored = {id(run.evidence) for run in self._runs.values() if run.users}
        idle = [run_id for run_id, run in self._runs.items() if not run.users]
        characters = 0
        for count, run_id in enumerate(reversed(idle), start=1):
            evidence = self._runs[run_id].evidence
            characters += 0 if id(evidence) in stored else evidence.characters
            stored.add(id(evidence))
            if count > MAX_IDLE_RUNS or characters > MAX_IDLE_CHARACTERS:
                del self._runs[run_id]
