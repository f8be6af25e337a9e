"""The agent that works in the browser: a plan of phases, and for each phase a loop of thinking, acting and
observing.

It is a subgraph of the calling graph, so that LangGraph stores its plan, results and questions across a pause
and a crash.
"""

import asyncio
import json
import operator
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.types import Command
from pydantic import BaseModel, Field

from maniple.agents.briefing import RESULTS_SHARE, build_messages, format_notes, format_results
from maniple.agents.browsing.middleware import ITERATIONS_EXHAUSTED
from maniple.agents.browsing.recording import store_partial_recording, store_recording
from maniple.agents.browsing.trace import BrowserTrace, current_trace
from maniple.agents.browsing.view import policy_of
from maniple.agents.compact import call_tool
from maniple.agents.middleware.fencing import fence_untrusted, remove_fences
from maniple.agents.react import AgentGraph, extract_answer, step_context
from maniple.agents.step_outcome import parse_answer
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import (
    REJECTED_BY_USER,
    StepFailed,
    StepResult,
    Task,
    current_task,
    set_current_task,
    truncate_middle,
)
from maniple.config import BrowsingSettings
from maniple.errors import BudgetExhausted, ModelError
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.scope.run_scope import run_scope
from maniple.tools.interaction import ASK_USER
from maniple.types import STEP_FAILED

PhaseStatus = Literal["not_started", "completed", "failed"]
GOAL_CHARACTERS = 500
_UNTIL_THEN = "Until then:"
"""The line between the reason of a failure and what was extracted before it."""
_DONE_BEFORE = "Done before:"
"""The line between the reason of a failure and the results of the phases before it."""
_RESULT_CHARACTERS = 2_000
_LONG_CHARACTERS = 600
"""A task of more characters is complex."""
_MIN_COMPLEX_PIECES = 3
"""A task with at least this many pieces of work is complex."""
_SHORT_FORM = re.compile(
    r"\b(?:(?:[^\W\d_]\.){2,}|(?:dr|mrs?|ms|prof|st|nr|vs|etc|approx|incl|bzw|usw|mme|sr|sra)\.)", re.I
)
"""Abbreviations whose full stop does not end a sentence, such as "Dr." and "e.g."."""
_PIECE = re.compile(
    r"[.;!?]\s+(?=\S)|[。；！？]|\n\s*(?:[-*•]|\d+[.)])\s+|,\s+(?:and\s+)?(?:next|last(?:ly)?)\b"
    r"|\b(?:then|afterwards|after that|finally|danach|dann|anschließend|puis|ensuite|luego|después)\b"
    r"|然后|接着|最后|その後|次に",
    re.I,
)
_PLAN_PROMPT = (
    "You plan a task for an agent that works in a browser. Break it into {most} phases at most, in order; "
    "each has one goal, said in one sentence with how one sees that it is reached. Fewer are better: a "
    "phase is several actions. The last one ends with the whole answer. Answer with JSON only."
)
_ADAPT = (
    "A phase of your plan failed. What is done stays done. Give new phases, {most} at most, that reach the "
    "same task from where the browser is now: with what is known by now, or else by another way. Answer with "
    "JSON only."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "phases": {
            "type": "array",
            "items": {"type": "object", "properties": {"goal": {"type": "string"}}, "required": ["goal"]},
        }
    },
    "required": ["phases"],
}


class _Goal(BaseModel):
    goal: str


