"""The progress of a run in lines of text, for protocols without events of their own."""

from maniple.events import (
    AgentEnded,
    AgentStarted,
    Event,
    PlanChanged,
    PlanUpdate,
    RunView,
    ToolCalled,
    UserMessageAnswered,
    UserMessageReceived,
    event_of,
)
from maniple.store import EventRecord

REPORTED_TYPES = frozenset(
    one.type
    for one in (
        AgentStarted,
        AgentEnded,
        PlanChanged,
        ToolCalled,
        UserMessageReceived,
        UserMessageAnswered,
    )
)
_TITLE_CHARACTERS = 200


class ProgressLines:
    """Turns the stored events of one run into lines."""

    def __init__(self) -> None:
        self._view = RunView()

    def lines(self, record: EventRecord) -> list[str]:
        """Return the lines for a stored event; most events have none."""
        if record.type not in REPORTED_TYPES:
            return []
        event = event_of(record)
        self._view.apply(event)
        return describe_progress(event, self._view)


def describe_progress(event: Event, view: RunView) -> list[str]:
    """Return the lines for an event, given the run after it; most events have none."""
    match event:
        case AgentStarted():
            return [f"{event.agent_name} begins"]
        case ToolCalled():
            # If several agents work, the previous line may be about another one.
            who = f"{view.agent_name} " if len(view.turns) > 1 else ""
            return [f"{who}calls {event.tool_name}"]
        case UserMessageReceived():
            return [f"the user writes: {_shorten(event.content)}"]
        case UserMessageAnswered() if event.content.strip():
            return [f"the lead replies: {_shorten(event.content)}"]
        case PlanChanged(draft=False):
            return _plan_lines(view.plan_update) if view.plan_update else []
        case _:
            return []


def _shorten(text: str) -> str:
    return " ".join(text.split())[:_TITLE_CHARACTERS]


def _plan_lines(update: PlanUpdate) -> list[str]:
    """Return the title of a plan with new steps, else the steps whose status has changed."""
    plan, count = update.plan, len(update.plan.steps)
    if update.is_new or update.has_added_steps:
        return [f"plan: {plan.title[:_TITLE_CHARACTERS]} ({count} steps)"]
    return [
        f"step {step.id} of {count}, {step.agent_name}: {step.title[:_TITLE_CHARACTERS]} ({step.status})"
        for step in update.changed_steps
    ]
