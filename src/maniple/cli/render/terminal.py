"""A run on a terminal: streamed text, the plan, tool calls with their duration, and the current activity."""

import asyncio
import sys
import time
from collections.abc import Callable
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

from maniple.cli.render.markdown import SafeMarkdown, Transcript
from maniple.cli.render.run_text import (
    RUN_MARKS,
    SHOWN_ANSWER_RESTARTED,
    describe_question,
    final_status,
    gap_lines,
    has_answer,
    has_open_work,
    plan_line,
    plan_lines,
    summary_line,
)
from maniple.cli.text import (
    arguments_line,
    clean,
    clean_event,
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
    PlanStepView,
    RunInterrupted,
    RunView,
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
_MOST_OUTPUT_LINES = 5
_OUTPUT_INDENT = (0, 0, 0, 6)
# rich has no name for "erase from here to the end of the screen".
_ERASE = Segments([Segment("\r\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])])


class TerminalDisplay:
    """Prints what is finished, above a live region that is never higher than the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._run = RunView()
        self._transcript = Transcript(console)
        self._activity = ActivityLine()
        self._agent = ""
        self._call_times: dict[str, float] = {}
        self._live = LiveRegion(console, self._live_content)
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "end_of_agent": lambda _: self._end_text("choosing the next step"),
            "start_of_llm": self._start_model,
            "end_of_llm": lambda _: self._end_text(f"{self._agent} is working"),
            "message": self._write,
            "plan": self._change_plan,
            "tool_call": self._call_tool,
            "browser_step": self._take_browser_step,
            "tool_call_result": self._return_tool,
            "interrupt": self._ask,
            "error": self._fail,
        }

    async def __aenter__(self) -> "TerminalDisplay":
        self._live.start()
        self._refreshing = asyncio.create_task(self._keep_refreshing())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._refreshing.cancel()
        self._transcript.flush()
        self._live.stop()

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Show the event, if it is one that people see."""
        self._run = run
        if isinstance(event, ToolOutput):  # the live region reads it from the run
            return
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(clean_event(event))

    def note(self, text: str) -> None:
        """Print a line above the live region, which then gives no more hints about keys."""
        self._transcript.flush()
        self._activity.drop_hint()
        self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def show_previous(self, question: str, run: RunView) -> None:
        """Print the last exchange of a conversation, and what the run waits for."""
        self._run = run
        self._console.print(Text(f"› {clean(question)}", style="bold"))
        if has_answer(run):
            self._console.print()
            self._console.print(SafeMarkdown(clean(run.answer)))
        if run.status == "interrupted" and run.pauses:
            self._print_plan_title()
            self._ask(run.pauses[-1])
        self._transcript.flush()

    def finish(self, run: RunView, seconds: float) -> None:
        """Print the answer if it was not streamed, then status, time and usage."""
        if has_answer(run) and not run.is_answer_streamed:
            self._console.print()
            self._console.print(SafeMarkdown(clean(run.answer)))
        self._console.print()
        for line in gap_lines(run):
            self._console.print(Text(f"! {line}", style="yellow"))
        status = final_status(run)
        mark = (f"{RUN_MARKS[status]} ", _STATUS_STYLES.get(status, "red"))
        self._console.print(Text.assemble(mark, (summary_line(run, seconds), "dim")))

    async def _keep_refreshing(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            self._live.refresh()

    @property
    def _steps(self) -> list[PlanStepView]:
        return self._run.plan.steps if self._run.plan else []

    def _live_content(self) -> RenderableType:
        height = self._console.height
        plan = plan_lines(self._steps, most=max(3, height // 3)) if has_open_work(self._steps) else []
        room = max(3, height - len(plan) - 4)
        tail = self._transcript.tail(room) or self._tool_output(room)
        parts: list[RenderableType] = [Text(""), tail] if tail else []
        if plan:
            parts += [Text(""), *plan]
        return Group(*parts, Text(""), self._activity)

    def _tool_output(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of the running call that printed last, each cut at the screen's edge."""
        outputs = (call.output for call in reversed(self._run.running_calls.values()))
        # A progress bar overwrites its line; here each of its states is a line.
        text = clean(next(filter(None, outputs), "").replace("\r", "\n"))
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return None
        shown = "\n".join(lines[-min(most_lines, _MOST_OUTPUT_LINES) :])
        return Padding(Text(shown, style="dim", no_wrap=True, overflow="ellipsis"), _OUTPUT_INDENT)

    def _start_agent(self, event: AgentStarted) -> None:
        self._agent = event.agent_name
        step = self._run.active_step(event.agent_name)
        self._transcript.open_section(event.agent_name, clean(step.title) if step else "")
        self._activity.begin(f"{event.agent_name} is starting")

    def _start_model(self, event: ModelStarted) -> None:
        self._activity.begin(f"{event.agent_name} waits for the model")

    def _end_text(self, activity: str) -> None:
        self._transcript.flush()
        self._activity.begin(activity)

    def _write(self, event: MessageChunk) -> None:
        reasoning, content = event.delta.reasoning_content, event.delta.content
        if reasoning is not None:
            self._activity.begin(f"{self._agent} is thinking")
            self._transcript.write(reasoning, "reasoning")
        elif self._agent == "planner":  # its JSON becomes the `plan` event
            self._activity.begin("planner is writing the plan")
        else:
            if self._run.is_message_replaced:
                self._transcript.line(Text(SHOWN_ANSWER_RESTARTED, style="yellow"))
            self._activity.begin(f"{self._agent} is writing")
            self._transcript.write(content or "", "content")

    def _change_plan(self, event: object) -> None:
        update = self._run.plan_update
        if update is None:
            return
        if update.is_new:
            self._print_plan_title()
        for step in update.changed_steps:
            is_last = step is self._steps[-1]
            if step.status in ("failed", "blocked", "skipped") or (
                step.status == "completed" and not is_last
            ):
                self._transcript.line(plan_line(self._steps, step))
            if step.reason and step.status != "blocked":  # it was printed when the step failed
                self._transcript.line(Text(f"  {reason_line(clean(step.reason))}", style="red"))

    def _print_plan_title(self) -> None:
        if self._run.plan:
            title = one_line(clean(self._run.plan.title))
            self._transcript.line(Text(f"Plan: {title}", style="bold"))

    def _call_tool(self, event: ToolCalled) -> None:
        self._call_times[event.tool_call_id] = time.monotonic()
        arguments = f"  {arguments_line(event.tool_input)}"
        self._transcript.line(Text.assemble(("⚙ ", "dim"), (event.tool_name, "bold"), arguments))
        self._activity.begin(f"{event.tool_name} is running")

    def _take_browser_step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event):
            self._transcript.line(Text(f"  {line}", style="dim"))
        self._activity.begin(f"{self._agent} is {event.state}, step {event.number}")

    def _return_tool(self, event: ToolReturned) -> None:
        started = self._call_times.pop(event.tool_call_id, None)
        seconds = duration(time.monotonic() - started) if started is not None else ""
        name = f"{event.tool_name} " if self._call_times else ""
        line = Text.assemble((f"  ↳ {name}{seconds}  ", "dim"), result_line(event.tool_result))
        self._transcript.line(line)
        self._activity.begin(f"{self._agent} is working")

    def _ask(self, event: RunInterrupted) -> None:
        if text := describe_question(event):
            self._transcript.text(text)
            return
        for step, line in zip(self._steps, plan_lines(self._steps), strict=True):
            self._transcript.line(line)
            description = clean(step.description)
            if description.strip(" .") != clean(step.title).strip(" ."):
                self._transcript.text(f"      {one_line(description)}")

    def _fail(self, event: ErrorOccurred) -> None:
        self._transcript.flush()
        self._console.print()
        self._console.print(Text(f"✘ {event.message}", style="bold red"))


class ActivityLine:
    """The last line of the live region: what the team does now, and for how long."""

    def __init__(self) -> None:
        self._text = "starting"
        self._since = time.monotonic()
        self._started = self._since
        self._hint = " · Ctrl-C cancels"
        self._spinner = Spinner("dots", style="cyan")

    def begin(self, text: str) -> None:
        """Set the activity; a repeated text does not restart its clock."""
        if text != self._text:
            self._text, self._since = text, time.monotonic()

    def drop_hint(self) -> None:
        """Show no hint about keys any more."""
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


class LiveRegion(RenderHook):
    """Repaints `content()` below everything that is printed, and erases it at the end.

    Unlike rich's `Live` it leaves the cursor at its first cell. When the width of a terminal changes, the
    terminal wraps its lines again and moves the cursor along. The region is everything below the cursor, in
    however many rows, so none of them is left behind.
    """

    def __init__(self, console: Console, content: Callable[[], RenderableType]) -> None:
        self._console = console
        self._content = content
        self._redirected = ExitStack()

    def start(self) -> None:
        """Paint the region; from now on everything written to this terminal is printed above it."""
        self._console.show_cursor(False)
        self._console.push_render_hook(self)
        if _is_terminal(sys.stdout):
            self._redirected.enter_context(redirect_stdout(self._proxy(sys.stdout)))
        if _is_terminal(sys.stderr):
            self._redirected.enter_context(redirect_stderr(self._proxy(sys.stderr)))
        self.refresh()

    def refresh(self) -> None:
        """Repaint the region at the terminal's present size."""
        self._console.print(Control())

    def stop(self) -> None:
        """Erase the region."""
        self._redirected.close()
        self._console.pop_render_hook()
        self._console.print(_ERASE, end="")
        self._console.show_cursor(True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Put what is printed above the region."""
        return [_ERASE, *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Not `options`: they belong to the text above, which may be printed without wrapping.
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
