"""The coordinator's hand-off to the planner, which may carry the only step of the plan."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from maniple.agents.middleware.text_tools import is_truncated
from maniple.agents.middleware.tool_errors import make_storable
from maniple.agents.text_calls import find_calls
from maniple.graph.loose_plans import is_plan
from maniple.llms import read_json
from maniple.text import fix_surrogates, without_thoughts
from maniple.types import Worker, is_dict, is_list

HANDOFF = "handoff_to_planner"
_TEXT = re.compile(r"handoff\\?_to\\?_planner", re.I)  # Markdown escapes the underscores
_STEP_TEXT = re.compile(r"""\bstep\b["']?\s*[:=]\s*(?=[{\["'])""")
PLAN_KEY = re.compile(r"""["'](?:agent_name|agent|assignee|assigned_to|role|member|worker)["']\s*:""")
"""Only a plan has one of these keys in each step."""
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}")
_STEP_KEYS = frozenset({"agent_name", "description"})
_LOCALE_PARAMETER = {
    "type": "string",
    "description": "The answer's language, such as de-DE: as asked for, else that of the "
    "answer to be changed, else the user's.",
}


def handoff_tool(members: Sequence[Worker]) -> dict[str, Any]:
    """Return the tool that hands over; with `members`, its call may contain a step for one of them."""
    properties: dict[str, Any] = {"locale": _LOCALE_PARAMETER}
    if members:
        text = {"type": "string"}
        properties["step"] = {
            "type": "object",
            "description": "Only where one member plainly does all of it.",
            "properties": {
                "agent_name": {"type": "string", "enum": list(members)},
                "title": text,
                "description": {**text, "description": "What to do and deliver, in the user's language."},
            },
            "required": ["agent_name", "title", "description"],
        }
    return {
        "type": "function",
        "function": {
            "name": HANDOFF,
            "description": "Hand the request over to the team.",
            "parameters": {"type": "object", "properties": properties, "required": ["locale"]},
        },
    }


def is_handoff(answer: AIMessage) -> bool:
    """Return whether the coordinator handed over, by tool call or as text; an empty answer counts, too.

    The call of any tool and a plan that it wrote itself mean that the team is needed. A repair of its JSON
    blocks for up to a second: call this in a thread.
    """
    if answer.tool_calls or answer.invalid_tool_calls:
        return True
    text = without_thoughts(answer.text)
    if not text or _TEXT.search(text) is not None:
        return True
    return any(one.form == "marked" for one in find_calls(text)) or _has_plan(text)


def _has_plan(text: str) -> bool:
    try:
        return PLAN_KEY.search(text) is not None and is_plan(read_json(text))
    except ValueError:
        return False


def locale_of(answer: AIMessage | None) -> str | None:
    """Return the language that the hand-off names, or None."""
    if answer is None or not answer.tool_calls:
        return None
    locale = str(answer.tool_calls[0]["args"].get("locale") or "")
    return locale if _LOCALE.fullmatch(locale) else None


def find_step(answer: AIMessage) -> Any:
    """Return the step in a hand-off, by tool call or as text, as plain data; None unless there is just one.

    A step is an object, or a text such as `coder: compute it`; nothing else about it is checked.
    A repair of its JSON blocks for up to a second: call this in a thread.
    """
    if is_truncated(answer) or answer.invalid_tool_calls:
        return None  # it may be half a step
    if answer.tool_calls:
        calls = [call["args"] for call in answer.tool_calls if _TEXT.fullmatch(call["name"])]
        steps = [step for call in calls if (step := _step_of_call(call)) is not None]
    else:
        steps = _steps_in_text(without_thoughts(answer.text))
    return make_storable(steps[0]) if len(steps) == 1 else None


def _step_of_call(arguments: Mapping[str, Any]) -> Any:
    step = arguments.get("step")
    if step is None and arguments.keys() >= _STEP_KEYS:
        return dict(arguments)  # the fields of the step stand in its place
    return _single(step)


def _single(step: Any) -> Any:
    """Return the step in a value that a model wrote for it: an object, its JSON text, or a list of one."""
    if isinstance(step, str) and step.lstrip().startswith(("{", "[", "```")):
        step = _read_complete(step)
    if is_list(step):
        step = step[0] if len(step) == 1 else None
    if isinstance(step, str):
        step = step.strip()
    return fix_surrogates(step) if step and (isinstance(step, str) or is_dict(step)) else None


def _steps_in_text(text: str) -> list[Any]:
    """Return the steps of a call that is written as text, in the forms of Python, JSON and tool calls."""
    handoff = _TEXT.search(text)
    if handoff is None:
        return []
    values = [_value_at(text, found.end()) for found in _STEP_TEXT.finditer(text)]
    return [step for value in values if (step := _single(value)) is not None]


def _value_at(text: str, start: int) -> Any:
    """Return the JSON value that begins at `start`, repaired if it is complete; None for no value."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        pass
    return _read_complete(text[start:])


def _read_complete(text: str) -> Any:
    """Return the JSON value in a text, repaired if it is complete; None for no value."""
    if "{" in text and "}" not in text:
        return None  # a repair would close it, with half of a description
    try:
        return read_json(text)
    except ValueError:
        return None
