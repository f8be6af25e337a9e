"""The objects of a run that its agents and tools use: ledger, budget, approvals, evidence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maniple.tools.evidence import ThreadEvidence
from maniple.tools.run_context import SCOPE_KEY, configurable

if TYPE_CHECKING:
    from maniple.agents.budget import UsageMeter
    from maniple.agents.plan_edits import PendingPlanEdits
    from maniple.evidence import Evidence
    from maniple.store.protocols import ToolCallLedger

StoreFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Stores (name, media type, content) and returns the artifact's id; None when the run may store no more."""


def _is_never_watched() -> bool:
    return False


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
    evidence: Evidence | None = None
    """The record of what the run's tools read (`maniple.tools.evidence`)."""
    thread_evidence: ThreadEvidence = field(default_factory=ThreadEvidence, compare=False)
    """The evidence by thread, for calls without a run, as in a foreign graph."""
    is_watched: Callable[[], bool] = _is_never_watched
    """Whether a client follows the run right now."""
    store_file: StoreFile | None = None
    """Stores a file that the run made for its clients."""

    def evidence_of(self, thread_id: str) -> Evidence:
        """Return the run's evidence, else that of its thread."""
        return self.thread_evidence.of(thread_id) if self.evidence is None else self.evidence


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
