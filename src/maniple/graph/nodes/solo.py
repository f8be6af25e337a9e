"""The first node of a run in which one agent answers alone, without planner and report."""

from dataclasses import dataclass
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.graph.plan import TITLE_CHARACTERS, Plan, PlannedStep, PlanProgress
from maniple.graph.state import RunOptions, State, make_update, request_of
from maniple.text import shorten
from maniple.tools.files import NamedFiles


@dataclass(frozen=True, slots=True)
class SoloNode:
    """Makes the request the only step; the supervisor starts its agent and then ends the run."""

    files: NamedFiles | None = None

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["supervisor"]]:
        options = RunOptions.of(runtime, state)
        # Only the messages, so that private state of the previous request is ignored.
        request = request_of({"messages": state["messages"]})
        title = shorten(request, TITLE_CHARACTERS) or "The request"
        step = PlannedStep(agent_name=options.agent, title=title, description=request)
        update = make_update(
            plan=PlanProgress.of(Plan(title=title, steps=[step])).to_state(),
            full_plan="",
            feedback="",
            asked="",
            request="",
            locale=options.locale,
            files=await self.files() if self.files is not None else [],
        )
        return Command(goto="supervisor", update=update)
