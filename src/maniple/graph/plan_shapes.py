"""The shapes in which planners must answer."""

from collections.abc import Sequence
from typing import Any

from maniple.graph.plan import Plan
from maniple.llms import Shape


def plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape the planner must answer in: only `members` can be named."""
    text = {"type": "string"}
    numbers = {"type": "array", "items": {"type": "integer"}}
    step = _object(
        agent_name={"type": "string", "enum": list(members)},
        title=text,
        description=text,
        note={"type": ["string", "null"]},
        needs={"anyOf": [numbers, {"type": "null"}]},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    return Shape("Plan", _object(thought=text, title=text, steps=steps), Plan)


def compact_plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape for small models: no notes, no needs, and bounds on every text, or they overrun."""
    step = _object(
        agent_name={"enum": list(members)},
        title={"type": "string", "maxLength": 60},
        description={"type": "string", "maxLength": 120},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    thought, title = {"type": "string", "maxLength": 120}, {"type": "string", "maxLength": 60}
    return Shape("Plan", _object(thought=thought, title=title, steps=steps), Plan)


def _object(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
