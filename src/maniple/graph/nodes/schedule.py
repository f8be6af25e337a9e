"""The schedule: the user agrees to work at a later time, changes it or rejects it."""

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from maniple.errors import ManipleError
from maniple.graph.invocation import REENTRY
from maniple.graph.state import State, make_update, private_of
from maniple.scope.run_scope import run_scope
from maniple.scope.schedules import RunSchedules, ScheduleWish
from maniple.tools.decisions import (
    APPROVAL_ANSWERS,
    CallEdit,
    CallRejection,
    UnclearDecision,
    parse_approval,
)

SCHEDULE = "schedule_run"
_ANSWERS = {kind: how for kind, how in APPROVAL_ANSWERS.items() if kind != "always"}


def schedule_tool(time_zone: str) -> dict[str, Any]:
    """Return the tool by which the coordinator proposes a schedule; `time_zone` is that of this machine."""
    text = {"type": "string"}
    properties = {
        "task": {**text, "description": "What is asked at each time, complete in itself, as the user would."},
        "cron": {**text, "description": "For what repeats: minute, hour, day, month, weekday: 0 8 * * 1."},
        "at": {**text, "description": "For what is done once: a date and time such as 2030-01-31T08:00."},
        "time_zone": {**text, "description": f"The user's, such as Europe/Berlin; unknown: {time_zone}."},
    }
    return {
        "type": "function",
        "function": {
            "name": SCHEDULE,
            "description": "Propose to do a task at a later time, once or again and again.",
            "parameters": {"type": "object", "properties": properties, "required": ["task", "time_zone"]},
        },
    }


def find_wish(answer: AIMessage) -> ScheduleWish | None:
    """Return the schedule that the coordinator proposes; None if it proposes none, or other calls as well."""
    calls = answer.tool_calls
    return ScheduleWish.of(calls[0]["args"]) if len(calls) == 1 and calls[0]["name"] == SCHEDULE else None


@dataclass(frozen=True, slots=True)
class ScheduleNode:
    """Pauses with the proposed schedule, makes it when the user has agreed, and has the coordinator say so.

    An edited proposal is made as it was edited; the question is repeated with an `error` if it is not valid.
    """

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["coordinator"]]:
        private, schedules = private_of(state), run_scope().schedules
        wish = ScheduleWish.of(private.get("schedule") or {})
        note = await _settle(wish, schedules) if schedules is not None else "Nothing can be scheduled here."
        return Command(
            goto="coordinator", update=make_update(next=REENTRY, schedule=None, schedule_note=note)
        )


async def _settle(wish: ScheduleWish, schedules: RunSchedules) -> str:
    """Return what became of a proposal, for the coordinator's prompt."""
    question = await _check(wish, schedules)
    if "error" in question:
        return f"It could not be scheduled: {question['error']}"
    is_settled = False
    while not is_settled:
        decision = parse_approval(interrupt(question))
        if isinstance(decision, CallRejection):
            return f"The user rejected it. Nothing is scheduled. {decision.reason}".rstrip()
        if isinstance(decision, CallEdit):
            wish = ScheduleWish.of(decision.arguments)
            question = await _check(wish, schedules)
        # The arguments of a question with an error have to be edited.
        is_settled = not isinstance(decision, UnclearDecision) and "error" not in question
        if isinstance(decision, UnclearDecision):
            question = {**question, "unclear": decision.explanation}
    times = await schedules.add(wish, run_scope().run_id)  # a run proposes one at most
    return f"The user agreed, and it is scheduled: {wish.arguments()}. Next times: {', '.join(times)}."


async def _check(wish: ScheduleWish, schedules: RunSchedules) -> dict[str, Any]:
    """Return the question about a wish, with the `error` that prevents it."""
    try:
        return {**_question(wish), "next_times": [*await schedules.list_times(wish)]}
    except ManipleError as error:
        return {**_question(wish), "error": str(error)}


def _question(wish: ScheduleWish) -> dict[str, Any]:
    return {
        "kind": "tool_approval",
        "reason": "approval",
        "tool_name": SCHEDULE,
        "tool_input": wish.arguments(),
        "tool_call_id": SCHEDULE,
        "answers": dict(_ANSWERS),
    }
