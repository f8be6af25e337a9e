"""What a client that waits is told meanwhile: a line for each thing that begins."""

from maniple.events import AgentStarted, Event, PlanChanged, ToolCalled, read_event
from maniple.store import EventRecord

TOLD = frozenset(one.model_fields["type"].default for one in (AgentStarted, PlanChanged, ToolCalled))
_LONGEST_TITLE = 200


class Progress:
    """The events of one run, in words."""

    def __init__(self) -> None:
        self._statuses: dict[int, str] = {}

    def lines(self, record: EventRecord) -> list[str]:
        """Return what is new in an event; for most there is nothing."""
        return self._told(read_event(record.type, record.data)) if record.type in TOLD else []

    def _told(self, event: Event) -> list[str]:
        match event:
            case AgentStarted():
                return [f"{event.agent_name} begins"]
            case ToolCalled():
                return [f"calls {event.tool_name}"]
            case PlanChanged():
                return self._changed(event)
            case _:
                return []

    def _changed(self, plan: PlanChanged) -> list[str]:
        """Name the plan when it is new, and afterwards the steps that stand otherwise than before."""
        before, self._statuses = self._statuses, {step.id: step.status for step in plan.steps}
        if before.keys() != self._statuses.keys():
            return [f"plan: {plan.title[:_LONGEST_TITLE]} ({len(plan.steps)} steps)"]
        return [
            f"step {step.id} of {len(plan.steps)}, {step.agent_name}: {step.title[:_LONGEST_TITLE]} "
            f"({step.status})"
            for step in plan.steps
            if before[step.id] != step.status
        ]
