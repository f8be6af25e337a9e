"""The objects of a run that its agents and tools use: ledger, budget, approvals, evidence."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from maniple.agents.budget import Budget, Prices, UsageMeter
from maniple.agents.step_board import StepBoard
from maniple.evidence import MemoryEvidence
from maniple.store.records import RunUsage, ToolCallRecord
from maniple.tools.run_context import SCOPE_KEY, configurable

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from maniple.agents.plan_edits import PendingPlanEdits
    from maniple.evidence import Evidence
    from maniple.store.protocols import ToolCallLedger

StoreFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Stores (name, media type, content) and returns the artifact's id; None when the run may store no more."""

MAX_IDLE_RUNS = 32
MAX_RUN_CHARACTERS = 2_000_000


def _is_never_watched() -> bool:
    return False


def _new_evidence() -> Evidence:
    return MemoryEvidence(MAX_RUN_CHARACTERS)


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run that an agent works in. The default, for calls outside of a run, records and forbids nothing.

    It is passed in `configurable[SCOPE_KEY]`, the only place where agents and tools find a run's objects.
    """

    run_id: str = ""
    """The id of the run in the ledger. A resumed or recovered run has the same id."""
    ledger: ToolCallLedger | None = None
    meter: UsageMeter | None = None
    approval: frozenset[str] = frozenset()
    """Names of the tools that run only after the user has approved their exact arguments."""
    plan_edits: PendingPlanEdits | None = None
    """The changes of the plan that the user requests."""
    evidence: Evidence = field(default_factory=_new_evidence, compare=False)
    """The record of what the run's tools read (`maniple.tools.evidence`)."""
    is_watched: Callable[[], bool] = _is_never_watched
    """Whether a client follows the run right now."""
    store_file: StoreFile | None = None
    """Stores a file that the run made for its clients."""
    thread_id: str = ""
    """Names the run's files, variables and pages; "" until the graph's first node has decided it."""
    board: StepBoard = field(default_factory=StepBoard, compare=False)
    """Where the steps that run concurrently wait for each other."""
    can_pause: bool = True
    """Whether a question can interrupt the run and be answered later: a checkpointer is needed."""

    @property
    def callbacks(self) -> Sequence[BaseCallbackHandler]:
        """The handlers that count its calls; first in the config, so that nobody hears of a refused call."""
        return self.meter.callbacks if self.meter is not None else ()


def run_scope() -> RunScope:
    """Return the current run's scope; the default one outside of a run of the team."""
    scope = configurable().get(SCOPE_KEY)
    return scope if isinstance(scope, RunScope) else RunScope()


def task_key() -> str:
    """Return the key of the current task of the graph, `node:uuid`; "" outside of a run.

    LangGraph derives it from the checkpoint at which the task begins. It stays the same if the task is
    executed
    again after an interrupt or a crash. It differs if the node is entered again.
    """
    return str(configurable().get("checkpoint_ns") or "").rpartition("|")[2]


class MemoryLedger:
    """The tool calls of one run, in memory; see `maniple.store.protocols.ToolCallLedger`."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallRecord] = {}

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        """Record the intent. A known call is returned with one more attempt."""
        known = self._calls.get(tool_call_id)
        new = ToolCallRecord(run_id, tool_call_id, tool_name, arguments, None, time.time())
        self._calls[tool_call_id] = new if known is None else replace(known, attempts=known.attempts + 1)
        return self._calls[tool_call_id]

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        """Record the result, unless one is recorded already."""
        call = self._calls[tool_call_id]
        if call.result is None:
            self._calls[tool_call_id] = replace(call, result=result, ended_at=time.time())

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        """Return the calls in the order in which they began."""
        return list(self._calls.values())


@dataclass(slots=True)
class _OpenRun:
    scope: RunScope
    meter: UsageMeter
    users: int = 0
    """How many nodes of the run are at work."""


class RunScopeRegistry:
    """The scopes of runs that no engine drives: in a foreign graph, in Studio, by `stream_run`.

    It travels with the compiled graph, so the same rules hold wherever that is run. The records of a run are
    in memory: those of all runs at work, and of the `MAX_IDLE_RUNS` others that were used last.
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
    def enter(self, run_id: str, thread_id: str, used: RunUsage | None = None) -> Generator[RunScope]:
        """Yield the scope of a run to one of its nodes; the seconds of its budget pass meanwhile.

        `used` is what a run that is not known here, as after a restart, has used before.
        """
        if (run := self._runs.get(run_id)) is None:
            run = self._runs[run_id] = self._open(run_id, thread_id, used)
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

    def exhausted(self, run_id: str) -> str | None:
        """Return which limit took something from the run; `None` if none did."""
        run = self._runs.get(run_id)
        return run.meter.exhausted if run is not None else None

    def _open(self, run_id: str, thread_id: str, used: RunUsage | None) -> _OpenRun:
        meter = UsageMeter(self._budget, self._prices, used)
        scope = RunScope(run_id, MemoryLedger(), meter, self._approval, thread_id=thread_id)
        # A follow-up may cite what an earlier run of its thread has read.
        earlier = (run.scope for run in reversed(self._runs.values()) if run.scope.thread_id == thread_id)
        evidence = next((one.evidence for one in earlier), scope.evidence)
        return _OpenRun(replace(scope, evidence=evidence), meter)

    def _forget_idle(self) -> None:
        idle = [run_id for run_id, run in self._runs.items() if not run.users]
        for run_id in idle[: max(0, len(idle) - MAX_IDLE_RUNS)]:
            del self._runs[run_id]
