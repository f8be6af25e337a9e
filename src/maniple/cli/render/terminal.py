"""A run on a terminal: streamed text, the plan, tool calls with their duration, and the current activity."""

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
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

from maniple.cli.render.decision_text import style_question
from maniple.cli.render.document_text import SafeMarkdown
from maniple.cli.render.markdown import ANSWER_SECTION, Transcript
from maniple.cli.render.run_text import (
    REPORTER,
    SHOWN_REPLACEMENT_TEXTS,
    TO_TEAM,
    answer_instructions,
    continued_line,
    decision_line,
    effort_line,
    failure_texts,
    final_status,
    gap_lines,
    gap_review_lines,
    has_answer,
    has_open_work,
    outage_line,
    plan_line,
    plan_lines,
    repeats_answer,
    review_texts,
    run_mark,
    step_question_head,
    summary_line,
    waiting_line,
)
from maniple.cli.render.wrapping import hang_words
from maniple.cli.text import (
    arguments_line,
    clean,
    clean_event,
    duration,
    failure_mark,
    one_line,
    reason_line,
    result_lines,
    step_line,
)
from maniple.events import (
    AgentEnded,
    AgentStarted,
    BrowserStepChanged,
    ErrorOccurred,
    Event,
    GapsReviewed,
    LeadDecided,
    MessageChunk,
    ModelEnded,
    ModelStarted,
    ModelUnreachable,
    PlanStepView,
    PlanUpdate,
    Replacement,
    RunContinued,
    RunInterrupted,
    RunView,
    RunWaiting,
    StepInterrupted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    TurnView,
    UserMessageAnswered,
    UserMessageReceived,
)

