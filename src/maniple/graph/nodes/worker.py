"""One node for every worker."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import Agent, Result, StepFailed, Task
from maniple.graph.plan import PlannedStep, Progress, TrackedStep
from maniple.graph.state import RunOptions, State, progress_of, request_of
from maniple.types import Worker

_FAILED = re.compile(r"\A[\s*#_`]{0,50}STEP FAILED\b[\s:*_`]*", re.I)
_NEEDS = re.compile(r"[ \t*#_`]{0,20}NEEDS:")


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """Hand one step to one agent and bring back its answer."""

    name: Worker
    agent: Agent
    available: Sequence[Worker] = ()

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["supervisor"]]:
        progress = progress_of(state) or Progress(title="", steps=())
        step = progress.current() or _unplanned(self.name, state)
        team = RunOptions.of(runtime, state).enabled(self.available)
        task = _task(state, progress, step, team)
        try:
            answer = await self.agent.work(task)
            # A report is what it is, whatever words stand in it.
            text, done = (answer, True) if self.name == "reporter" and answer else outcome_of(answer)
        except StepFailed as failure:
            text, done = str(failure), False
        message = HumanMessage(text, name=self.name)
        status = "completed" if done else "failed"
        progress = progress.with_step(step.id, status=status, result=text)
        return Command(goto="supervisor", update={"messages": [message], "plan": progress.to_state()})


def outcome_of(text: str) -> tuple[str, bool]:
    """Return a worker's answer and whether its step is done.

    An empty answer, one that begins with `STEP FAILED:` and one whose last line asks for something with
    `NEEDS:` are not.
    """
    if not text:
        return "the member gave no answer", False
    if found := _FAILED.match(text):
        return text[found.end() :] or "the member gave no reason", False
    return text, _NEEDS.match(text.rstrip().rpartition("\n")[2]) is None


def _unplanned(name: Worker, state: State) -> TrackedStep:
    request = request_of(state)
    return TrackedStep(
        id=0, **PlannedStep(agent_name=name, title=request[:80], description=request).model_dump()
    )


def _task(state: State, progress: Progress, step: TrackedStep, team: Sequence[str]) -> Task:
    results = [
        Result(one.agent_name, one.title, _shown(one), one.status == "completed")
        for one in progress.steps
        if one.id != step.id and one.status != "not_started"
    ]
    return Task(
        request=request_of(state),
        title=step.title,
        description=step.description,
        note=_note(step),
        results=results,
        team=team,
        locale=state.get("locale") or "",
    )


def _note(step: TrackedStep) -> str | None:
    if not step.result:
        return step.note
    return "\n".join(filter(None, (step.note, f"An earlier try failed: {step.result}")))


def _shown(step: TrackedStep) -> str:
    if step.status == "completed":
        return step.result
    reason = step.result or "it was given up"
    return f"MISSING: the step {step.title!r} was not completed: {reason}"
