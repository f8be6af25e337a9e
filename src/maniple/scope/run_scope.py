"""The objects of a run that its agents and tools use: ledger, budget, approvals, evidence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.config import get_config

from maniple.evidence import MemoryEvidence
from maniple.langgraph_internals import outermost_task, task_of
from maniple.scope.budget import UsageMeter
from maniple.scope.context import SCOPE_KEY, configurable
from maniple.scope.inbox import Inbox
from maniple.types import RUN_MARK, UnknownResultPolicy

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from maniple.evidence import Evidence
    from maniple.scope.answers import Asker
    from maniple.scope.client_tools import ClientTool
    from maniple.scope.inputs import EndedRun
    from maniple.scope.schedules import RunSchedules
    from maniple.store.protocols import ToolCallLedger

StoreFile = Callable[[str, str, bytes], Awaitable["str | None"]]
"""Stores (name, media type, content) and returns the artifact's id; None when the run may store no more."""

MAX_RUN_CHARACTERS = 2_000_000
OUTSIDE = "local"
"""The thread of calls outside of any graph: their only user is the program itself."""


def _is_never_watched() -> bool:
    return False


def new_evidence() -> MemoryEvidence:
    """Return an empty record of what is read."""
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
    on_unknown: Mapping[str, UnknownResultPolicy] = field(default_factory=dict[str, UnknownResultPolicy])
    """By the name of a tool, what is done about a call whose result is unknown after a restart."""
    inbox: Inbox = field(default_factory=Inbox, compare=False)
    """What is sent to the run while it works."""
    evidence: Evidence = field(default_factory=new_evidence, compare=False)
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
    client_tools: Sequence[ClientTool] = ()
    """The functions that the client runs when a member calls them."""
    schedules: RunSchedules | None = None
    """Makes schedules for the owner of the run; None where nothing starts their runs."""
    stopped_work: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]], compare=False)
    """The newest texts and calls of steps that were at work when the run was stopped, by their ids."""
    begun_at: Mapping[int, float] = field(default_factory=dict[int, float], compare=False)
    """When those steps began, by their ids, in seconds since the epoch."""
    effortless_models: set[str] = field(default_factory=set[str], compare=False)
    """The models that work without the run's effort, each of which is reported once."""
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


def current_meter() -> UsageMeter:
    """Return the meter of the current run; outside of a run of the team, one without limits."""
    return run_scope().meter or UsageMeter()


def task_key() -> str:
    """Return the key of the current task (`task_of`); "" outside of a run."""
    return task_of(configurable())


def thread_key() -> str:
    """Return the name under which the current thread's files, variables and pages are stored.

    It is the thread of the run's scope, else the caller's `thread_id`, else the current invocation of the
    outermost graph, so that two invocations without a `thread_id` share nothing.
    """
    given = configurable()
    named = run_scope().thread_id or given.get("thread_id") or given.get("run_id")
    return str(named or outermost_task(given) or OUTSIDE)


def run_key() -> str:
    """Return the current run's id; in a foreign graph the thread's; "" outside of any graph."""
    try:
        metadata = get_config().get("metadata", {})
    except RuntimeError:
        return ""
    given = configurable()
    return str(
        metadata.get(RUN_MARK) or run_scope().run_id or given.get("run_id") or given.get("thread_id") or ""
    )
