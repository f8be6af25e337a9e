"""The forms in which models write plans: other names of keys, one wrapper, a list of steps alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maniple.llms import read_json
from maniple.types import is_dict, is_list, is_mapping

_STEPS = ("steps", "plan", "tasks", "subtasks")
_AGENT = ("agent_name", "agent", "assignee", "assigned_to", "role", "member", "worker")
_TITLE = ("title", "name", "step", "task")
_DESCRIPTION = ("description", "details", "task", "instructions", "action")
_NEEDS = ("needs", "depends_on", "dependencies")
_PLAN_TITLE = ("title", "name", "goal")


def unwrap_plan(value: Any) -> Any:
    """Return a plan with the usual keys; a value that is none stays as it is.

    A plan may be a list of steps, or stand in one wrapper such as `{"plan": {…}}`, also as JSON text.
    """
    if is_list(value):
        if len(value) == 1 and _has_steps(value[0]):
            return unwrap_plan(value[0])
        return {"steps": value}
    if not is_mapping(value) or is_list(value.get("steps")):
        return value
    if (steps := _find_steps(value)) is not None:
        return {**value, "steps": steps, "title": _first(value, _PLAN_TITLE)}
    inner = next(_find_wrapped(value), None)
    return value if inner is None else {**_without_nested(value), **inner}


def _find_steps(value: Mapping[str, Any]) -> list[Any] | None:
    found = (value.get(key) for key in _STEPS)
    return next((one for one in found if is_list(one) and one), None)


def _has_steps(value: Any) -> bool:
    return is_mapping(value) and _find_steps(value) is not None


def _find_wrapped(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the plans among the values of a mapping."""
    for one in value.values():
        if isinstance(one, str) and "{" in one:
            one = _read(one)
        if _has_steps(one) or (is_list(one) and one and all(is_step(each) for each in one)):
            yield unwrap_plan(one)


def _read(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def _without_nested(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short texts beside a wrapped plan, such as its thought."""
    return {key: value[key] for key in ("thought", "title") if isinstance(value.get(key), str)}


def rename_step(value: Any) -> Any:
    """Return a step with the usual keys."""
    if not is_mapping(value):
        return value
    agent = next((value[key] for key in _AGENT if value.get(key)), "")
    agent = agent.get("name", "") if is_dict(agent) else agent
    description = _first(value, _DESCRIPTION)
    title = _first(value, _TITLE)
    needs = next((value[key] for key in _NEEDS if value.get(key) is not None), None)
    return {**value, "agent_name": agent, "title": title, "description": description, "needs": needs}


def _first(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first text among the values of the keys; "" if there is none."""
    return next((one for key in keys if isinstance(one := value.get(key), str) and one), "")


def is_step(value: Any) -> bool:
    """Return whether a value is an object that names a member and says what to do."""
    if not is_mapping(value):
        return False
    step = rename_step(value)
    return bool(step["agent_name"] and (step["title"] or step["description"]))


def is_plan(value: Any) -> bool:
    """Return whether a value is a plan all of whose steps name a member."""
    plan = unwrap_plan(value)
    steps = plan.get("steps") if is_mapping(plan) else None
    return is_list(steps) and bool(steps) and all(is_step(one) for one in steps)
