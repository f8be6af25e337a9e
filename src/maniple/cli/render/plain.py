"""Displays of a run that write lines: plain text, or JSON."""

import json
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from maniple.cli.render.run_text import (
    REPLACEMENT_TEXTS,
    continued_line,
    decision_line,
    describe_question,
    effort_line,
    failure_texts,
    gap_lines,
    gap_review_lines,
    has_answer,
    outage_line,
    plan_line,
    repeats_answer,
    review_texts,
    run_mark,
    step_question_lines,
    summary_line,
    waiting_line,
)
from maniple.cli.text import (
    arguments_line,
    clean,
    clean_event,
    drop_exit_code,
    duration,
    failure_mark,
    json_line,
    one_line,
    reason_line,
    result_line,
    step_line,
)
from maniple.events import (
    AgentStarted,
    BrowserStepChanged,
    ErrorOccurred,
    Event,
    GapsReviewed,
    LeadDecided,
    MessageChunk,
    ModelUnreachable,
    PlanStepView,
    RunInterrupted,
    RunView,
    StepInterrupted,
    ToolCalled,
    ToolReturned,
    record_of,
)

_LINE_CHARACTERS = 160
_FIRST_REPEAT = 2
"""The number of the first repeated try; of an outage only this one is a line."""


class JsonDisplay:
    """Writes each event as one line of JSON to `output`, and notes to `notes`."""

    def __init__(self, output: IO[str], notes: IO[str]) -> None:
        self._output = output
        self._notes = notes

    async def __aenter__(self) -> "JsonDisplay":
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Write the event's line."""
        data = json.loads(record_of(event, number).marked_data)
        line = json_line({"id": number, "event": event.type, "data": data})
        print(line, file=self._output, flush=True)

    def note(self, text: str) -> None:
        """Write a line to the notes."""
        print(text, file=self._notes, flush=True)

    def show_typed(self, typed: Callable[[], str]) -> bool:
        """Return that lines once written cannot show it."""
        return False

    def show_previous(self, question: str, run: RunView) -> None:
        """Write nothing: only events of the present run are lines."""

    def finish(self, run: RunView, seconds: float) -> None:
        """Write nothing: the events hold the outcome."""