class _Plan(BaseModel):
    phases: list[_Goal] = Field(default_factory=list[_Goal])


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a task, and its result."""

    goal: str
    status: PhaseStatus = "not_started"
    result: str = ""

    def finish(self, result: str, *, done: bool) -> "Phase":
        """Return the finished phase."""
        return replace(self, status="completed" if done else "failed", result=result)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Phase":
        """Parse the result of `to_state`."""
        return cls(**state)

    def to_state(self) -> dict[str, str]:
        """Return JSON data for a checkpoint."""
        return asdict(self)


def is_complex(task: str) -> bool:
    """Return whether a task has several pieces of work, by sentences, list items and words like "then"."""
    text = _SHORT_FORM.sub("", task).strip().rstrip(".。!！?？")
    return len(task) > _LONG_CHARACTERS or len(_PIECE.findall(text)) + 1 >= _MIN_COMPLEX_PIECES


class PhasePlanner:
    """Plans tasks, and adapts plans."""

    def __init__(self, model: BaseChatModel, max_phases: int) -> None:
        self._model = model
        self._max_phases = max_phases

    @property
    def room(self) -> int:
        """Tokens that a prompt of the model may have."""
        return room_of(self._model)

    async def plan(self, task: str, known: Sequence[str] = ()) -> list[Phase]:
        """Return the phases of a task; `known` are texts of what the team and the user have given for it.

        A simple task is one phase. So is a task for which the model returns no valid plan.
        """
        unplanned = [Phase(task)]
        if self._max_phases < 2 or not is_complex(task):
            return unplanned
        return (
            await self._request_phases([self._prompt(), *map(HumanMessage, known), HumanMessage(task)])
            or unplanned
        )

    async def adapt(self, task: str, phases: Sequence[Phase], known: Sequence[str] = ()) -> list[Phase]:
        """Return the completed phases and new ones after a failure; [] if the model returns no valid plan."""
        done = [one for one in phases if one.status == "completed"]
        listed = "\n".join(_format_phase(number, one) for number, one in enumerate(phases, 1))
        messages: list[BaseMessage] = [
            self._prompt(),
            *map(HumanMessage, known),
            HumanMessage(
                f"Task: {task}\n\nThe plan so far:\n{listed}\n\n{_ADAPT.format(most=self._max_phases)}"
            ),
        ]
        new = await self._request_phases(messages)
        return [*done, *new] if new else []

    def _prompt(self) -> SystemMessage:
        return SystemMessage(_PLAN_PROMPT.format(most=self._max_phases))

    async def _request_phases(self, messages: list[BaseMessage]) -> list[Phase]:
        def check(plan: _Plan) -> _Plan:
            if not any(one.goal.strip() for one in plan.phases):
                raise ValueError("there is no phase in it")
            return plan

        try:
            plan, _ = await ask_for(self._model, messages, Shape("phases", _SCHEMA, _Plan), check=check)
        except ShapeError:
            return []
        goals = [one.goal.strip()[:GOAL_CHARACTERS] for one in plan.phases if one.goal.strip()]
        return [Phase(goal) for goal in goals[: self._max_phases]]


def _format_phase(number: int, phase: Phase) -> str:
    result = f"\n{fence_untrusted(truncate_middle(phase.result, _RESULT_CHARACTERS))}" if phase.result else ""
    return f"{number}. [{phase.status}] {phase.goal}{result}"


RECURSION_LIMIT = 10_000
"""LangGraph's limit; the loop has limits of its own."""


class _ReachedPhases(list[Phase]):
    """The phases of the running call, which `browse` reports if the call times out."""


class _State(TypedDict):
    instruction: str
    phases: list[dict[str, str]]
    adaptations: Annotated[int, operator.add]
    answers: Annotated[int, operator.add]
    steps: int
    kept: list[str]
    is_over: bool
    said: list[str]
    """The questions of the phases so far with the user's answers."""


@dataclass(frozen=True, slots=True)
class BrowsingResult:
    """The result of a call:

    The answer, or `STEP FAILED:` with the reason, and the URL path of its recording.
    """

    text: str
    recording: str | None = None


