"""The objects of a run that its agents and tools use: ledger, budget, approvals, evidence."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maniple.agents.budget import Budget, Prices, UsageMeter
from maniple.agents.call_ledgers import MemoryLedger
from maniple.agents.inbox import Inbox
from maniple.evidence import MemoryEvidence
from maniple.langgraph_internals import task_of
from maniple.store.records import RunUsage
from maniple.tools.run_context import SCOPE_KEY, configurable

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from maniple.agents.turn_record import EndedRun
    from maniple.evidence import Evidence
    from maniple.store.protocols import ToolCallLedger
    from maniple.tools.questions import Asker

StoreFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Stores (name, media type, content) and returns the artifact's id; None when the run may store no more."""

MAX_IDLE_RUNS = 32
MAX_IDLE_CHARACTERS = 8_000_000
"""The number of characters of evidence that is stored for idle runs."""
MAX_RUN_CHARACTERS = 2_000_000


def _is_never_watched() -> bool:
    return False


def _new_evidence() -> MemoryEvidence:
    return MemoryEvidence(MAX_RUN_CHARACTERS)


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run that an agent works for. The default, for calls outside of a run, has no records and no limits.

    It is passed in `configurable[SCOPE_KEY]`, the only place where agents and tools find a run's objects.
    """

    run_id: str = ""
    """The id of the run in the ledger. A resumed or recovered run has the same id."""
    ledger: ToolCallLedger | None = None
    meter: UsageMeter | None = None
    approval: frozenset[str] = frozenset()
    """Names of the tools that run only after the user has approved their exact arguments."""
    inbox: Inbox = field(default_factory=Inbox, compare=False)
    """What is sent to the run while it works."""
    evidence: Evidence = field(default_factory=_new_evidence, compare=False)
    """The record of what the run's tools read (`maniple.tools.evidence`)."""
    is_watched: Callable[[], bool] = _is_never_watched
    """Whether a client follows the run right now."""
    store_file: StoreFile | None = None
    """Stores a file that the run made for its clients."""
    thread_id: str = ""
    """The key of the run's files, variables and pages; "" until the graph's first node has chosen it."""
    waves: dict[str, tuple[int, Any]] = field(default_factory=dict[str, tuple[int, Any]], compare=False)
    """The wave of concurrent steps, with its number, of each graph of the run (its checkpoint namespace)."""
    asker: Asker | None = None
    """Asks the user for the present step; None if the run pauses for every question."""
    read_runs: Callable[[Collection[str]], Awaitable[Sequence[EndedRun]]] | None = None
    """Reads the newest ended runs of the thread but those with these ids, oldest first.

    None where runs are not stored.
    """
    can_pause: bool = True
    """Whether a question can interrupt the run and be answered later: a checkpointer is needed."""

    @property
    def callbacks(self) -> Sequence[BaseCallbackHandler]:
        """The handlers that count its calls. They come first, so that refused calls are not reported."""
        return self.meter.callbacks if self.meter is not None else ()


def run_scope() -> RunScope:
    """Return the current run's scope; the default one outside of a run of the team."""
    scope = configurable().get(SCOPE_KEY)
    return scope if isinstance(scope, RunScope) else RunScope()


def task_key() -> str:
    """Return the key of the current task (`task_of`); "" outside of a run."""
    return task_of(configurable())


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

    def _open(self, run_id: str, thread_id: str, used: RunUsage | None) -> _OpenRun:
        meter = UsageMeter(self._budget, self._prices, used)
        # A follow-up may cite what an earlier run of its thread has read.
        earlier = (run for run in reversed(self._runs.values()) if run.scope.thread_id == thread_id)
        evidence = next((one.evidence for one in earlier), None) or _new_evidence()
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
