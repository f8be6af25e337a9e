"""Views of a run: terminal, plain lines, and JSON lines."""

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

from maniple.cli.render.run_state import ANEW, PlanView, Retries, Tally, description
from maniple.cli.render.terminal import TerminalView
from maniple.cli.text import (
    RUN_MARKS,
    arguments_line,
    clean,
    cleaned,
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
    PlanChanged,
    RunInterrupted,
    ToolCalled,
    ToolReturned,
)


class View(Protocol):
    """Shows one run; a context that is entered when the run starts."""

    async def __aenter__(self) -> "View": ...

    async def __aexit__(self, *exception: object) -> None: ...

    def show(self, number: int, event: Event) -> None:
        """Show the next event. Its texts may be anything: a view for people prints them cleaned."""
        ...

    def say(self, text: str) -> None:
        """Tell the person something that is not of the run."""
        ...

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """Show the last exchange of a conversation, and the events that say what is waited for."""
        ...

    def finish(self, tally: Tally) -> None:
        """Show what the run came to, after its last event."""
        ...


class JsonView:
    """Writes each event as one line of JSON to `output`; words go to `notes`."""

    def __init__(self, output: IO[str], notes: IO[str]) -> None:
        self._output = output
        self._notes = notes

    async def __aenter__(self) -> "JsonView":
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    def show(self, number: int, event: Event) -> None:
        """Write the event's line."""
        line = json_line({"id": number, "event": event.type, "data": event.data()})
        print(line, file=self._output, flush=True)

    def say(self, text: str) -> None:
        """Write to the notes."""
        print(text, file=self._notes, flush=True)

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """The lines are of runs that are under way."""

    def finish(self, tally: Tally) -> None:
        """The events have said it."""


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

    def _hear(self, event: MessageChunk) -> None:
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

    def _step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event, _LONGEST_LINE):
            self.say(f"    {line}")

    def _return_tool(self, event: ToolReturned) -> None:
        started = self._calls.pop(event.tool_call_id, None)
        seconds = f" ({duration(time.monotonic() - started)})" if started is not None else ""
        self.say(f"  {event.tool_name}{seconds}: {result_line(event.tool_result, _LONGEST_LINE)}")

    def _ask(self, event: RunInterrupted) -> None:
        for line in filter(None, description(event).split("\n")):
            self.say(f"  {line}")

    def _fail(self, event: ErrorOccurred) -> None:
        self.say(f"✘ {event.message}")


_LINE_EVERY_SECONDS = 5.0


_SECONDS = re.compile(r" \(\d+ s\)$")
"""The bar has a clock of its own."""


class ProgressBar:
    """Shows one line: a spinner and the time for work without a measure, a bar for bytes."""

    def __init__(self, console: Console) -> None:
        # Two lines of columns, since a task has either a measure or none.
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
        """Show `text`, and `done` of `total` bytes where that is known."""
        text = _SECONDS.sub("", clean(text))
        kind = self._busy if total is None else self._bytes
        if self._shown is None or self._shown[0] is not kind or self._shown[2] != _work(text):
            self.close()
            kind.start()
            self._shown = (kind, kind.add_task(text, total=total), _work(text))
        kind.update(self._shown[1], description=text, completed=done or 0, total=total)

    def close(self) -> None:
        """Take the line from the screen."""
        if self._shown is not None:
            progress, task, _ = self._shown
            self._shown = None
            progress.stop()
            progress.remove_task(task)


def _work(text: str) -> str:
    """Return what is the same in "part 3 of 22" and "part 4 of 22", which are one piece of work."""
    return re.sub(r"\d+", "#", text)


def _description_column() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


class ProgressLines:
    """Writes a line for each new piece of work, and one every five seconds while it lasts."""

    def __init__(self, notes: IO[str]) -> None:
        self._notes = notes
        self._work = ""
        self._last = 0.0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Write `text` with the share that is done, unless that was said just now."""
        work = _work(text)
        now = time.monotonic()
        if work == self._work and now - self._last < _LINE_EVERY_SECONDS:
            return
        self._work, self._last = work, now
        print(clean(text) + _share(done, total), file=self._notes, flush=True)

    def close(self) -> None:
        """Leave the lines as they are."""


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return " …"
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"


@dataclass(frozen=True, slots=True)
class Screens:
    """`output` (stdout) is for what was asked for, `notes` (stderr) for all else."""

    output: Console
    notes: Console

    @classmethod
    def of_this_process(cls, *, color: bool = True) -> "Screens":
        """Return stdout and stderr; rich itself honours NO_COLOR."""
        no_color = None if color else True
        return cls(Console(no_color=no_color), Console(no_color=no_color, stderr=True))

    @property
    def is_live(self) -> bool:
        """Say whether the output can be redrawn."""
        return self.output.is_terminal and not self.output.is_dumb_terminal

    def note(self, text: str, style: str = "") -> None:
        """Say something beside the output; `text` may come from anywhere."""
        self.notes.print(Text(clean(text), style=style), soft_wrap=not self.notes.is_terminal)

    def view(self, *, json: bool = False) -> View:
        """Return a view for one run."""
        if json:
            return JsonView(self.output.file, self.notes.file)
        if self.is_live:
            return TerminalView(self.output)
        return PlainView(self.output.file, self.notes.file)

    def progress(self) -> ProgressBar | ProgressLines:
        """Return what shows how far the start is."""
        live = self.notes.is_terminal and not self.notes.is_dumb_terminal
        return ProgressBar(self.notes) if live else ProgressLines(self.notes.file)


if TYPE_CHECKING:
    from maniple.runtime import Answering


def announce(answering: "Answering", notices: Sequence[str], screens: Screens) -> None:
    """Say which model is used, and what is absent. No endpoint has been asked anything yet."""
    for text in _greeting(answering):
        screens.note(text, "dim")
    for notice in notices:
        screens.note(f"• {notice}", "dim")


def _greeting(answering: "Answering") -> Iterator[str]:
    if answering.embedded:
        yield f"Using {answering.model}, a small model inside this program: it may be wrong."
    else:
        yield f"Using {answering.model} at {answering.url}."
    if answering.advice:
        yield answering.advice
