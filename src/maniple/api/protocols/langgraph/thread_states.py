"""The states of a thread: one for each of its runs, as a checkpoint of LangGraph's."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from maniple.api.protocols.langgraph.interrupts import describe_interrupts
from maniple.api.protocols.langgraph.transcripts import RunTranscript, format_time, make_values

_NODE = "team"
"""The name of the one task of a state."""


class CheckpointView(BaseModel):
    """A state of a thread: `checkpoint_id` is the id of the run that made it, null before the first one."""

    thread_id: str
    checkpoint_ns: str = ""
    checkpoint_id: str | None
    checkpoint_map: dict[str, Any] | None = None


class TaskView(BaseModel):
    """The work of a run that has not ended, or that failed, with what it waits for."""

    id: str
    name: str = _NODE
    error: str | None = None
    interrupts: list[dict[str, Any]]
    checkpoint: CheckpointView | None = None
    state: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


class StateView(BaseModel):
    """The messages and the plan of a thread after a run, and what the run waits for."""

    values: dict[str, Any]
    next: list[str]
    tasks: list[TaskView]
    interrupts: list[dict[str, Any]]
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    created_at: str
    checkpoint: CheckpointView
    parent_checkpoint: CheckpointView | None


def make_state(
    thread_id: str, transcripts: Sequence[RunTranscript], metadata: Mapping[str, Any], created_at: float
) -> StateView:
    """Return the state of a thread after these of its runs; `metadata` and `created_at` are the thread's."""
    newest = transcripts[-1] if transcripts else None
    values = make_values(transcripts) if newest else {}
    checkpoint = CheckpointView(thread_id=thread_id, checkpoint_id=newest.run.run_id if newest else None)
    if newest is None:
        return StateView(
            values=values,
            next=[],
            tasks=[],
            interrupts=[],
            metadata={**metadata, "step": -1, "source": "input"},
            created_at=format_time(created_at),
            checkpoint=checkpoint,
            parent_checkpoint=None,
        )
    run = newest.run
    interrupts = describe_interrupts(newest.pauses.values()) if run.status in _OPEN else []
    task = TaskView(id=run.run_id, error=run.error if run.status == "failed" else None, interrupts=interrupts)
    is_open = run.status in _OPEN
    before = transcripts[-2].run.run_id if len(transcripts) > 1 else None
    return StateView(
        values=values,
        next=[_NODE] if is_open else [],
        tasks=[task] if is_open or task.error else [],
        interrupts=interrupts,
        metadata={**metadata, "run_id": run.run_id, "step": len(transcripts) - 1, "source": "loop"},
        created_at=format_time(run.ended_at or run.started_at or run.created_at),
        checkpoint=checkpoint,
        parent_checkpoint=CheckpointView(thread_id=thread_id, checkpoint_id=before) if before else None,
    )


_OPEN = ("queued", "running", "interrupted")


def as_past_state(state: StateView) -> StateView:
    """Return a state as a history has it: that of a run at work has a task, and no next node.

    The clients that read histories take a next node that asks nothing for a breakpoint; those that read the
    newest state alone see by its next node that a run is at work.
    """
    return state if state.interrupts else state.model_copy(update={"next": []})
