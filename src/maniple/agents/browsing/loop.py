"""One call of the browser: its plan, phase by phase, each a loop of thinking, acting and observing.

The plan is a graph inside the graph that calls: what was planned, done and asked outlives pause and crash.
"""

import asyncio
import operator
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from maniple.agents.browsing.course import COURSE, Course
from maniple.agents.browsing.limits import MOST_REACHED
from maniple.agents.browsing.phases import Phase, PhasePlanner
from maniple.agents.browsing.policy import policy_of
from maniple.agents.browsing.recordings import keep_part, keep_recording
from maniple.agents.middleware.fencing import remove_fences
from maniple.agents.react import extract_answer, step_context
from maniple.agents.run_scope import run_scope
from maniple.agents.task import StepFailed, StepResult, Task, current_task, format_response, set_in_context
from maniple.config import BrowsingSettings
from maniple.prompts import render

FAILED = "STEP FAILED:"
RECURSION_LIMIT = 10_000
"""The limits are the loop's own."""
Graph = CompiledStateGraph[Any, Any, Any, Any]
_REACHED: ContextVar[list[Phase]] = ContextVar("maniple_browser_phases")
"""The plan as it is now, for whoever ends the call in the middle."""


class _State(TypedDict):
    instruction: str
    phases: list[dict[str, str]]
    adaptations: Annotated[int, operator.add]
    answers: Annotated[int, operator.add]
    steps: int
    kept: list[str]
    is_over: bool


@dataclass(frozen=True, slots=True)
class Browsed:
    """What came of a call: the answer, or `STEP FAILED:` and why, and the path of its recording."""

    text: str
    recording: str | None = None


class BrowsingLoop:
    """Carries out instructions in the browser of the thread that is worked for.

    `agent` is the loop of one phase, `planner` who divides complex instructions.
    """

    def __init__(
        self, agent: Graph, planner: PhasePlanner, settings: BrowsingSettings, *, asks: bool
    ) -> None:
        self._agent = agent
        self._planner = planner
        self._settings = settings
        self._asks = asks
        graph = StateGraph(_State)
        graph.add_node("plan", self._plan)
        graph.add_node("work", self._work, destinations=("work", "adapt", END))
        graph.add_node("adapt", self._adapt, destinations=("work", END))
        graph.add_edge(START, "plan")
        graph.add_edge("plan", "work")
        self._graph: Graph = graph.compile(name="browsing").with_config(recursion_limit=RECURSION_LIMIT)

    async def browse(self, instruction: str) -> Browsed:
        """Carry out an instruction; what cannot be done is told in the text.

        Raises `BudgetExhausted` and `ModelError`; a question to the user interrupts the graph.
        """
        course = Course(self._is_filmed)
        limit = asyncio.timeout(self._settings.max_seconds)
        reached: list[Phase] = []
        with set_in_context(COURSE, course), set_in_context(_REACHED, reached):
            try:
                async with limit:
                    done = await self._graph.ainvoke(
                        {
                            "instruction": instruction,
                            "phases": [],
                            "adaptations": 0,
                            "answers": 0,
                            "steps": 0,
                            "kept": [],
                            "is_over": False,
                        }
                    )
                phases = [Phase.of(one) for one in done["phases"]]
            except TimeoutError:
                if not limit.expired():
                    raise
                reason = f"The time limit of {self._settings.max_seconds:g} s was reached"
                phases = _cut_short(reached or [Phase(instruction)], _with_what_is_kept(reason, course))
            except (Exception, asyncio.CancelledError) as error:
                await _cut_off(course, error)
                raise
            text = remove_fences(_told(phases))
            await course.end("failed" if text.startswith(FAILED) else "completed")
            return Browsed(text, await keep_recording(course.film.frames))

    async def _plan(self, state: _State) -> Mapping[str, Any]:
        phases = await self._planner.plan(state["instruction"])
        return {"phases": [one.to_state() for one in phases]}

    async def _work(self, state: _State) -> Command[Any]:
        """Do the first phase that is open."""
        phases = [Phase.of(one) for one in state["phases"]]
        _REACHED.get()[:] = phases
        at = next(at for at, one in enumerate(phases) if one.status == "not_started")
        course = COURSE.get() or Course()
        course.begin(
            phases[at].goal if len(phases) > 1 else "", state["answers"], state["steps"], state["kept"]
        )
        task = _task_of(state["instruction"], phases, at)
        is_over = False
        try:
            messages = self._messages(task)
            with step_context(task):
                result = await self._agent.ainvoke({"messages": messages, "given": len(messages)})
            phases[at] = _ended(phases[at], extract_answer(result["messages"]))
        except StepFailed as failure:
            is_over = str(failure).startswith(MOST_REACHED)
            phases[at] = phases[at].ended(str(failure), done=False)
        update = {
            "phases": [one.to_state() for one in phases],
            "answers": course.answers,
            "steps": course.number,
            "kept": course.kept,
            "is_over": is_over,
        }
        return Command(goto=self._after(phases, at, state, is_over=is_over), update=update)

    def _after(self, phases: Sequence[Phase], at: int, state: _State, *, is_over: bool) -> str:
        if phases[at].status == "completed":
            return "work" if at + 1 < len(phases) else END
        may_adapt = len(phases) > 1 and state["adaptations"] < self._settings.max_adaptations
        return "adapt" if may_adapt and not is_over else END

    async def _adapt(self, state: _State) -> Command[Any]:
        """Plan anew from where the browser is; what is completed stays."""
        phases = await self._planner.adapt(state["instruction"], [Phase.of(one) for one in state["phases"]])
        if not phases:
            return Command(goto=END)
        return Command(goto="work", update={"phases": [one.to_state() for one in phases], "adaptations": 1})

    def _messages(self, task: Task) -> list[BaseMessage]:
        settings = self._settings
        prompt = render(
            "browsing",
            mode=settings.mode,
            extracts="extract_content" in policy_of(settings).actions,
            strategy=settings.strategy,
            asks=self._asks,
            team=task.team,
            locale=task.locale,
            language=task.locale,
        )
        return [
            SystemMessage(prompt),
            HumanMessage(f"Request: {task.request}"),
            *(HumanMessage(format_response(result)) for result in task.results),
            HumanMessage(task.instruction()),
        ]

    def _is_filmed(self) -> bool:
        """Say whether pictures are kept for people now."""
        scope, wanted = run_scope(), self._settings.recording
        if scope.keep_file is None or wanted == "never":
            return False
        return wanted == "always" or scope.is_watched()


