"""The progress messages of a call: one line for each agent, tool call and change of the plan."""

from maniple.events import AgentStarted, Event, PlanChanged, PlanUpdate, RunView, ToolCalled, read_event
from maniple.store import EventRecord

REPORTED_TYPES = frozenset({AgentStarted.type, PlanChanged.type, ToolCalled.type})
_TITLE_CHARACTERS = 200


class ProgressLines:
    """Turns the events of one run into lines."""

    def __init__(self) -> None:
        self._view = RunView()

    def lines(self, record: EventRecord) -> list[str]:
        """Return the lines for a stored event; most events have none."""
        if record.type not in REPORTED_TYPES:
            return []
        event = read_event(record.type, record.data)
        self._view.apply(event)
        return self._lines(event)

    def _lines(self, event: Event) -> list[str]:
        match event:
            case AgentStarted():
                return [f"{event.agent_name} begins"]
            case ToolCalled():
                return [f"calls {event.tool_name}"]
            case _:
                return _plan_lines(self._view.plan_update) if self._view.plan_update else []


def _plan_lines(update: PlanUpdate) -> list[str]:
    """Return the title of a plan with other steps than before, or else the steps whose status has changed."""
    plan, count = update.plan, len(update.plan.steps)
    if update.is_new or update.has_added_steps:
        return [f"plan: {plan.title[:_TITLE_CHARACTERS]} ({count} steps)"]
    return [
        f"step {step.id} of {count}, {step.agent_name}: {step.title[:_TITLE_CHARACTERS]} ({step.status})"
        for step in update.changed_steps
    ]
