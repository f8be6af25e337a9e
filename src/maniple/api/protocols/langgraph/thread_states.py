"""The states of a thread as checkpoints of LangGraph's: before its runs, after each question and each run.

Those of the branches that begin with the runs of a thread are its states, too: together they are a tree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from maniple.api.protocols.langgraph.interrupts import describe_interrupts
from maniple.api.protocols.langgraph.transcripts import (
    RunTranscript,
    format_time,
    make_values,
    read_transcripts,
)
from maniple.runs import NotFound
from maniple.runs.branches import list_family
from maniple.store import RunRecord, Store, Thread

START = "start"
"""The checkpoint before the first run of a thread."""
_QUESTION = "-question"
"""What follows the id of a run in that of the checkpoint before its work."""
_NODE = "team"
"""The name of the one task of a state."""
_OPEN = ("queued", "running", "interrupted")


class CheckpointView(BaseModel):
    """A state of a thread: `checkpoint_id` is the id of the run that made it; null if the thread has no run.

    That after the question of a run alone ends with `-question`, and that before the first run is `start`.
    """

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


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """A thread, or a branch that begins with its runs, and what was said in the runs, oldest first."""

    thread: Thread
    transcripts: Sequence[RunTranscript]
    questions: Sequence[str]
    """The ids of the checkpoints after their questions: that of a question that was asked again is one."""


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The place of a state: after the first `count` runs of a line, or the question of the last of them."""

    line: ThreadLine
    count: int
    is_question: bool = False

    @property
    def checkpoint_id(self) -> str | None:
        """The id of the checkpoint."""
        if self.run is None:
            return START if self.line.transcripts else None
        return self.line.questions[self.count - 1] if self.is_question else self.run.run_id

    @property
    def run(self) -> RunRecord | None:
        """The newest run; None before the first one."""
        return self.line.transcripts[self.count - 1].run if self.count else None

    @property
    def transcripts(self) -> Sequence[RunTranscript]:
        """What was said up to this place."""
        said = [*self.line.transcripts[: self.count]]
        if self.is_question:
            said[-1] = RunTranscript(said[-1].run, said[-1].asked)
        return said

    @property
    def is_newest(self) -> bool:
        """Whether nothing follows in the line."""
        return self.count == len(self.line.transcripts) and not self.is_question

    @property
    def parent(self) -> "StatePlace | None":
        """The place before this one."""
        if not self.count:
            return None
        return StatePlace(self.line, self.count - self.is_question, is_question=not self.is_question)

    def ancestors(self) -> Iterator["StatePlace"]:
        """Yield this place and those before it, newest first."""
        place: StatePlace | None = self
        while place is not None:
            yield place
            place = place.parent