async def _cut_off(course: Course, error: BaseException) -> None:
    """Tell that a call ends by an error, where it is none of a pause, and keep its recording so far."""
    if not isinstance(error, GraphBubbleUp):
        await course.end("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
    await keep_part(course.film.frames)


def _task_of(instruction: str, phases: Sequence[Phase], at: int) -> Task:
    """Return the phase as a task of whoever called, with what the phases before it brought."""
    try:
        task = current_task()
    except LookupError:  # called outside of a step
        task = Task(instruction, "", "")
    if len(phases) == 1:
        return replace(task, title="In the browser", description=instruction, note=None, conversation=())
    results = [
        StepResult("browser", one.goal, one.result) for one in phases[:at] if one.status == "completed"
    ]
    is_last = at + 1 == len(phases)
    description = f"{phases[at].goal}\nThis is phase {at + 1} of {len(phases)} of: {instruction}"
    if is_last:
        description += "\nIt is the last one: its result is the answer to all of it."
    title = f"Phase {at + 1}"
    return replace(
        task,
        title=title,
        description=description,
        note=None,
        results=[*task.results, *results],
        conversation=(),
    )


def _ended(phase: Phase, answer: str) -> Phase:
    if not answer.strip():
        return phase.ended("the agent gave no answer", done=False)
    if answer.startswith(FAILED):
        return phase.ended(answer.removeprefix(FAILED).strip() or "the agent gave no reason", done=False)
    return phase.ended(answer, done=True)


def _told(phases: Sequence[Phase]) -> str:
    """Return the answer of the last phase; of a failure why, and what the phases before it brought."""
    failed = next((one for one in phases if one.status == "failed"), None)
    if failed is None:
        return phases[-1].result
    done = [f"{one.goal}: {one.result}" for one in phases if one.status == "completed"]
    return "\n".join([f"{FAILED} {failed.result}", *(["Done before:", *done] if done else [])])


def _cut_short(phases: Sequence[Phase], reason: str) -> list[Phase]:
    """Return what is completed, and the phase that was under way as failed."""
    done = [one for one in phases if one.status == "completed"]
    under_way = next((one for one in phases if one.status != "completed"), phases[-1])
    return [*done, under_way.ended(reason, done=False)]


def _with_what_is_kept(reason: str, course: Course) -> str:
    return "\n".join([f"{reason}.", *(["Until then:", *course.kept] if course.kept else [])])
