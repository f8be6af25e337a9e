"""The history of a run, collected from its events without assuming that they are well-formed.

An event log may be cut off, may be from another version, and may contain text that a tool or a page made up.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maniple.run_page.lenient_parsing import (
    LONGEST,
    as_count,
    as_flag,
    as_mapping,
    as_mappings,
    as_number,
    as_text,
    parse_json,
    to_json,
)
from maniple.store import EventRecord

MAX_STEPS = 500
MAX_ROWS = 100
MAX_RESULT_LENGTH = 200_000
_NAME = 200
_ADDRESS = 2_000
_ARTIFACT = re.compile(r"/api/artifacts/([A-Za-z0-9-]{1,200})\Z")


@dataclass(slots=True)
class Step:
    """One step of thought, action and observation. Unknown values are empty or None."""

    agent: str = ""
    number: int = 0
    """The number of a step of the browser within its call, from 1; 0 for other steps."""
    thought: str = ""
    action: str = ""
    parameters: str = ""
    """JSON."""
    observation: str = ""
    success: bool | None = None
    seconds: float | None = None
    started: float | None = None
    """Unix time in seconds."""
    state: str = ""
    phase: str = ""
    within: str = ""
    """For a step of the browser, the tool whose call it belongs to."""
    url: str = ""
    title: str = ""
    screenshot: str = ""
    """An artifact id."""


@dataclass(slots=True)
class ModelUsage:
    """One agent's usage of one model."""

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
class RunHistory:
    """The data of a run's page."""

    request: str = ""
    result: str = ""
    status: str = ""
    error: str = ""
    question: str = ""
    """The question that the run waits for an answer to."""
    plan: list[PlanLine] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    more_steps: int = 0
    """The number of steps beyond `MAX_STEPS`."""
    usage: dict[tuple[str, str], ModelUsage] = field(default_factory=dict)
    calls: list[tuple[Step, Any]] = field(default_factory=list)
    """The steps that are tool calls, with their logged arguments."""
    _turn: str = ""
    """The turn of the current event; "" for events of the run and of versions without turn ids."""
    _is_answered: bool = False
    _agents: dict[str, str] = field(default_factory=dict)
    _thoughts: dict[str, str] = field(default_factory=dict)
    _open: dict[object, Step] = field(default_factory=dict)
    _page: Mapping[str, Any] | None = None

    def apply(self, events: Iterable[EventRecord]) -> None:
        """Add the next events. Blocks for some milliseconds per thousand events."""
        for event in events:
            if handler := _HANDLERS.get(event.type):
                self._turn = event.turn_id
                handler(self, as_mapping(parse_json(event.data)))

    @property
    def _agent(self) -> str:
        return self._agents.get(self._turn, "")

    def _resume(self, data: Mapping[str, Any]) -> None:
        """Reset the outcome when an interrupted run continues."""
        self.status = self.question = self.error = ""
        self._is_answered = False

    def _set_request(self, data: Mapping[str, Any]) -> None:
        self.request = newest_text(data.get("input"), "user") or self.request

    def _start_agent(self, data: Mapping[str, Any]) -> None:
        self._add_thought()
        self._agents[self._turn] = as_text(data.get("agent_name"), _NAME)

    def _add_message(self, data: Mapping[str, Any]) -> None:
        delta = as_mapping(data.get("delta"))
        before = self._thoughts.get(self._turn, "")
        if len(before) < LONGEST:
            added = as_text(delta.get("reasoning_content")) + as_text(delta.get("content"))
            self._thoughts[self._turn] = before + added

    def _add_thought(self, data: Mapping[str, Any] | None = None) -> None:
        """Add text that was followed by no action as a step, except a plan, which has its own events."""
        thought = as_text(self._thoughts.pop(self._turn, "").strip())
        if thought and self._agent != "planner":
            self._add(Step(self._agent, thought=thought))

    def _start_call(self, data: Mapping[str, Any]) -> None:
        given = data.get("tool_input")
        action = as_text(data.get("tool_name"), _NAME)
        thought = as_text(self._thoughts.pop(self._turn, "").strip())
        step = Step(self._agent, thought=thought, action=action)
        step.parameters = as_text(to_json(given)) if given else ""
        if step.action == "browser_use":
            self._set_page(step)
        self._add(step)
        self._open[as_text(data.get("tool_call_id"))] = step
        if len(self.calls) < MAX_STEPS:
            self.calls.append((step, given))

    def _append_output(self, data: Mapping[str, Any]) -> None:
        if step := self._open.get(as_text(data.get("tool_call_id"))):
            step.observation = as_text(step.observation + as_text(data.get("text")))

    def _finish_call(self, data: Mapping[str, Any]) -> None:
        step = self._open.pop(as_text(data.get("tool_call_id")), None) or Step()
        result = data.get("tool_result")
        if step.action == "browser" and isinstance(fields := parse_json(result), dict):
            result = fields.get("result_content", result)
        step.observation = as_text(result)

    def _update_browser_step(self, data: Mapping[str, Any]) -> None:
        call = as_text(data.get("tool_call_id"))
        key = call, as_count(data.get("number"))
        step = self._open.get(key)
        if step is None:
            within = self._open.get(call, Step(action="browser")).action
            step = self._open[key] = Step(self._agent, key[1], within=within)
            self._set_page(step)
            self._add(step)
        action = as_mapping(data.get("action"))
        step.thought, step.observation = as_text(data.get("thought")), as_text(data.get("observation"))
        step.action, step.parameters = as_text(action.get("name"), _NAME), ""
        if parameters := action.get("parameters"):
            step.parameters = as_text(to_json(parameters))
        step.success, step.seconds = as_flag(data.get("success")), as_number(data.get("seconds"))
        step.started, step.state = as_number(data.get("started")), as_text(data.get("state"), _NAME)
        step.phase = as_text(data.get("phase"), _NAME)

    def _note_page(self, data: Mapping[str, Any]) -> None:
        """Assign the browser's page to the step that is being decided, or to the next one."""
        self._page = data
        newest = self.steps[-1] if self.steps else None
        if newest and newest.within and newest.state == "thinking" and not newest.url:
            self._set_page(newest)

    def _set_page(self, step: Step) -> None:
        place, self._page = self._page or {}, None
        step.url, step.title = as_text(place.get("url"), _ADDRESS), as_text(place.get("title"), _NAME)
        found = _ARTIFACT.match(as_text(place.get("screenshot"), _ADDRESS))
        step.screenshot = found[1] if found else ""

    def _change_plan(self, data: Mapping[str, Any]) -> None:
        if data.get("draft"):
            return
        names = ("agent_name", "title", "status", "reason")
        steps = as_mappings(data.get("steps"))[:MAX_ROWS]
        self.plan = [
            PlanLine(*(as_text(one.get(name), _NAME) for name in names))
            for one in steps
            if not one.get("repeats")
        ]

    def _add_user_message(self, data: Mapping[str, Any]) -> None:
        self._add(Step("user", thought=as_text(data.get("content"))))

    def _add_answer(self, data: Mapping[str, Any]) -> None:
        self._add(Step("user", thought=_describe_answer(data.get("answer"))))

    def _add_reply(self, data: Mapping[str, Any]) -> None:
        if reply := as_text(data.get("content")):
            self._add(Step("lead", thought=reply))

    def _add_usage(self, data: Mapping[str, Any]) -> None:
        key = as_text(data.get("agent_name"), _NAME), as_text(data.get("model"), _NAME)
        if key not in self.usage and len(self.usage) >= MAX_ROWS:
            return
        used = self.usage.setdefault(key, ModelUsage(*key))
        used.calls += 1
        used.input_tokens += as_count(data.get("input_tokens"))
        used.output_tokens += as_count(data.get("output_tokens"))
        used.seconds += as_number(data.get("seconds")) or 0.0

    def _set_question(self, data: Mapping[str, Any]) -> None:
        kind = as_text(data.get("kind"), _NAME).replace("_", " ")
        self.question = as_text(as_mapping(data.get("payload")).get("question")) or kind

    def _set_error(self, data: Mapping[str, Any]) -> None:
        self.error = as_text(data.get("message"))

    def _change_status(self, data: Mapping[str, Any]) -> None:
        self.status = as_text(data.get("status"), _NAME)
        # A failed run has an answer only if code compiled one instead of the reporter.
        self._is_answered = self.status in ("completed", "budget_exhausted") or bool(
            self.status == "failed" and as_mappings(data.get("gaps"))
        )

    def _finish(self, data: Mapping[str, Any]) -> None:
        for turn_id in list(self._thoughts):
            self._turn = turn_id
            self._add_thought()
        self.request = self.request or newest_text(data.get("messages"), "user")
        if self._is_answered:
            self.result = newest_text(
                data.get("messages"), "", MAX_RESULT_LENGTH
            )  # a report's role is `user`
            if self.steps and _repeats_result(self.steps[-1], self.result.strip()):
                self.steps.pop()

    def _add(self, step: Step) -> None:
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)
        else:
            self.more_steps += 1


