"""What happened in a run, collected from its events. Nothing in them is taken for granted.

An event log may be cut off in the middle, be of another version, or hold what a tool or a page made up.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maniple.run_page.lenient import LONGEST, count, flag, mapping, mappings, number, parsed, text, written
from maniple.store import EventRecord

MOST_STEPS = 500
MOST_ROWS = 100
LONGEST_RESULT = 200_000
_NAME = 200
_ADDRESS = 2_000
_ARTIFACT = re.compile(r"/api/artifacts/([A-Za-z0-9-]{1,200})\Z")


@dataclass(slots=True)
class Step:
    """One time of thinking, acting and observing; what is not known of it is empty or None."""

    agent: str = ""
    number: int = 0
    """From 1 in a call of the browser; 0 for any other step."""
    thought: str = ""
    action: str = ""
    parameters: str = ""
    """As JSON."""
    observation: str = ""
    success: bool | None = None
    seconds: float | None = None
    started: float | None = None
    """In Unix time."""
    state: str = ""
    phase: str = ""
    within: str = ""
    """The tool in whose call it was, for a step of the browser."""
    url: str = ""
    title: str = ""
    screenshot: str = ""
    """The id of an artifact."""


@dataclass(slots=True)
class ModelUsage:
    """What one agent used of one model."""

    agent: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A step of the team's plan."""

    agent: str
    title: str
    status: str
    reason: str