class BrowsingLoop:
    """Carries out instructions in the browser of the current thread.

    Args:
        agent: the loop of one phase.
        planner: divides complex instructions into phases.
        asks: whether the agent can ask the user.
        reads: whether the agent can read downloads.
    """

    def __init__(
        self,
        agent: AgentGraph,
        planner: PhasePlanner,
        settings: BrowsingSettings,
        *,
        asks: bool,
        reads: bool = False,
    ) -> None:
        self._agent = agent
        self._planner = planner
        self._settings = settings
        self._asks = asks
        self._reads = reads
        graph = StateGraph(_State)
        # LangGraph leaves out type arguments of parameters that are not used here, such as `cache_policy`.
        graph.add_node("plan", self._plan)  # pyright: ignore[reportUnknownMemberType]
        graph.add_node("work", self._work, destinations=("work", "adapt", END))  # pyright: ignore[reportUnknownMemberType]
        graph.add_node("adapt", self._adapt, destinations=("work", END))  # pyright: ignore[reportUnknownMemberType]
        graph.add_edge(START, "plan")
        graph.add_edge("plan", "work")
        compiled = graph.compile(name="browsing")  # pyright: ignore[reportUnknownMemberType]
        self._graph: AgentGraph = compiled.with_config(recursion_limit=RECURSION_LIMIT)

    async def browse(self, instruction: str) -> BrowsingResult:
        """Carry out an instruction; the text reports a failure.

        Raises `BudgetExhausted` and `ModelError`; a question to the user interrupts the graph.
        """
        trace = BrowserTrace(self._is_recorded)
        limit = asyncio.timeout(self._settings.max_seconds)
        reached = _ReachedPhases()
        with enter_step_state(trace, reached):
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
                            "said": [],
                        }
                    )
                phases = [Phase.of(one) for one in done["phases"]]
            except TimeoutError:
                if not limit.expired():
                    raise
                reason = f"The time limit of {self._settings.max_seconds:g} s was reached"
                phases = _fail_current(reached or [Phase(instruction)], _append_extracted(reason, trace))
            except (Exception, asyncio.CancelledError) as error:
                await _end_early(trace, error)
                raise
            text = remove_fences(_final_answer(phases))
            await trace.end("failed" if text.startswith(STEP_FAILED) else "completed")
            return BrowsingResult(text, await store_recording(trace.recording.frames))

    async def _plan(self, state: _State) -> Mapping[str, Any]:
        phases = await self._planner.plan(state["instruction"], self._known(state))
        return {"phases": [one.to_state() for one in phases]}

    async def _work(self, state: _State) -> Command[Any]:
        """Work on the first open phase."""
        phases = [Phase.of(one) for one in state["phases"]]
        if (reached := step_state(_ReachedPhases)) is not None:
            reached[:] = phases
        at = next(at for at, one in enumerate(phases) if one.status == "not_started")
        trace = current_trace() or BrowserTrace()
        trace.begin(
            phases[at].goal if len(phases) > 1 else "", state["answers"], state["steps"], state["kept"]
        )
        task = _phase_task(state["instruction"], phases, at)
        said = [*state.get("said", ())]  # a call that an earlier version began has none
        task = replace(task, notes=[*task.notes, *said])
        is_over = False
        try:
            messages = self._messages(task)
            with step_context(task):
                result = await self._agent.ainvoke({"messages": messages, "given": len(messages)})
            phases[at] = _finish_phase(phases[at], extract_answer(result["messages"]))
            said += _find_answers(result["messages"][len(messages) :])
        except StepFailed as failure:
            is_over = failure.is_final or str(failure).startswith(ITERATIONS_EXHAUSTED)
            phases[at] = phases[at].finish(str(failure), done=False)
        update = {
            "phases": [one.to_state() for one in phases],
            "answers": trace.answers,
            "steps": trace.number,
            "kept": trace.extracted,
            "is_over": is_over,
            "said": said,
        }
        return Command(goto=self._next_node(phases, at, state, is_over=is_over), update=update)

    def _next_node(self, phases: Sequence[Phase], at: int, state: _State, *, is_over: bool) -> str:
        if phases[at].status == "completed":
            return "work" if at + 1 < len(phases) else END
        may_adapt = len(phases) > 1 and state["adaptations"] < self._settings.max_adaptations
        return "adapt" if may_adapt and not is_over else END

    async def _adapt(self, state: _State) -> Command[Any]:
        """Plan again from the current page; completed phases stay."""
        before = [Phase.of(one) for one in state["phases"]]
        phases = await self._planner.adapt(state["instruction"], before, self._known(state))
        if not phases:
            return Command(goto=END)
        return Command(goto="work", update={"phases": [one.to_state() for one in phases], "adaptations": 1})

    def _known(self, state: _State) -> list[str]:
        """Return the results that the step was given, and what the user has said for it by now."""
        task = _current_task_or(state["instruction"])
        results = format_results(task.results, int(RESULTS_SHARE * self._planner.room))
        notes = format_notes([*task.notes, *state.get("said", ())])
        return [one for one in (*results, notes) if one]

    def _messages(self, task: Task) -> list[BaseMessage]:
        settings = self._settings
        prompt = render(
            "browsing",
            mode=settings.mode,
            extracts="extract_content" in policy_of(settings).actions,
            strategy=settings.strategy,
            asks=self._asks,
            reads=self._reads,
            team=task.team,
            locale=task.locale,
            language=task.locale,
        )
        return [
            SystemMessage(prompt),
            *build_messages(replace(task, items=(), plan=()), self._planner.room),
        ]

    def _is_recorded(self) -> bool:
        """Return whether screenshots are stored now."""
        scope, wanted = run_scope(), self._settings.recording
        if scope.store_file is None or wanted == "never":
            return False
        return wanted == "always" or scope.is_watched()