_REFRESH_SECONDS = 1 / 8
_STATUS_STYLES = {
    "completed": "green",
    "interrupted": "yellow",
    "cancelled": "yellow",
    "budget_exhausted": "yellow",
}
_MAX_OUTPUT_LINES = 5
_STEP_CHARACTERS = 50
"""The longest title of a step in the line of what its member does."""
_OUTPUT_INDENT = (0, 0, 0, 6)
# rich has no name for "erase from here to the end of the screen".
_URGENT = (UserMessageReceived, UserMessageAnswered, StepInterrupted, RunWaiting, RunContinued)
"""Events that are shown at once, also while an agent writes."""
_ERASE = Segments([Segment("\r\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])])


class TerminalDisplay:
    """Prints what is finished, above a live region that is never higher than the screen."""

    def __init__(self, console: Console, *, verbose: bool = False, links: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._links = links
        self._run = RunView()
        self._transcript = Transcript(console, links=links)
        self._activity = ActivityLines()
        self._moment = _Moment()
        self._section = ""
        self._writing: str | None = None
        """The turn whose text is not finished."""
        self._deferred: dict[str, deque[_Moment]] = {}
        self._typed: Callable[[], str] = str
        self._message_id = self._text = ""
        self._call_times: dict[str, float] = {}
        self._live = LiveRegion(console, self._live_content)
        self._handlers: dict[str, Callable[[Any], None]] = {
            "start_of_agent": self._start_agent,
            "end_of_agent": self._end_agent,
            "end_of_llm": lambda _: self._transcript.flush(),
            "message": self._write,
            "plan": self._change_plan,
            "lead_decision": self._show_decision,
            "gap_review": self._show_review,
            "tool_call": self._call_tool,
            "browser_step": self._take_browser_step,
            "tool_call_result": self._return_tool,
            "effort_not_used": lambda event: self.note(effort_line(event)),
            "run_waiting": lambda event: self.note(waiting_line(event)),
            "run_continued": lambda event: self.note(continued_line(event)),
            "user_message": self._write_message,
            "user_message_answer": self._write_reply,
            "interrupt": self._ask,
            "step_interrupt": self._ask_for_step,
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
        event = clean_event(event)
        if activity := _activity_of(event, run.turn):
            is_answer = isinstance(event, ToolCalled) and repeats_answer(run, event.tool_name)
            activity = "checking the answer" if is_answer or run.is_result_repeated else activity
            self._activity.begin(activity, event.turn_id, self._step_of(run.turn))
        if isinstance(event, AgentEnded):
            self._activity.end(event.turn_id)
        if isinstance(event, _URGENT):
            self._handlers[event.type](event)
        elif event.type in self._handlers:
            moment = _Moment(
                event,
                run.turn,
                run.plan_update,
                run.replacement,
                run.is_result_repeated,
                is_draft=run.plan_draft is not None,
                call_number=run.usage.tool_calls,
            )
            self._deferred.setdefault(event.turn_id, deque()).append(moment)
            self._show_deferred()

    def _show_deferred(self) -> None:
        """Show what waits. While one agent writes a text, what others do waits until the text has ended."""
        while self._deferred:
            key = next(iter(self._deferred)) if self._writing is None else self._writing
            moments = self._deferred.get(key)
            if moments is None:
                return
            self._show(moments.popleft())
            if not moments:
                del self._deferred[key]

    def _show(self, moment: "_Moment") -> None:
        self._moment, event = moment, moment.event
        if event.turn_id and event.turn_id != self._section and not moment.is_repeated:
            self._open_section(event.turn_id)
        self._handlers[event.type](event)
        if isinstance(event, MessageChunk):
            self._writing = event.turn_id
        elif event.turn_id == self._writing:
            self._writing = None

    def show_typed(self, typed: Callable[[], str]) -> bool:
        """Show from now on what the user types."""
        self._typed = typed
        self._activity.offer_typing()
        return True

    def note(self, text: str) -> None:
        """Print a line above the live region, which then gives no more hints about keys."""
        self._transcript.flush()
        self._activity.drop_hint()
        shown = hang_words(Text(text), self._console.width)
        shown.style = "yellow"
        self._console.print(shown, soft_wrap=True)

    def show_previous(self, question: str, run: RunView) -> None:
        """Print the last exchange of a conversation, and what the run waits for."""
        self._run = run
        self._console.print(Text(f"› {clean(question)}", style="bold"))
        if has_answer(run):
            self._console.print()
            self._console.print(SafeMarkdown(clean(run.answer), links=self._links))
        self._print_gaps(run)
        if run.status == "interrupted" and run.pauses:
            self._print_plan_title()
            self._ask(run.pauses[-1])
        self._transcript.flush()

    def finish(self, run: RunView, seconds: float) -> None:
        """Print the answer if it was not streamed, then status, time and usage."""
        answer = clean(run.answer)
        # The answer of an agent that gave up, without the mark at its beginning.
        is_shown = run.is_answer_streamed or self._text.strip().endswith(answer.strip())
        if has_answer(run) and not is_shown:
            self._console.print()
            self._console.print(SafeMarkdown(answer, links=self._links))
        self._console.print()
        self._print_gaps(run)
        style = "yellow" if run.gaps else _STATUS_STYLES.get(final_status(run), "red")
        mark = (f"{run_mark(run)} ", style)
        self._console.print(Text.assemble(mark, (summary_line(run, seconds), "dim")))

    def _print_gaps(self, run: RunView) -> None:
        for line in gap_lines(run):
            self._console.print(Text(f"! {line}", style="yellow"))

    async def _keep_refreshing(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            self._live.refresh()

    @property
    def _steps(self) -> list[PlanStepView]:
        return self._run.plan.worked_steps if self._run.plan else []

    def _step_of(self, turn: TurnView) -> str:
        """Return the number and the title of the step of a turn; "" if it has none."""
        steps = self._steps
        place = next((at for at, step in enumerate(steps, 1) if step.id == turn.step_id), 0)
        return f"step {place}: {one_line(clean(steps[place - 1].title), _STEP_CHARACTERS)}" if place else ""

    def _open_section(self, turn_id: str) -> None:
        self._section, turn = turn_id, self._moment.turn
        is_request = self._run.plan is not None and self._run.plan.is_request
        step = None if is_request else self._run.active_step(turn.agent_name, turn.step_id)
        self._transcript.open_section(turn.agent_name, clean(step.title) if step else "")

    def _live_content(self) -> RenderableType:
        height = self._console.height
        draft = self._run.plan_draft
        steps = draft.steps if draft else self._steps
        has_plan = draft is not None or has_open_work(steps)
        plan = plan_lines(steps, most=max(3, height // 3)) if has_plan else []
        room = max(3, height - len(plan) - 4)
        tail = self._transcript.tail(room) or self._tool_output(room)
        parts: list[RenderableType] = [Text(""), tail] if tail else []
        if plan:
            parts += [Text(""), *plan]
        typed = clean(self._typed())
        line = [Text(f"› {typed}", style="bold", no_wrap=True, overflow="ellipsis")] if typed else []
        return Group(*parts, Text(""), self._activity, *line)

    def _tool_output(self, most_lines: int) -> RenderableType | None:
        """Return the last lines of the running call that printed last, each cut at the screen's edge."""
        outputs = (call.output for call in reversed(self._run.running_calls.values()))
        # A progress bar overwrites its line; here each of its states is a line.
        text = clean(next(filter(None, outputs), "").replace("\r", "\n"))
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return None
        shown = "\n".join(lines[-min(most_lines, _MAX_OUTPUT_LINES) :])
        return Padding(Text(shown, style="dim", no_wrap=True, overflow="ellipsis"), _OUTPUT_INDENT)

    def _start_agent(self, event: AgentStarted) -> None:
        if self._moment.is_repeated:
            return
        self._text = ""
        if not event.turn_id:
            self._open_section(event.agent_id)

    def _end_agent(self, event: AgentEnded) -> None:
        answer = clean(self._moment.turn.message_text)
        if self._moment.is_repeated and answer.strip() != self._text.strip():
            # The check of its citations has changed what the last member wrote.
            self._transcript.open_section(ANSWER_SECTION, "")
            self._transcript.write(answer, "content")
        self._transcript.flush()

    def _write(self, event: MessageChunk) -> None:
        if self._moment.is_repeated:
            return
        reasoning, content = event.delta.reasoning_content, event.delta.content
        if reasoning is not None:
            self._transcript.write(reasoning, "reasoning")
        elif self._moment.turn.agent_name != "planner":  # its JSON becomes the `plan` event
            if self._moment.replacement is not None:
                text = SHOWN_REPLACEMENT_TEXTS[self._moment.replacement]
                self._transcript.line(Text(text, style="yellow"))
            self._remember(event.message_id, content or "")
            self._transcript.write(content or "", "content")

    def _remember(self, message_id: str, content: str) -> None:
        """Store the newest message of the present turn."""
        if message_id != self._message_id:
            self._message_id, self._text = message_id, ""
        self._text += content

    def _change_plan(self, event: object) -> None:
        update = self._moment.plan_update
        if update is None or self._moment.is_draft:
            return
        if update.is_new:
            self._print_plan_title()
        steps = update.plan.worked_steps
        for step in update.changed_steps:
            if step.status in ("failed", "blocked", "skipped") or (
                step.status == "completed" and step.agent_name != REPORTER
            ):
                self._transcript.line(plan_line(steps, step))
            if step.status != "blocked":  # it was printed when the step failed
                for text in failure_texts(step, verbose=self._verbose):
                    self._transcript.line(Text(f"  {reason_line(clean(text))}", style="red"))

    def _print_plan_title(self) -> None:
        if self._run.plan and not self._run.plan.is_request:
            title = one_line(clean(self._run.plan.title))
            self._transcript.line(Text(f"Plan: {title}", style="bold"))

    def _show_decision(self, event: LeadDecided) -> None:
        self._transcript.line(Text(f"  {decision_line(event)}", style="yellow"))

    def _show_review(self, event: GapsReviewed) -> None:
        for line in gap_review_lines(event):
            self._transcript.line(Text(f"  {line}", style="yellow"))

    def _call_tool(self, event: ToolCalled) -> None:
        if repeats_answer(self._run, event.tool_name):
            return
        self._call_times[event.tool_call_id] = time.monotonic()
        number, arguments = self._moment.call_number, f"  {arguments_line(event.tool_input)}"
        self._transcript.line(Text.assemble((f"⚙ {number} ", "dim"), (event.tool_name, "bold"), arguments))

    def _take_browser_step(self, event: BrowserStepChanged) -> None:
        if line := step_line(event):
            self._transcript.line(Text(f"  {line}", style="dim"))

    def _return_tool(self, event: ToolReturned) -> None:
        if repeats_answer(self._run, event.tool_name):
            return
        started = self._call_times.pop(event.tool_call_id, None)
        seconds = duration(time.monotonic() - started) if started is not None else ""
        name = f"{event.tool_name} " if self._call_times else ""
        first, *rest = result_lines(event.tool_result)
        mark = failure_mark(event.tool_result)
        failed = (f"{mark}  ", "bold red") if mark else ""
        self._transcript.line(Text.assemble((f"  ↳ {name}{seconds}  ", "dim"), failed, first))
        for line in rest:
            self._transcript.line(Text(f"      {line}", style="dim"))

    def _write_message(self, event: UserMessageReceived) -> None:
        self._transcript.flush()
        self._console.print(Text(f"› {event.content}", style="bold"))

    def _write_reply(self, event: UserMessageAnswered) -> None:
        self._transcript.flush()
        self._console.print(Text.assemble(("lead: ", "bold"), event.content))

    def _ask(self, event: RunInterrupted) -> None:
        if text := style_question(event):
            self._transcript.text(text)
            return
        for step, line in zip(self._steps, plan_lines(self._steps), strict=True):
            self._transcript.line(line)
            for text in review_texts(step, event):
                self._transcript.text(f"      {text}")

    def _ask_for_step(self, event: StepInterrupted) -> None:
        self._transcript.flush()
        how = f"  {answer_instructions(event)} {TO_TEAM}TEXT writes to the team."
        asking, question = step_question_head(event), style_question(event)
        self._console.print(Text(asking, style="yellow"), soft_wrap=True)
        for line in question.split("\n", allow_blank=True):
            self._console.print(Text("  ", style="yellow").append_text(line), soft_wrap=True)
        self._console.print(Text(how, style="yellow"), soft_wrap=True)

    def _fail(self, event: ErrorOccurred) -> None:
        self._transcript.flush()
        self._console.print()
        self._console.print(Text(f"✘ {event.message}", style="bold red"))


@dataclass(frozen=True, slots=True)
class _Moment:
    """An event, and the run's state after it as far as it is shown with it."""

    event: Event = field(default_factory=lambda: ModelStarted(agent_name=""))
    turn: TurnView = field(default_factory=TurnView)
    plan_update: PlanUpdate | None = None
    replacement: Replacement | None = None
    is_repeated: bool = False
    is_draft: bool = False
    call_number: int = 0
    """The number of tool calls of the run so far: the one by which `/show` finds the newest."""


_ACTIVITIES: Mapping[type[Event], str] = {
    AgentStarted: "{agent} is starting",
    ModelStarted: "{agent} waits for the model",
    ModelEnded: "{agent} is working",
    ToolReturned: "{agent} is working",
}


def _activity_of(event: Event, turn: TurnView) -> str:
    """Return what an agent does after an event; "" if the event says nothing about it."""
    agent = turn.agent_name
    match event:
        case ModelUnreachable():
            return f"{agent if event.turn_id else 'lead'}: {outage_line(event)}"
        case MessageChunk() if event.delta.reasoning_content is not None:
            return f"{agent} is thinking"
        case MessageChunk():
            return "planner is writing the plan" if agent == "planner" else f"{agent} is writing"
        case ToolCalled():
            return f"{event.tool_name} is running"
        case BrowserStepChanged():
            return f"{agent} is {event.state}, step {event.number}"
        case _:
            return _ACTIVITIES.get(type(event), "").format(agent=agent)


class ActivityLines:
    """The last lines of the live region: what each member at work does now, and for how long."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._of_turns: dict[str, tuple[str, float]] = {}
        self._steps: dict[str, str] = {}
        self._idle = "starting", self._started
        self._hint = " · Ctrl-C cancels"
        self._spinner = Spinner("dots", style="cyan")

    def begin(self, text: str, turn_id: str = "", step: str = "") -> None:
        """Set the activity of a turn and its step; a repeated text does not restart its clock.

        The steps are shown while several turns are at work. Without a turn, it is shown while none is.
        """
        if not turn_id:
            self._idle = text, time.monotonic()
            return
        self._steps[turn_id] = step
        if text != self._of_turns.get(turn_id, ("", 0.0))[0]:
            self._of_turns[turn_id] = text, time.monotonic()

    def end(self, turn_id: str) -> None:
        """End the activity of a turn."""
        self._of_turns.pop(turn_id, None)
        self._steps.pop(turn_id, None)
        self._idle = "choosing the next step", time.monotonic()

    def offer_typing(self) -> None:
        """Show that the user can write to the team."""
        self._hint = f" · type to write to the team{self._hint}"

    def drop_hint(self) -> None:
        """Show no hint about keys any more."""
        self._hint = ""

    def __rich__(self) -> Text:
        now = time.monotonic()
        spinner = self._spinner.render(now)
        frame = spinner if isinstance(spinner, Text) else Text()
        turns = self._of_turns or {"": self._idle}
        steps = {turn_id: f" ({step})" for turn_id, step in self._steps.items() if step and len(turns) > 1}
        lines = [
            Text.assemble(frame, f" {text}", (steps.get(turn_id, ""), "dim"), f" · {duration(now - since)}")
            for turn_id, (text, since) in turns.items()
        ]
        lines[-1].append(f"   run {duration(now - self._started)}{self._hint}", "dim")
        shown = Text("\n").join(lines)
        shown.no_wrap, shown.overflow = True, "ellipsis"
        return shown


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
