"""A stream that was cut off by a crash: what it still owes its readers, and where it stood."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    Event,
    Failed,
    ModelEnded,
    ModelStarted,
    PlanChanged,
    RunStarted,
    RunStatusChanged,
    SessionState,
    ToolCalled,
    ToolReturned,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.types import RunStatus

CUT_OFF = "The program stopped while this ran."


@dataclass(slots=True)
class Told:
    """Where the newest stretch of a run's stream stood. A run that is answered begins another stretch.

    `status` is set once it has been told, and `failure` says why it is `failed`; `agents` counts the turns by
    agent id.
    """

    begun: bool = False
    workflow_started: bool = False
    workflow_ended: bool = False
    ended: bool = False
    status: RunStatus | None = None
    failure: Failed | None = None
    plan: PlanChanged | None = None
    agents: Counter[str] = field(default_factory=Counter)
    _agent: AgentStarted | None = None
    _model: ModelStarted | None = None
    _paired: bool = False
    _tools: dict[str, ToolCalled] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Told":
        """Read a run's events from its beginning."""
        told = cls()
        for event in events:
            if isinstance(event, RunStarted):
                told = cls(begun=True)
            elif not told._note_turn(event):
                told._note_workflow(event)
        return told

    def closing(self) -> Iterator[Event]:
        """Yield the ends of what was open, so that the next agent may begin."""
        for call in self._tools.values():
            yield ToolReturned(tool_call_id=call.tool_call_id, tool_name=call.tool_name, tool_result=CUT_OFF)
        if self._agent is None:
            return
        name = self._agent.agent_name
        if not self._paired:
            yield ModelStarted(agent_name=name)
        if not self._paired or self._model is not None:
            yield ModelEnded(agent_name=name)
        yield AgentEnded(agent_name=name, agent_id=self._agent.agent_id)

    def _note_turn(self, event: Event) -> bool:
        """Take what happens inside an agent's turn into account; say whether it was that."""
        match event:
            case AgentStarted():
                self._agent, self._paired = event, False
                self.agents[event.agent_id] += 1
            case AgentEnded():
                self._agent, self._model, self._tools = None, None, {}
            case ModelStarted():
                self._model, self._paired = event, True
            case ModelEnded():
                self._model = None
            case ToolCalled():
                self._tools[event.tool_call_id] = event
            case ToolReturned():
                self._tools.pop(event.tool_call_id, None)
            case _:
                return False
        return True

    def _note_workflow(self, event: Event) -> None:
        match event:
            case WorkflowStarted():
                self.workflow_started = True
            case PlanChanged():
                self.plan = event
            case Failed():
                self.failure = event
            case RunStatusChanged():
                self.status = event.status
                # One that was cut off before its status was told is no reason for another end.
                self.failure = self.failure if event.status == "failed" else None
            case WorkflowEnded():
                self.workflow_ended = True
            case SessionState():
                self.ended = True