def _repeats_result(step: Step, result: str) -> bool:
    """Whether the step only contains the beginning of the result."""
    text = "" if step.action or step.within else step.thought.removesuffix("…")
    return bool(text) and result.startswith(text)


def newest_text(messages: object, role: str, longest: int = LONGEST) -> str:
    """Return the text of the newest message with a role ("" for any role) in the wire format."""
    for message in reversed(as_mappings(messages)):
        if not role or message.get("role") == role:
            content = message.get("content")
            if isinstance(content, list):
                content = "\n".join(as_text(part.get("text"), longest) for part in as_mappings(content))
            return as_text(content, longest)
    return ""


def _describe_answer(answer: object) -> str:
    """Return an answer of the user as text: its words, or else what was decided and its data."""
    given = as_mapping(answer)
    if not given:
        return as_text(answer) or to_json(answer)
    decided, words = as_text(given.get("type"), _NAME), as_text(given.get("message"))
    rest = {key: one for key, one in given.items() if key not in ("type", "message")}
    shown = to_json(rest) if rest else ""
    return "\n".join(part for part in (decided, words, shown) if part)


_HANDLERS: Mapping[str, Callable[[RunHistory, Mapping[str, Any]], None]] = {
    "run": RunHistory._resume,
    "start_of_workflow": RunHistory._set_request,
    "start_of_agent": RunHistory._start_agent,
    "end_of_agent": RunHistory._add_thought,
    "start_of_llm": RunHistory._add_thought,
    "message": RunHistory._add_message,
    "tool_call": RunHistory._start_call,
    "tool_output": RunHistory._append_output,
    "tool_call_result": RunHistory._finish_call,
    "browser_step": RunHistory._update_browser_step,
    "browser_state": RunHistory._note_page,
    "plan": RunHistory._change_plan,
    "user_message": RunHistory._add_user_message,
    "user_message_answer": RunHistory._add_reply,
    "user_answer": RunHistory._add_answer,
    "usage": RunHistory._add_usage,
    "interrupt": RunHistory._set_question,
    "error": RunHistory._set_error,
    "run_status": RunHistory._change_status,
    "final_session_state": RunHistory._finish,
}
