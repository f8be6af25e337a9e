"""Events of runs as the team sends them, and their way into a view."""

import re
from collections.abc import Sequence
from typing import Any

from maniple.cli.render import RunDisplay
from maniple.events import (
    AgentEnded,
    AgentStarted,
    ErrorOccurred,
    Event,
    LeadDecided,
    MessageChunk,
    MessageDelta,
    ModelEnded,
    ModelStarted,
    PlanChanged,
    PlanStepView,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    RunView,
    SessionState,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    TurnMark,
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.types import RunStatus

RUN_ID = "11111111-1111-4111-8111-111111111111"
STEPS = (("coder", "Compute"), ("reporter", "Report"))


def agent(name: str, *inside: Event) -> list[Event]:
    """An agent's part of a run."""
    agent_id = f"{RUN_ID}_{name}_1"
    return [
        AgentStarted(agent_name=name, agent_id=agent_id),
        *inside,
        AgentEnded(agent_name=name, agent_id=agent_id),
    ]


def model(name: str, *pieces: str, reasoning: Sequence[str] = ()) -> list[Event]:
    """A model call that streams `reasoning` and then `pieces`."""
    deltas = [MessageDelta(reasoning_content=piece) for piece in reasoning] + [
        MessageDelta(content=piece) for piece in pieces
    ]
    said = [MessageChunk(message_id=f"run-{name}", delta=delta) for delta in deltas]
    return [
        ModelStarted(agent_name=name),
        *said,
        ModelEnded(agent_name=name),
        UsageReported(agent_name=name, model="scripted", input_tokens=100, output_tokens=10, seconds=0.5),
    ]


def tool(name: str, result: str, **arguments: Any) -> list[Event]:
    """A tool call with its result."""
    call_id = f"{RUN_ID}_{name}"
    return [
        ToolCalled(tool_call_id=call_id, tool_name=name, tool_input=arguments),
        ToolReturned(tool_call_id=call_id, tool_name=name, tool_result=result),
    ]


def printed(call: Event, text: str) -> ToolOutput:
    """What a call under way has printed."""
    assert isinstance(call, ToolCalled)
    name = call.tool_name
    return ToolOutput(tool_call_id=call.tool_call_id, tool_name=name, stream="stdout", text=text)


def plan(
    *statuses: str,
    steps: Sequence[tuple[str, str]] = STEPS,
    title: str = "1 + 3",
    reasons: Sequence[str] = (),
) -> PlanChanged:
    """The plan with its steps at `statuses`, for `reasons` where there are any."""
    views = [
        PlanStepView(
            id=number, agent_name=name, title=step, description=f"{step}.", status=status, reason=why or None
        )
        for number, ((name, step), status, why) in enumerate(
            zip(steps, statuses, reasons or [""] * len(steps), strict=True), start=1
        )
    ]
    return PlanChanged(title=title, steps=views)


def ending(status: RunStatus, *problems: Event) -> list[Event]:
    """The last events of a run."""
    return [
        *problems,
        RunStatusChanged(status=status),
        WorkflowEnded(workflow_id=RUN_ID, messages=[]),
        SessionState(messages=[]),
    ]


def failure(message: str) -> ErrorOccurred:
    """An error event."""
    return ErrorOccurred(code="model_auth", message=message, agent_name="coder", retryable=False)


def review() -> RunInterrupted:
    """The question whether the plan is right."""
    return RunInterrupted(interrupt_id="1", kind="plan_review", payload={"plan": {}}, options=["accept"])


def started() -> RunStarted:
    """The first event."""
    return RunStarted(run_id=RUN_ID, thread_id="thread")


def small_talk(text: str = "Hello there!") -> list[Event]:
    """A run in which the coordinator answers."""
    said = agent("coordinator", *model("coordinator", *re.findall(r"\S+\s*", text)))
    return [started(), *said, RunStatusChanged(status="completed"), SessionState(messages=[])]


def workflow(report: Sequence[str] = ("# Sum\n\nThe answer is ", "**4**.\n")) -> list[Event]:
    """A run from a plan over a tool to a report."""
    return [
        started(),
        *agent("coordinator", *model("coordinator")),
        WorkflowStarted(workflow_id=RUN_ID, input=[]),
        *agent("planner", *model("planner", '{"title": "1 + 3", ', '"steps": []}')),
        plan("not_started", "not_started"),
        plan("in_progress", "not_started"),
        *agent(
            "coder",
            *model("coder", reasoning=["I compute", " it."]),
            *tool("python_repl_tool", "4\n", code="print(1+3)"),
            *model("coder", "1 + 3 = 4"),
        ),
        plan("completed", "not_started"),
        plan("completed", "in_progress"),
        *agent("reporter", *model("reporter", *report)),
        plan("completed", "completed"),
        *ending("completed"),
    ]


def show_events(view: RunDisplay, events: Sequence[Event], run: RunView | None = None) -> RunView:
    """Show events as `follow_run` does, after those of `run`; return the state after them."""
    run = run or RunView()
    for number, event in enumerate(events, start=1):
        run.apply(event)
        view.show(number, event, run)
    return run


def run_after(events: Sequence[Event]) -> RunView:
    """Return the state after the events."""
    run = RunView()
    for event in events:
        run.apply(event)
    return run


def repeated_result(answer: str = "1 + 3 = 4") -> list[Event]:
    """A run whose plan ends with the coder, so that the report is `answer`: its result, which was checked."""

    def plan_with(*statuses: str) -> PlanChanged:
        coder, reporter = plan(*statuses).steps
        return PlanChanged(title="1 + 3", steps=[coder, reporter.model_copy(update={"repeats": True})])

    return [
        started(),
        WorkflowStarted(workflow_id=RUN_ID, input=[]),
        plan_with("not_started", "not_started"),
        plan_with("in_progress", "not_started"),
        *agent("coder", *model("coder", "1 + 3 ", "= 4")),
        plan_with("completed", "not_started"),
        plan_with("completed", "in_progress"),
        *agent("reporter", *model("reporter", answer)[:-1]),
        plan_with("completed", "completed"),
        *ending("completed"),
    ]


def decided(decision: str, **more: Any) -> list[Event]:
    """A run in which the lead decides what happens after the coder's step has failed."""
    event = LeadDecided.model_validate({"step_id": 1, "title": "Compute", "decision": decision, **more})
    return [
        started(),
        WorkflowStarted(workflow_id=RUN_ID, input=[]),
        plan("in_progress", "not_started"),
        *agent("coder", *model("coder", "STEP FAILED: no data")),
        plan("failed", "not_started", reasons=["no data", ""]),
        event,
        *ending("completed"),
    ]


def at_once() -> list[Event]:
    """Two members who write and call tools at the same time; neither has ended."""
    steps = (("researcher", "First"), ("researcher", "Second"), ("reporter", "Report"))
    events: list[Event] = [started(), plan("in_progress", "in_progress", "not_started", steps=steps)]
    both: list[list[Event]] = []
    for number, words in ((1, ("alpha ", "beta")), (2, ("gamma ", "delta"))):
        turn = TurnMark(f"researcher_{number}", number)
        calls = [
            one.model_copy(update={"tool_call_id": f"call{number}"}) for one in tool("tavily_search", "[]")
        ]
        begun = AgentStarted(agent_name="researcher", agent_id=turn.agent_id)
        both.append([one.in_turn(turn) for one in (begun, *model("researcher", *words), *calls)])
    for pair in zip(*both, strict=True):
        events += pair
    return events
