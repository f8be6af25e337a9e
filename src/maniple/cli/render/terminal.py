"""A run on a terminal: streaming text, the plan, tools with their time, and what goes on now."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import IO, Any, cast

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    Group,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.padding import Padding
from rich.segment import ControlType, Segment, Segments
from rich.spinner import Spinner
from rich.text import Text

from maniple.cli.render.markdown import Prose, Transcript
from maniple.cli.render.run_state import VOID, PlanView, Retries, Tally, description
from maniple.cli.text import (
    RUN_MARKS,
    arguments_line,
    clean,
    cleaned,
    duration,
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
    ModelStarted,
    PlanChanged,
    RunInterrupted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)

_REFRESH_SECONDS = 1 / 8
_STATUS_STYLES = {
    "completed": "green",
    "interrupted": "yellow",
    "cancelled": "yellow",
    "budget_exhausted": "yellow",
}


class TerminalView:
    """Prints what is finished, and keeps a live region below it that never grows over the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._transcript = Transcript(console)
        self._plan = PlanView()
        self._activity = Activity()
        self._agent = ""
        self._calls: dict[str, float] = {}
        self._printing = Printing()
        self._retries = Retries()
        self._live = LiveRegion(console, self._region)
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "end_of_agent": lambda _: self._rest("choosing the next step"),
            "start_of_llm": self._start_model,
            "end_of_llm": lambda _: self._rest(f"{self._agent} is working"),
            "message": self._write,
            "plan": self._change_plan,
            "tool_call": self._call_tool,
            "browser_step": self._step,
            "tool_call_result": self._return_tool,
            "interrupt": self._ask,
            "error": self._fail,
        }

    async def __aenter__(self) -> "TerminalView":
        self._live.start()
        self._refreshing = asyncio.create_task(self._keep_refreshing())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._refreshing.cancel()
        self._transcript.flush()
        self._live.stop()

    def show(self, number: int, event: Event) -> None:
        """Show the event, if it is one that people see."""
        if isinstance(event, ToolOutput):
            self._printing.add(event)
            return
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(cleaned(event))

    def say(self, text: str) -> None:
        """Say it above the live line, which has no more to say about keys then."""
        self._transcript.flush()
        self._activity.drop_hint()
        self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """Print the exchange, and what is waited for."""
        self._console.print(Text(f"› {clean(asked)}", style="bold"))
        if answer:
            self._console.print()
            self._console.print(Prose(clean(answer)))
        for event in waiting:
            self.show(0, event)
        self._transcript.flush()

    def finish(self, tally: Tally) -> None:
        """Print the answer where no message told it, then status, time and use."""
        if tally.has_answer() and not tally.is_told:
            self._console.print()
            self._console.print(Prose(clean(tally.answer)))
        self._console.print()
        style = _STATUS_STYLES.get(tally.status, "red")
        self._console.print(Text.assemble((f"{RUN_MARKS[tally.status]} ", style), (tally.summary(), "dim")))

    async def _keep_refreshing(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            self._live.refresh()

    def _region(self) -> RenderableType:
        height = self._console.height
        plan = self._plan.lines(most=max(3, height // 3)) if self._plan.has_open_work() else []
        room = max(3, height - len(plan) - 4)
        tail = self._transcript.tail(room) or self._printing.tail(room)
        parts: list[RenderableType] = [Text(""), tail] if tail else []
        if plan:
            parts += [Text(""), *plan]
        return Group(*parts, Text(""), self._activity)

    def _start_agent(self, event: AgentStarted) -> None:
        self._agent = event.agent_name
        self._transcript.open_section(event.agent_name, self._plan.title_for(event.agent_name))
        self._activity.begin(f"{event.agent_name} is starting")

    def _start_model(self, event: ModelStarted) -> None:
        self._retries.begin()
        self._activity.begin(f"{event.agent_name} waits for the model")

    def _rest(self, activity: str) -> None:
        self._transcript.flush()
        self._activity.begin(activity)

    def _write(self, event: MessageChunk) -> None:
        reasoning, content = event.delta.reasoning_content, event.delta.content
        if reasoning is not None:
            self._activity.begin(f"{self._agent} is thinking")
            self._transcript.write(reasoning, "reasoning")
        elif self._agent == "planner":  # its JSON becomes the `plan` event
            self._activity.begin("planner writes the plan")
        else:
            if self._retries.voids(event):
                self._transcript.line(Text(VOID, style="yellow"))
            self._activity.begin(f"{self._agent} is writing")
            self._transcript.write(content or "", "content")

    def _change_plan(self, event: PlanChanged) -> None:
        changed = self._plan.update(event)
        if self._plan.is_new:
            self._transcript.line(Text(f"Plan: {one_line(event.title)}", style="bold"))
        for step in changed:
            last = step is self._plan.steps[-1]
            if step.status in ("failed", "blocked", "skipped") or (step.status == "completed" and not last):
                self._transcript.line(self._plan.line(step))
            if step.reason and step.status != "blocked":  # it was said when it failed
                self._transcript.line(Text(f"  {reason_line(step.reason)}", style="red"))

    def _call_tool(self, event: ToolCalled) -> None:
        self._calls[event.tool_call_id] = time.monotonic()
        arguments = f"  {arguments_line(event.tool_input)}"
        self._transcript.line(Text.assemble(("⚙ ", "dim"), (event.tool_name, "bold"), arguments))
        self._activity.begin(f"{event.tool_name} runs")

    def _step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event):
            self._transcript.line(Text(f"  {line}", style="dim"))
        self._activity.begin(f"{self._agent} is {event.state}, step {event.number}")

    def _return_tool(self, event: ToolReturned) -> None:
        started = self._calls.pop(event.tool_call_id, None)
        self._printing.end(event.tool_call_id)
        seconds = duration(time.monotonic() - started) if started is not None else ""
        name = f"{event.tool_name} " if self._calls else ""
        line = Text.assemble((f"  ↳ {name}{seconds}  ", "dim"), result_line(event.tool_result))
        self._transcript.line(line)
        self._activity.begin(f"{self._agent} is working")

    def _ask(self, event: RunInterrupted) -> None:
        if text := description(event):
            self._transcript.text(text)
            return
        for step, line in zip(self._plan.steps, self._plan.lines(), strict=True):
            self._transcript.line(line)
            if step.description.strip(" .") != step.title.strip(" ."):
                self._transcript.text(f"      {one_line(step.description)}")

    def _fail(self, event: ErrorOccurred) -> None:
        self._transcript.flush()
        self._console.print()
        self._console.print(Text(f"✘ {event.message}", style="bold red"))


class Activity:
    """What the team does at this moment."""

    def __init__(self) -> None:
        self._text = "starting"
        self._since = time.monotonic()
        self._started = self._since
        self._hint = " · Ctrl-C cancels"
        self._spinner = Spinner("dots", style="cyan")

    def begin(self, text: str) -> None:
        """Say what is done now; its time counts from the first time it is said."""
        if text != self._text:
            self._text, self._since = text, time.monotonic()

    def drop_hint(self) -> None:
        """Say no more about keys."""
        self._hint = ""

    def __rich__(self) -> Text:
        now = time.monotonic()
        frame = self._spinner.render(now)
        return Text.assemble(
            frame if isinstance(frame, Text) else "",
            f" {self._text} · {duration(now - self._since)}",
            (f"   run {duration(now - self._started)}{self._hint}", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )


_STORED_CHARACTERS = 4_000
_MOST_LINES = 5
_OUTPUT_INDENT = (0, 0, 0, 6)


class Printing:
    """Keeps the newest output of each call under way; a call's standard output and errors are one text."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, event: ToolOutput) -> None:
        """Take a piece, as untrusted as it comes."""
        # The call that printed last is the last of them.
        text = self._texts.pop(event.tool_call_id, "") + event.text
        self._texts[event.tool_call_id] = text[-_STORED_CHARACTERS:]

    def end(self, tool_call_id: str) -> None:
        """Forget a call that has its result."""
        self._texts.pop(tool_call_id, None)

    def tail(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of the call that printed last, each cut at the screen's edge."""
        if not self._texts:
            return None
        # A progress bar writes over its line again and again; here each state of it is a line.
        text = clean(self._texts[next(reversed(self._texts))].replace("\r", "\n"))
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return None
        shown = "\n".join(lines[-min(most_lines, _MOST_LINES) :])
        return Padding(Text(shown, style="dim", no_wrap=True, overflow="ellipsis"), _OUTPUT_INDENT)


# rich has no name for "erase from here to the end of the screen".
_ERASE = Segments([Segment("\r\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])])


class LiveRegion(RenderHook):
    """Paints `content()` below everything that is printed, and takes it away in the end.

    Unlike rich's `Live` it leaves the cursor at its first cell. A terminal that wraps its lines anew when
    its width changes takes the cursor along; so the region is all that is below the cursor, in however many
    rows it is by then, and none of them stays behind.
    """

    def __init__(self, console: Console, content: Callable[[], RenderableType]) -> None:
        self._console = console
        self._content = content
        self._redirected = ExitStack()

    def start(self) -> None:
        """Paint it, and print above it whatever is written to this terminal."""
        self._console.show_cursor(False)
        self._console.push_render_hook(self)
        if _is_terminal(sys.stdout):
            self._redirected.enter_context(redirect_stdout(self._proxy(sys.stdout)))
        if _is_terminal(sys.stderr):
            self._redirected.enter_context(redirect_stderr(self._proxy(sys.stderr)))
        self.refresh()

    def refresh(self) -> None:
        """Paint it anew, at the size that the terminal has now."""
        self._console.print(Control())

    def stop(self) -> None:
        """Take it from the screen."""
        self._redirected.close()
        self._console.pop_render_hook()
        self._console.print(_ERASE, end="")
        self._console.show_cursor(True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Put what is printed above the region."""
        return [_ERASE, *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The options are those of the text that is printed above; it may be one that is not to be wrapped.
        lines = console.render_lines(self._content(), console.options, pad=False)[-console.height :]
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            yield from line
        yield Control(*([(ControlType.CURSOR_UP, len(lines) - 1)] if len(lines) > 1 else []))
        yield Control(ControlType.CARRIAGE_RETURN)

    def _proxy(self, stream: IO[str]) -> Any:
        return cast("Any", FileProxy(self._console, stream))


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()
