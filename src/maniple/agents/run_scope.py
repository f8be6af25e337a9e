"""What a run carries along for its agents and tools: its records, its budget, its approvals."""

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

KeepFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Stores (name, media type, content) and returns the artifact's id; None when the run may store no more."""


def _is_never_watched() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run that an agent works in. The default, as outside of our runs, records and forbids nothing.

    It travels in `configurable[SCOPE_KEY]`; that is the only place where a run's own objects are found.
    """

    run_id: str = ""
    """The id that the ledger's records belong to. A resumed or recovered run has the same id."""
    ledger: ToolCallLedger | None = None
    meter: UsageMeter | None = None
    approval: frozenset[str] = frozenset()
    """Names of the tools that run only after the user has approved their exact arguments."""
    plan_edits: PendingPlanEdits | None = None
    """The changes of the plan that the user asked for."""
    evidence: Evidence | None = None
    """Where the run's tools record what they read (`maniple.tools.evidence`)."""
    thread_evidence: ThreadEvidence = field(default_factory=ThreadEvidence, compare=False)
    """The evidence by thread, for runs that have none of their own (in a foreign graph)."""
    is_watched: Callable[[], bool] = _is_never_watched
    """Whether a client follows the run right now."""
    keep_file: KeepFile | None = None
    """Stores a file that the run made for its clients."""

    def evidence_of(self, thread_id: str) -> Evidence:
        """Return the run's evidence, else that of its thread."""
        return self.thread_evidence.of(thread_id) if self.evidence is None else self.evidence


def run_scope() -> RunScope:
    """Return the current run's scope; the default one outside of a run of the team."""
    scope = configurable().get(SCOPE_KEY)
    return scope if isinstance(scope, RunScope) else RunScope()


def task_key() -> str:
    """Return what names the current task of the graph, `node:uuid`; "" outside of a run.

    LangGraph derives it from the checkpoint that the task begins at: it is the same when the task is
    executed again after an interrupt or a crash, and another one when its node is entered again.
    """
    return str(configurable().get("checkpoint_ns") or "").rpartition("|")[2]
