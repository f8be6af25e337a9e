"""A run without a terminal: the answer to the output, all that led to it as lines to the notes."""

import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from maniple.cli.pauses import description
from maniple.cli.plan_view import PlanView
from maniple.cli.retries import ANEW, Retries
from maniple.cli.tally import Tally
from maniple.cli.untrusted import clean, cleaned
from maniple.cli.words import (
    RUN_MARKS,
    arguments_line,
    duration,
    one_line,
    reason_line,
    result_line,
    step_line,
)
from maniple.events import (
    AgentStarted,
    BrowserStepped,
    Event,
    Failed,
    Interrupted,
    Message,
    PlanChanged,
    ToolCalled,
    ToolReturned,
)

_LONGEST_LINE = 160


class PlainView:
    """Writes lines and nothing else: no colour, no cursor movement."""

    def __init__(self, output: IO[str], notes: IO[str]) -> None:
        self._output = output
        self._notes = notes
        self._plan = PlanView()
        self._retries = Retries()
        self._calls: dict[str, float] = {}
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "start_of_llm": lambda _: self._retries.begin(),
            "message": self._hear,
            "plan": self._change_plan,
            "tool_call": self._call_tool,
            "browser_step": self._step,
            "tool_call_result": self._return_tool,
            "interrupt": self._ask,
            "error": self._fail,
        }

    async def __aenter__(self) -> "PlainView":
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    def show(self, number: int, event: Event) -> None:
        """Write the event's lines, if it has any."""
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(cleaned(event))

    def say(self, text: str) -> None:
        """Write a line to the notes."""
        print(text, file=self._notes, flush=True)

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """Write the exchange to the notes: the output is for new answers."""
        for text in filter(None, (f"You: {asked}", answer)):
            self.say(clean(text).strip("\n"))
        for event in waiting:
            self.show(0, event)

    def finish(self, tally: Tally) -> None:
        """Write the answer, when there is one, and what the run came to."""
        if tally.has_answer():
            self._hand_over(clean(tally.answer).strip("\n"))
        self.say(f"{RUN_MARKS[tally.status]} {tally.summary()}")

    def _hand_over(self, answer: str) -> None:
        """Write the answer to the output, or else, before the error is raised, to the notes."""
        try:
            print(answer, file=self._output, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            self.say(answer)
            raise

    def _start_agent(self, event: AgentStarted) -> None:
        self.say(event.agent_name)

    def _hear(self, event: Message) -> None:
        if self._retries.voids(event):
            self.say(f"  {ANEW}")

    def _change_plan(self, event: PlanChanged) -> None:
        changed = self._plan.update(event)
        if self._plan.is_new:
            self.say(f"Plan: {one_line(event.title)}")
            changed = self._plan.steps
        for step in changed:
            self.say(f"  {self._plan.line(step).plain.rstrip()}")
            if step.reason and step.status != "blocked":  # it was said when it failed
                self.say(f"    {reason_line(step.reason, _LONGEST_LINE)}")

    def _call_tool(self, event: ToolCalled) -> None:
        self._calls[event.tool_call_id] = time.monotonic()
        self.say(f"  {event.tool_name}: {arguments_line(event.tool_input, _LONGEST_LINE)}")

    def _step(self, event: BrowserStepped) -> None:
        if line := step_line(event, _LONGEST_LINE):
            self.say(f"    {line}")

    def _return_tool(self, event: ToolReturned) -> None:
        started = self._calls.pop(event.tool_call_id, None)
        seconds = f" ({duration(time.monotonic() - started)})" if started is not None else ""
        self.say(f"  {event.tool_name}{seconds}: {result_line(event.tool_result, _LONGEST_LINE)}")

    def _ask(self, event: Interrupted) -> None:
        for line in filter(None, description(event).split("\n")):
            self.say(f"  {line}")

    def _fail(self, event: Failed) -> None:
        self.say(f"✘ {event.message}")
