"""What the raw events of LangGraph carry, as parts of ours."""

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from maniple.agents.task import (
    explain_failure,
    explain_partial,
    is_partial,
    is_raw_failure,
    place_of_replacement,
)
from maniple.errors import describe_error
from maniple.events.model import PlanChanged, PlanStepView, RunInterrupted, StepInterrupted, UsageReported
from maniple.scope.budget import count_cached
from maniple.text import fix_surrogates

_KINDS = ("plan_review", "tool_approval", "question")


def as_mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """Return a mapping as it is, and any other value under `name`."""
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else {name: value}


def result_text(output: Any) -> str:
    """Return a tool's output as text."""
    if isinstance(output, ToolMessage):
        return fix_surrogates(output.text)
    return fix_surrogates(output if isinstance(output, str) else str(output))


def as_json_values(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `value` as JSON values. Other values become text; keys that are not text are dropped."""
    try:
        text = json.dumps(dict(value), default=str, skipkeys=True)
    except (ValueError, RecursionError):  # a cycle, or too many levels
        return {"value": fix_surrogates(str(value))}
    return fix_surrogates(json.loads(text, parse_constant=str))


def report_usage(agent: str, answer: AIMessage, seconds: float, *, model: str | None = None) -> UsageReported:
    """Return the event for the answer of a model call; `model` is its name where the answer has none."""
    counted = answer.usage_metadata
    return UsageReported(
        agent_name=agent,
        model=str(answer.response_metadata.get("model_name") or model or ""),
        input_tokens=counted["input_tokens"] if counted else 0,
        output_tokens=counted["output_tokens"] if counted else 0,
        seconds=round(seconds, 3),
        cached_tokens=count_cached(counted),
    )


def plan_changed(plan: Mapping[str, Any]) -> PlanChanged:
    """Return the event for a plan of the graph's state."""
    return PlanChanged(title=plan["title"], steps=[_step_view(step, plan) for step in plan["steps"]])


def _step_view(step: Mapping[str, Any], plan: Mapping[str, Any]) -> PlanStepView:
    known = {name: step[name] for name in ("id", "agent_name", "title", "description", "status")}
    # A checkpoint of an older version has no reasons.
    reason = step.get("reason") if step["status"] in ("failed", "blocked", "skipped") else None
    reason, details, repeats = fix_surrogates(reason or ""), None, step.get("repeats") or None
    if is_raw_failure(reason):
        reason, details = explain_failure(reason), reason
    if is_partial(step):
        reason = explain_partial(step)
    if place := place_of_replacement(plan, step):
        how = "gets what is missing" if is_partial(step) else "does it instead"
        reason = f"Step {place} {how}. {reason}".strip()
    # The report gets all results, whatever it was planned to need.
    needs = None if step["agent_name"] == "reporter" else step.get("needs")
    return PlanStepView(**known, reason=reason or None, details=details, repeats=repeats, needs=needs)


def failure_text(tool: str, data: Mapping[str, Any]) -> str:
    """Return the error of a tool's call as text."""
    error = data.get("error")
    if isinstance(error, GraphBubbleUp):
        return "Waits for the user."
    if isinstance(error, ValidationError):
        from langgraph.prebuilt.tool_node import ToolInvocationError

        # The message that LangGraph gives to the model.
        return fix_surrogates(
            ToolInvocationError(tool, error, data.get("input") or {}, error.errors()).message
        )
    return fix_surrogates(describe_error(error)) if error else "The tool failed."


def interrupt_event(interrupt_id: str, value: Any) -> RunInterrupted:
    """Return the event for a pause with a question; `value` is that of LangGraph's interrupt."""
    payload = as_json_values(as_mapping(value, "value"))
    # A parent graph may pause, too, with a kind of its own.
    kind = payload.pop("kind") if payload.get("kind") in _KINDS else "question"
    return RunInterrupted(
        interrupt_id=interrupt_id, kind=kind, payload=payload, options=_options(kind, payload)
    )


def step_interrupt_event(data: Mapping[str, Any]) -> StepInterrupted:
    """Return the event for the question of a step that waits while others go on."""
    asked = interrupt_event(data["interrupt_id"], data["value"])
    return StepInterrupted(**dict(asked), step_id=data["step_id"], agent_name=data["agent_name"])


def _options(kind: str, payload: Mapping[str, Any]) -> list[str]:
    """Return the kinds of accepted answers; for a question the options to choose from."""
    if kind == "plan_review":
        return ["accept", "edit", "reply"]
    if kind == "tool_approval":
        unknown = payload.get("reason") == "unknown_result"
        return ["run_again", "skip"] if unknown else ["approve", "edit", "reject"]
    options = payload.get("options")
    return [str(option) for option in cast("list[object]", options)] if isinstance(options, list) else []
