"""How the terminal shows a run: a live view on a terminal, plain lines elsewhere, or JSON lines."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from maniple.cli.render.run_text import (
    ANSWER_RESTARTED,
    RUN_MARKS,
    describe_question,
    final_status,
    gap_lines,
    has_answer,
    plan_line,
    summary_line,
)
from maniple.cli.render.terminal import TerminalDisplay
from maniple.cli.text import (
    arguments_line,
    clean,
    clean_event,
    duration,
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
    MessageChunk,
    PlanStepView,
    RunInterrupted,
    RunView,
    ToolCalled,
    ToolReturned,
)

if TYPE_CHECKING:
    from maniple.runtime import Answering

_LINE_CHARACTERS = 160
_PROGRESS_LINE_SECONDS = 5.0
_ELAPSED = re.compile(r" \(\d+ s\)$")
"""The elapsed time at the end of a progress text; the bar has a clock of its own."""


class RunDisplay(Protocol):
    """Shows one run. It is a context manager, entered when the run starts."""

    async def __aenter__(self) -> "RunDisplay": ...

    async def __aexit__(self, *exception: object) -> None: ...

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Show the next event; `run` is the state after it. Both hold untrusted text."""
        ...

    def note(self, text: str) -> None:
        """Print a line that is not part of the run."""
        ...

    def show_previous(self, question: str, run: RunView) -> None:
        """Show the last exchange of a conversation, and what its run waits for."""
        ...

    def finish(self, run: RunView, seconds: float) -> None:
        """Show the outcome of the run after its last event; `seconds` is how long it was shown."""
        ...


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
        line = json_line({"id": number, "event": event.type, "data": event.data()})
        print(line, file=self._output, flush=True)

    def note(self, text: str) -> None:
        """Write a line to the notes."""
        print(text, file=self._notes, flush=True)

    def show_previous(self, question: str, run: RunView) -> None:
        """Write nothing: only events of the present run are lines."""

    def finish(self, run: RunView, seconds: float) -> None:
        """Write nothing: the events hold the outcome."""


class PlainDisplay:
    """Writes lines without colours or cursor movement: the answer to `output`, all else to `notes`."""

    def __init__(self, output: IO[str], notes: IO[str]) -> None:
        self._output = output
        self._notes = notes
        self._run = RunView()
        self._call_times: dict[str, float] = {}
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "message": self._take_message,
            "plan": self._change_plan,
            "tool_call": self._call_tool,
            "browser_step": self._take_browser_step,
            "tool_call_result": self._return_tool,
            "interrupt": self._ask,
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

    def show_previous(self, question: str, run: RunView) -> None:
        """Write the exchange to the notes: the output is for new answers."""
        self._run = run
        answer = run.answer if has_answer(run) else ""
        for text in filter(None, (f"You: {question}", answer)):
            self.note(clean(text).strip("\n"))
        if run.status == "interrupted" and run.pauses:
            self._print_plan()
            self._ask(run.pauses[-1])

    def finish(self, run: RunView, seconds: float) -> None:
        """Write the answer, if there is one, and the outcome of the run."""
        if has_answer(run):
            self._write_answer(clean(run.answer).strip("\n"))
        for line in gap_lines(run):
            self.note(f"! {line}")
        self.note(f"{RUN_MARKS[final_status(run)]} {summary_line(run, seconds)}")

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
        self.note(event.agent_name)

    def _take_message(self, event: MessageChunk) -> None:
        if self._run.is_message_replaced:
            self.note(f"  {ANSWER_RESTARTED}")

    def _change_plan(self, event: object) -> None:
        update = self._run.plan_update
        if update is None:
            return
        if update.is_new:
            self._print_plan()
        else:
            self._print_steps(update.changed_steps)

    def _print_plan(self) -> None:
        if self._run.plan:
            self.note(f"Plan: {one_line(clean(self._run.plan.title))}")
            self._print_steps(self._run.plan.steps)

    def _print_steps(self, steps: Sequence[PlanStepView]) -> None:
        plan = self._run.plan.steps if self._run.plan else []
        for step in steps:
            self.note(f"  {plan_line(plan, step).plain.rstrip()}")
            if step.reason and step.status != "blocked":  # it was printed when the step failed
                self.note(f"    {reason_line(clean(step.reason), _LINE_CHARACTERS)}")

    def _call_tool(self, event: ToolCalled) -> None:
        self._call_times[event.tool_call_id] = time.monotonic()
        self.note(f"  {event.tool_name}: {arguments_line(event.tool_input, _LINE_CHARACTERS)}")

    def _take_browser_step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event, _LINE_CHARACTERS):
            self.note(f"    {line}")

    def _return_tool(self, event: ToolReturned) -> None:
        started = self._call_times.pop(event.tool_call_id, None)
        seconds = f" ({duration(time.monotonic() - started)})" if started is not None else ""
        self.note(f"  {event.tool_name}{seconds}: {result_line(event.tool_result, _LINE_CHARACTERS)}")

    def _ask(self, event: RunInterrupted) -> None:
        for line in filter(None, describe_question(event).split("\n")):
            self.note(f"  {line}")

    def _fail(self, event: ErrorOccurred) -> None:
        self.note(f"✘ {event.message}")


