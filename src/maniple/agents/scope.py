"""What a run brings along for its agents: its records, its budget, and what needs the user's word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.tools.scope import configurable

if TYPE_CHECKING:
    from maniple.agents.meter import Meter
    from maniple.agents.wishes import Wishes
    from maniple.evidence import Evidence
    from maniple.store.protocols import Ledger

SCOPE_KEY = "maniple_scope"
"""Where the scope stands in a run's `configurable`.

Checkpoints and traces copy only text, numbers and truth values from there, so the scope is never stored;
every subgraph inherits it.
"""


KeepFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Keeps (name, media type, content) and returns the artifact's id; None when the run may keep no more."""


def _nobody() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run that an agent works in. An empty one, as outside of our runs, records and forbids nothing."""

    run_id: str = ""
    """Whose records count. A run that is resumed or recovered keeps its id, or it finds none of them."""
    ledger: Ledger | None = None
    meter: Meter | None = None
    approval: frozenset[str] = frozenset()
    """Names of the tools that run only after the user has approved their exact arguments."""
    wishes: Wishes | None = None
    """Where the run finds what the user wants changed in its plan."""
    evidence: Evidence | None = None
    """Where the run's tools record what they read (`maniple.tools.evidence`)."""
    is_watched: Callable[[], bool] = _nobody
    """Says whether somebody follows the run right now."""
    keep_file: KeepFile | None = None
    """Keeps a file that the run made for its clients."""


def run_scope() -> RunScope:
    """Return the current run's scope; an empty one outside of a run and embedded in a foreign graph."""
    scope = configurable().get(SCOPE_KEY)
    return scope if isinstance(scope, RunScope) else RunScope()


def task_key() -> str:
    """Return what names the current task of the graph, `node:uuid`; "" outside of a run.

    LangGraph derives it from the checkpoint that the task begins at: it is the same when the task is
    executed again after an interrupt or a crash, and another one when its node is entered anew.
    """
    return str(configurable().get("checkpoint_ns") or "").rpartition("|")[2]