@dataclass(frozen=True, slots=True)
class StateTree:
    """A thread with the states of its own line, and of those of its branches."""

    thread: Thread
    lines: Sequence[ThreadLine]
    """That with the newest run comes first."""

    @property
    def newest(self) -> StatePlace:
        """The newest place, from which a run goes on that names no checkpoint."""
        return StatePlace(self.lines[0], len(self.lines[0].transcripts))

    def places(self) -> list[StatePlace]:
        """Return the places of all states, newest first; a thread without runs has none."""
        ends: dict[str, tuple[float, StatePlace]] = {}
        for line in self.lines:
            for count, one in enumerate(line.transcripts, start=1):
                ends.setdefault(one.run.run_id, (one.run.created_at, StatePlace(line, count)))
        found: list[StatePlace] = []
        for _, end in sorted(ends.values(), key=lambda one: one[0], reverse=True):
            question = StatePlace(end.line, end.count, is_question=True)
            is_first = question.checkpoint_id == f"{end.checkpoint_id}{_QUESTION}"
            found += [end, question] if is_first else [end]
        return [*found, StatePlace(self.lines[0], 0)] if found else []

    def find(self, checkpoint_id: str) -> StatePlace:
        """Return the place of a checkpoint, in the line that ends there if one does; raises `NotFound`."""
        for line in self.lines:
            end = StatePlace(line, len(line.transcripts))
            if end.checkpoint_id == checkpoint_id:
                return end
        for place in self.places():
            if place.checkpoint_id == checkpoint_id:
                return place
        raise NotFound("The thread has no such checkpoint.")

    def find_next(self, place: StatePlace) -> RunRecord | None:
        """Return the newest run that follows a place in any line."""
        following = [
            line.transcripts[place.count].run
            for line in self.lines
            if len(line.transcripts) > place.count and StatePlace(line, place.count).run == place.run
        ]
        return max(following, key=lambda run: run.created_at, default=None)

    def state(self, place: StatePlace, metadata: Mapping[str, Any]) -> StateView:
        """Return the state at a place; `metadata` is the thread's."""
        run, parent = place.run, place.parent
        checkpoint = self._checkpoint(place)
        step = {"step": 2 * place.count - 1 - place.is_question}
        if run is None:
            return StateView(
                values={},
                next=[],
                tasks=[],
                interrupts=[],
                metadata={**metadata, **step, "source": "input"},
                created_at=format_time(self.thread.created_at),
                checkpoint=checkpoint,
                parent_checkpoint=None,
            )
        newest = place.transcripts[-1]
        is_open = place.is_question or run.status in _OPEN
        interrupts = describe_interrupts(newest.pauses.values()) if run.status in _OPEN else []
        error = run.error if run.status == "failed" and not place.is_question else None
        task = TaskView(id=run.run_id, error=error, interrupts=interrupts)
        source = "input" if place.is_question else "loop"
        made_at = run.created_at if place.is_question else run.ended_at or run.started_at or run.created_at
        return StateView(
            values=make_values(place.transcripts),
            next=[_NODE] if is_open else [],
            tasks=[task] if is_open or task.error else [],
            interrupts=interrupts,
            metadata={**metadata, "run_id": run.run_id, **step, "source": source},
            created_at=format_time(made_at),
            checkpoint=checkpoint,
            parent_checkpoint=self._checkpoint(parent) if parent else None,
        )

    def past_state(self, place: StatePlace, metadata: Mapping[str, Any]) -> StateView:
        """Return the state at a place as a history has it: while its run works, there is no next node.

        The clients that read histories take a next node that asks nothing for a breakpoint; those that read
        the newest state alone see by its next node that a run is at work.
        """
        state = self.state(place, metadata)
        is_past = place.is_question or state.interrupts
        return state if is_past else state.model_copy(update={"next": []})

    def _checkpoint(self, place: StatePlace) -> CheckpointView:
        return CheckpointView(thread_id=self.thread.name, checkpoint_id=place.checkpoint_id)


async def read_state_tree(store: Store, thread: Thread) -> StateTree:
    """Return a thread with all of its states."""
    family = await list_family(store, thread, with_copies=False)
    newest = await _find_newest(store, family)
    known: dict[str, RunTranscript] = {}
    said: list[tuple[Thread, list[RunTranscript]]] = []
    for one in sorted(family, key=lambda one: one != newest):
        said.append((one, await read_transcripts(store, one, known)))
        known.update({each.run.run_id: each for each in said[-1][1]})
    questions = _name_questions([one for _, one in said])
    lines = [ThreadLine(one, runs, [questions[each.run.run_id] for each in runs]) for one, runs in said]
    return StateTree(thread, lines)


async def find_newest_line(store: Store, thread: Thread) -> Thread:
    """Return a thread, or that of its branches which has the newest run: its newest state is the thread's."""
    return await _find_newest(store, await list_family(store, thread, with_copies=False))


async def _find_newest(store: Store, family: Sequence[Thread]) -> Thread:
    if len(family) == 1:
        return family[0]
    begun = [(one, await store.runs.list_by_thread(one.thread_id, 1)) for one in family]
    return max(begun, key=lambda one: one[1][0].created_at if one[1] else 0.0)[0]


def _name_questions(lines: Iterable[Sequence[RunTranscript]]) -> Mapping[str, str]:
    """Return the checkpoint after the question of each run; one for a message that was asked again."""
    asked: dict[str, tuple[float, tuple[str, str]]] = {}
    for line in lines:
        for before, one in zip([None, *line], line, strict=False):
            place = before.run.run_id if before else START, one.question_id
            asked[one.run.run_id] = one.run.created_at, place
    first: dict[tuple[str, str], str] = {}
    for run_id, (_, place) in sorted(asked.items(), key=lambda one: one[1][0]):
        first.setdefault(place, f"{run_id}{_QUESTION}")
    return {run_id: first[place] for run_id, (_, place) in asked.items()}