@dataclass(slots=True)
class Story:
    """A run as its page tells it."""

    asked: str = ""
    result: str = ""
    status: str = ""
    error: str = ""
    question: str = ""
    """What is waited for."""
    plan: list[PlanLine] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    more_steps: int = 0
    """How many there were beyond `MOST_STEPS`."""
    usage: dict[tuple[str, str], ModelUsage] = field(default_factory=dict)
    calls: list[tuple[Step, Any]] = field(default_factory=list)
    """The steps that are calls of tools, with their arguments as the log has them."""
    _agent: str = ""
    _thought: str = ""
    _open: dict[object, Step] = field(default_factory=dict)
    _place: Mapping[str, Any] | None = None

    def hear(self, events: Iterable[EventRecord]) -> None:
        """Take the next events into account. Blocks: a thousand of them take some milliseconds."""
        for event in events:
            if handler := _HANDLERS.get(event.type):
                handler(self, mapping(parsed(event.data)))

    def _begin(self, data: Mapping[str, Any]) -> None:
        """A run that was answered goes on."""
        self.status = self.question = self.error = ""

    def _start(self, data: Mapping[str, Any]) -> None:
        self.asked = last_words(data.get("input"), "user") or self.asked

    def _start_agent(self, data: Mapping[str, Any]) -> None:
        self._say()
        self._agent = text(data.get("agent_name"), _NAME)

    def _hear(self, data: Mapping[str, Any]) -> None:
        delta = mapping(data.get("delta"))
        if len(self._thought) < LONGEST:
            self._thought += text(delta.get("reasoning_content")) + text(delta.get("content"))

    def _say(self, data: Mapping[str, Any] | None = None) -> None:
        """What was said and led to no action is a step of its own; a plan is told as such."""
        thought, self._thought = text(self._thought.strip()), ""
        if thought and self._agent != "planner":
            self._add(Step(self._agent, thought=thought))

    def _call(self, data: Mapping[str, Any]) -> None:
        given = data.get("tool_input")
        action = text(data.get("tool_name"), _NAME)
        step = Step(self._agent, thought=text(self._thought.strip()), action=action)
        step.parameters, self._thought = text(written(given)) if given else "", ""
        if step.action == "browser_use":
            self._arrive(step)
        self._add(step)
        self._open[text(data.get("tool_call_id"))] = step
        if len(self.calls) < MOST_STEPS:
            self.calls.append((step, given))

    def _print(self, data: Mapping[str, Any]) -> None:
        if step := self._open.get(text(data.get("tool_call_id"))):
            step.observation = text(step.observation + text(data.get("text")))

    def _return(self, data: Mapping[str, Any]) -> None:
        step = self._open.pop(text(data.get("tool_call_id")), None) or Step()
        result = data.get("tool_result")
        if step.action == "browser" and isinstance(told := parsed(result), dict):
            result = told.get("result_content", result)
        step.observation = text(result)

    def _browse(self, data: Mapping[str, Any]) -> None:
        call = text(data.get("tool_call_id"))
        key = call, count(data.get("number"))
        step = self._open.get(key)
        if step is None:
            within = self._open.get(call, Step(action="browser")).action
            step = self._open[key] = Step(self._agent, key[1], within=within)
            self._arrive(step)
            self._add(step)
        action = mapping(data.get("action"))
        step.thought, step.observation = text(data.get("thought")), text(data.get("observation"))
        step.action, step.parameters = text(action.get("name"), _NAME), ""
        if parameters := action.get("parameters"):
            step.parameters = text(written(parameters))
        step.success, step.seconds = flag(data.get("success")), number(data.get("seconds"))
        step.started, step.state = number(data.get("started")), text(data.get("state"), _NAME)
        step.phase = text(data.get("phase"), _NAME)

    def _look(self, data: Mapping[str, Any]) -> None:
        """Where the browser is belongs to the step that is decided on it, begun or still to come."""
        self._place = data
        newest = self.steps[-1] if self.steps else None
        if newest and newest.within and newest.state == "thinking" and not newest.url:
            self._arrive(newest)

    def _arrive(self, step: Step) -> None:
        place, self._place = self._place or {}, None
        step.url, step.title = text(place.get("url"), _ADDRESS), text(place.get("title"), _NAME)
        found = _ARTIFACT.match(text(place.get("screenshot"), _ADDRESS))
        step.screenshot = found[1] if found else ""

    def _change_plan(self, data: Mapping[str, Any]) -> None:
        names = ("agent_name", "title", "status", "reason")
        steps = mappings(data.get("steps"))[:MOST_ROWS]
        self.plan = [PlanLine(*(text(one.get(name), _NAME) for name in names)) for one in steps]

    def _use(self, data: Mapping[str, Any]) -> None:
        key = text(data.get("agent_name"), _NAME), text(data.get("model"), _NAME)
        if key not in self.usage and len(self.usage) >= MOST_ROWS:
            return
        used = self.usage.setdefault(key, ModelUsage(*key))
        used.calls += 1
        used.input_tokens += count(data.get("input_tokens"))
        used.output_tokens += count(data.get("output_tokens"))
        used.seconds += number(data.get("seconds")) or 0.0

    def _ask(self, data: Mapping[str, Any]) -> None:
        kind = text(data.get("kind"), _NAME).replace("_", " ")
        self.question = text(mapping(data.get("payload")).get("question")) or kind

    def _fail(self, data: Mapping[str, Any]) -> None:
        self.error = text(data.get("message"))

    def _change_status(self, data: Mapping[str, Any]) -> None:
        self.status = text(data.get("status"), _NAME)

    def _end(self, data: Mapping[str, Any]) -> None:
        self._say()
        self.asked = self.asked or last_words(data.get("messages"), "user")
        if self.status in ("completed", "budget_exhausted"):
            self.result = last_words(data.get("messages"), "", LONGEST_RESULT)  # a report's role is `user`
            if self.steps and _is_said(self.steps[-1], self.result.strip()):
                self.steps.pop()

    def _add(self, step: Step) -> None:
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        else:
            self.more_steps += 1


def _is_said(step: Step, result: str) -> bool:
    """Whether the step is nothing but the result's being said."""
    said = "" if step.action or step.within else step.thought.removesuffix("…")
    return bool(said) and result.startswith(said)


def last_words(messages: object, role: str, longest: int = LONGEST) -> str:
    """Return the text of the newest message of a role, or of any, in the wire's form of a conversation."""
    for message in reversed(mappings(messages)):
        if not role or message.get("role") == role:
            content = message.get("content")
            if isinstance(content, list):
                content = "\n".join(text(part.get("text"), longest) for part in mappings(content))
            return text(content, longest)
    return ""


_HANDLERS: Mapping[str, Callable[[Story, Mapping[str, Any]], None]] = {
    "run": Story._begin,
    "start_of_workflow": Story._start,
    "start_of_agent": Story._start_agent,
    "end_of_agent": Story._say,
    "start_of_llm": Story._say,
    "message": Story._hear,
    "tool_call": Story._call,
    "tool_output": Story._print,
    "tool_call_result": Story._return,
    "browser_step": Story._browse,
    "browser_state": Story._look,
    "plan": Story._change_plan,
    "usage": Story._use,
    "interrupt": Story._ask,
    "error": Story._fail,
    "run_status": Story._change_status,
    "final_session_state": Story._end,
}