class PlainDisplay:
    """Writes lines without colours or cursor movement: the answer to `output`, all else to `notes`."""

    def __init__(self, output: IO[str], notes: IO[str], *, verbose: bool = False) -> None:
        self._output = output
        self._notes = notes
        self._verbose = verbose
        self._run = RunView()
        self._call_times: dict[str, float] = {}
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "message": self._take_message,
            "plan": self._change_plan,
            "lead_decision": self._show_decision,
            "gap_review": self._show_review,
            "model_unreachable": self._report_outage,
            "effort_not_used": lambda event: self.note(f"  {effort_line(event)}"),
            "run_waiting": lambda event: self.note(f"  {waiting_line(event)}"),
            "run_continued": lambda event: self.note(f"  {continued_line(event)}"),
            "tool_call": self._call_tool,
            "browser_step": self._take_browser_step,
            "tool_call_result": self._return_tool,
            "user_message": lambda event: self.note(f"› {event.content}"),
            "user_message_answer": lambda event: self.note(f"lead: {event.content}"),
            "interrupt": self._ask,
            "step_interrupt": self._ask_for_step,
            "error": self._fail,
        }

    async def __aenter__(self) -> "PlainDisplay":
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Write the event's lines, if it has any."""
        self._run = run
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(clean_event(event))

    def note(self, text: str) -> None:
        """Write a line to the notes."""
        print(text, file=self._notes, flush=True)

    def show_typed(self, typed: Callable[[], str]) -> bool:
        """Return that lines once written cannot show it."""
        return False

    def show_previous(self, question: str, run: RunView) -> None:
        """Write the exchange to the notes: the output is for new answers."""
        self._run = run
        answer = run.answer if has_answer(run) else ""
        for text in filter(None, (f"You: {question}", answer)):
            self.note(clean(text).strip("\n"))
        self._print_gaps(run)
        if run.status == "interrupted" and run.pauses:
            self._print_plan()
            self._ask(run.pauses[-1])

    def finish(self, run: RunView, seconds: float) -> None:
        """Write the answer, if there is one, and the outcome of the run."""
        if has_answer(run):
            self._write_answer(clean(run.answer).strip("\n"))
        self._print_gaps(run)
        self.note(f"{run_mark(run)} {summary_line(run, seconds)}")

    def _print_gaps(self, run: RunView) -> None:
        for line in gap_lines(run):
            self.note(f"! {line}")

    def _write_answer(self, answer: str) -> None:
        """Write the answer to the output; if that fails, write it to the notes and raise the error."""
        try:
            print(answer, file=self._output, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            self.note(answer)
            raise

    def _start_agent(self, event: AgentStarted) -> None:
        if not self._run.is_result_repeated:
            self.note(self._whose().removesuffix(": ") or event.agent_name)

    def _whose(self) -> str:
        """Return whose turn the newest event belongs to, if several are at work."""
        turn = self._run.turn
        if len(self._run.turns) < 2:
            return ""
        return (
            f"{turn.agent_name}: " if turn.step_id is None else f"{turn.agent_name} (step {turn.step_id}): "
        )

    def _take_message(self, event: MessageChunk) -> None:
        if self._run.replacement is not None:
            self.note(f"  {self._whose()}{REPLACEMENT_TEXTS[self._run.replacement]}")

    def _change_plan(self, event: object) -> None:
        update = self._run.plan_update
        if update is None or self._run.plan_draft:
            return
        if update.is_new:
            self._print_plan()
        else:
            self._print_steps(update.changed_steps)

    def _print_plan(self) -> None:
        if self._run.plan and not self._run.plan.is_request:
            self.note(f"Plan: {one_line(clean(self._run.plan.title))}")
            self._print_steps(self._run.plan.worked_steps)

    def _print_steps(self, steps: Sequence[PlanStepView]) -> None:
        plan = self._run.plan.worked_steps if self._run.plan else []
        for step in steps:
            self.note(f"  {plan_line(plan, step).plain.rstrip()}")
            if step.status != "blocked":  # it was printed when the step failed
                for text in failure_texts(step, verbose=self._verbose):
                    self.note(f"    {reason_line(clean(text), _LINE_CHARACTERS)}")

    def _show_decision(self, event: LeadDecided) -> None:
        self.note(f"  {decision_line(event, _LINE_CHARACTERS)}")

    def _show_review(self, event: GapsReviewed) -> None:
        for line in gap_review_lines(event, _LINE_CHARACTERS):
            self.note(f"  {line}")

    def _report_outage(self, event: ModelUnreachable) -> None:
        if event.attempt == _FIRST_REPEAT:
            self.note(f"  {self._whose()}{outage_line(event)}")

    def _call_tool(self, event: ToolCalled) -> None:
        if repeats_answer(self._run, event.tool_name):
            return
        self._call_times[event.tool_call_id] = time.monotonic()
        arguments = arguments_line(event.tool_input, _LINE_CHARACTERS)
        self.note(f"  {self._whose()}{event.tool_name}: {arguments}")

    def _take_browser_step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event, _LINE_CHARACTERS):
            self.note(f"    {self._whose()}{line}")

    def _return_tool(self, event: ToolReturned) -> None:
        if repeats_answer(self._run, event.tool_name):
            return
        started = self._call_times.pop(event.tool_call_id, None)
        seconds = f" ({duration(time.monotonic() - started)})" if started is not None else ""
        result = result_line(drop_exit_code(event.tool_result), _LINE_CHARACTERS)
        shown = " ".join(filter(None, (failure_mark(event.tool_result), result)))
        self.note(f"  {self._whose()}{event.tool_name}{seconds}: {shown}")

    def _ask(self, event: RunInterrupted) -> None:
        for line in filter(None, describe_question(event).split("\n")):
            self.note(f"  {line}")
        if event.kind == "plan_review" and self._run.plan:
            for number, step in enumerate(self._run.plan.worked_steps, start=1):
                for text in review_texts(step, event):
                    self.note(f"  Step {number}: {text}")

    def _ask_for_step(self, event: StepInterrupted) -> None:
        for line in step_question_lines(event):
            self.note(f"  {line}")

    def _fail(self, event: ErrorOccurred) -> None:
        self.note(f"✘ {event.message}")