class StartupBar:
    """Shows the start on one line: a bar for a download, a spinner and the elapsed time for other tasks."""

    def __init__(self, console: Console) -> None:
        # Two sets of columns: only some tasks have a total.
        self._busy = Progress(
            SpinnerColumn(), _description_column(), TimeElapsedColumn(), console=console, transient=True
        )
        self._bytes = Progress(
            SpinnerColumn(),
            _description_column(),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._shown: tuple[Progress, TaskID, str] | None = None

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Show `text`, and `done` of `total` bytes if they are known."""
        text = _ELAPSED.sub("", clean(text))
        kind = self._busy if total is None else self._bytes
        if self._shown is None or self._shown[0] is not kind or self._shown[2] != _task_of(text):
            self.close()
            kind.start()
            self._shown = (kind, kind.add_task(text, total=total), _task_of(text))
        kind.update(self._shown[1], description=text, completed=done or 0, total=total)

    def close(self) -> None:
        """Erase the line."""
        if self._shown is not None:
            progress, task, _ = self._shown
            self._shown = None
            progress.stop()
            progress.remove_task(task)


def _task_of(text: str) -> str:
    """Return the text without its numbers: "part 3 of 22" and "part 4 of 22" are the same task."""
    return re.sub(r"\d+", "#", text)


def _description_column() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


class StartupLines:
    """Writes a line for each new task of the start, and one every five seconds while it lasts."""

    def __init__(self, notes: IO[str]) -> None:
        self._notes = notes
        self._task = ""
        self._last = 0.0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Write `text` and the share that is done, unless a line of the same task was just written."""
        task = _task_of(text)
        now = time.monotonic()
        if task == self._task and now - self._last < _PROGRESS_LINE_SECONDS:
            return
        self._task, self._last = task, now
        print(clean(text) + _share(done, total), file=self._notes, flush=True)

    def close(self) -> None:
        """Do nothing: the lines stay."""


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return " …"
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"


@dataclass(frozen=True, slots=True)
class Consoles:
    """The two outputs of the program: `output` (stdout) for results, `notes` (stderr) for all else."""

    output: Console
    notes: Console

    @classmethod
    def of_this_process(cls, *, color: bool = True) -> "Consoles":
        """Return stdout and stderr; rich itself honours NO_COLOR."""
        no_color = None if color else True
        return cls(Console(no_color=no_color), Console(no_color=no_color, stderr=True))

    @property
    def is_live(self) -> bool:
        """Whether the output is a terminal that can be repainted."""
        return self.output.is_terminal and not self.output.is_dumb_terminal

    def note(self, text: str, style: str = "") -> None:
        """Print untrusted text to the notes."""
        self.notes.print(Text(clean(text), style=style), soft_wrap=not self.notes.is_terminal)

    def view(self, *, json: bool = False) -> RunDisplay:
        """Return a view for one run."""
        if json:
            return JsonDisplay(self.output.file, self.notes.file)
        if self.is_live:
            return TerminalDisplay(self.output)
        return PlainDisplay(self.output.file, self.notes.file)

    def progress(self) -> "StartupBar | StartupLines":
        """Return what shows the progress of the start."""
        is_live = self.notes.is_terminal and not self.notes.is_dumb_terminal
        return StartupBar(self.notes) if is_live else StartupLines(self.notes.file)

    def announce_model(self, answering: "Answering", notices: Sequence[str]) -> None:
        """Print which model answers, and what is not available. No endpoint has been called yet."""
        for text in _model_lines(answering):
            self.note(text, "dim")
        for notice in notices:
            self.note(f"• {notice}", "dim")


def _model_lines(answering: "Answering") -> Iterator[str]:
    if answering.embedded:
        yield f"Using {answering.model}, a small model that runs inside this program. It makes mistakes."
    else:
        yield f"Using {answering.model} at {answering.url}."
    if answering.advice:
        yield answering.advice