async def _end_early(trace: BrowserTrace, error: BaseException) -> None:
    """Store the recording of a call that raised; report the end of the call unless it is paused."""
    if not isinstance(error, GraphBubbleUp):
        await trace.end("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
    await store_partial_recording(trace.recording.frames)


def _phase_task(instruction: str, phases: Sequence[Phase], at: int) -> Task:
    """Return a phase as a task, with the results of the phases before it."""
    task = _current_task_or(instruction)
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


def _current_task_or(instruction: str) -> Task:
    """Return the current task; outside of a step, one of the instruction."""
    try:
        return current_task()
    except LookupError:
        return Task(instruction, "", "")


def _find_answers(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the questions to the user in a phase with their answers."""
    asked = {
        call["id"]: str(call["args"].get("inquire") or "")
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
        if call["name"] == ASK_USER
    }
    return [
        f"The team asked: {asked[one.tool_call_id]}\nThe user answered: {one.text}"
        for one in messages
        if isinstance(one, ToolMessage) and one.tool_call_id in asked and one.status != "error"
    ]


def _finish_phase(phase: Phase, answer: str) -> Phase:
    parsed = parse_answer(answer)
    is_failed = parsed.outcome.status == "failed"
    return phase.finish(parsed.text.strip() if is_failed else answer, done=not is_failed)


def _final_answer(phases: Sequence[Phase]) -> str:
    """Return the answer of the last phase; after a failure, the reason and the results before it."""
    failed = next((one for one in phases if one.status == "failed"), None)
    if failed is None:
        return phases[-1].result
    done = [f"{one.goal}: {one.result}" for one in phases if one.status == "completed"]
    return "\n".join([f"{STEP_FAILED} {failed.result}", *([_DONE_BEFORE, *done] if done else [])])


def _fail_current(phases: Sequence[Phase], reason: str) -> list[Phase]:
    """Return the completed phases, and the current one as failed."""
    done = [one for one in phases if one.status == "completed"]
    current = next((one for one in phases if one.status != "completed"), phases[-1])
    return [*done, current.finish(reason, done=False)]


def _append_extracted(reason: str, trace: BrowserTrace) -> str:
    return "\n".join([f"{reason}.", *([_UNTIL_THEN, *trace.extracted] if trace.extracted else [])])


@dataclass(frozen=True, slots=True)
class BrowserWorker:
    """A worker that passes its step to the tool `browser`; clients see the call, its steps and its result.

    An agent that only wrote the instruction and repeated the answer would cost two model calls.
    """

    tool: BaseTool

    async def work(self, task: Task) -> str:
        with set_current_task(task):
            try:
                answer, _ = await call_tool(self.tool, 0, instruction=_instruction(task))
            except (BudgetExhausted, ModelError) as error:
                # Messages of the browser's own agent: the next try reads what was done in its instruction.
                error.continuation = {}
                raise
        with suppress(ValueError, KeyError, TypeError):
            answer = str(json.loads(answer)["result_content"])
        if answer.startswith(f"{STEP_FAILED} {REJECTED_BY_USER}"):
            raise StepFailed(_fence_findings(answer.removeprefix(STEP_FAILED).lstrip()), is_final=True)
        return _fence_findings(answer) if answer.startswith(STEP_FAILED) else answer


def _fence_findings(failure: str) -> str:
    """Return a failure with what was found before it as data for other agents, because it is from pages.

    What the browser's agent itself says, such as what it needs, stays its own words.
    """
    lines = failure.splitlines()
    end = next((at for at, line in enumerate(lines) if line in (_UNTIL_THEN, _DONE_BEFORE)), len(lines))
    own, found = "\n".join(lines[:end]), "\n".join(lines[end:])
    return f"{own}\n{fence_untrusted(found)}" if found else failure


def _instruction(task: Task) -> str:
    if task.conversation:
        return task.conversation[-1].text
    note = f"Note: {task.note}" if task.note else ""
    return "\n".join(filter(None, (task.description, note, task.meanwhile())))
