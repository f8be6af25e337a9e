"""The steps of a call of the browser, and what the stored conversation of an agent says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from maniple.agents.middleware.limits import StepState
from maniple.text import without_thoughts
from maniple.tools.browser_use import NAME

KEPT_CHARACTERS = 12_000
"""Of what was extracted in one call, and is kept when the conversation is shortened."""


@dataclass(frozen=True, slots=True)
class ReActStep:
    """One time of thinking, acting and observing; an answer with several calls is a step for each."""

    number: int
    """From 1 in each call of the browser."""
    thought: str = ""
    """Why; of several calls in one answer the first has it."""
    action: Mapping[str, Any] | None = None
    """`{name, parameters}`."""
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    """Unix time in seconds."""
    seconds: float = 0.0
    mark: Mapping[str, float] | None = None
    """Where the element that is acted on was in the window: `{x, y, width, height}`, from 0 to 1 each."""
    element: Mapping[str, str] | None = None
    """What it is: `{role, name}`, in the page's words."""
    screenshot: str | None = None
    """The address of the picture that the action was decided on."""


class Extracted(StepState):
    """An agent's messages, and what it extracted from pages that is among them no more."""

    extracted: NotRequired[Annotated[list[str], PrivateStateAttr]]


def steps_in(messages: Sequence[AnyMessage], state: Mapping[str, Any]) -> int:
    """Return how many steps the answers among `messages` are, with those that `state` left out."""
    own = messages[state.get("given", 0) :]
    kept = sum(max(len(one.tool_calls), 1) for one in own if isinstance(one, AIMessage))
    return kept + max(state.get("answers_left_out", 0), state.get("calls_left_out", 0))


def step_of(state: Mapping[str, Any], call_id: str | None) -> tuple[int, str]:
    """Return the place of a call among an agent's steps, from 1, and the thought that goes with it."""
    messages = state["messages"]
    at = next(at for at in reversed(range(len(messages))) if isinstance(messages[at], AIMessage))
    answer = messages[at]
    place = next((n for n, call in enumerate(answer.tool_calls) if call["id"] == call_id), 0)
    return steps_in(messages[:at], state) + place + 1, "" if place else thought_of(answer)


def thought_of(answer: AIMessage) -> str:
    """Return why an answer does what it does."""
    return without_thoughts(answer.text) or str(answer.additional_kwargs.get("reasoning_content", ""))


def extracted_in(state: Mapping[str, Any]) -> list[str]:
    """Return what pages said about goals, oldest first, as far as it is kept."""
    messages = state["messages"]
    goals = {
        call["id"]
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
        if call["name"] == NAME and call["args"].get("action") == "extract_content"
    }
    kept = list(state.get("extracted", ()))
    for one in messages:
        if isinstance(one, ToolMessage) and one.tool_call_id in goals and one.status != "error":
            kept += [one.text] if one.text not in kept else []
    return within(kept)


def within(extracted: Sequence[str]) -> list[str]:
    """Return what of it is kept: what would be too much is left out."""
    kept: list[str] = []
    for one in extracted:
        if sum(map(len, kept)) + len(one) <= KEPT_CHARACTERS:
            kept.append(one)
    return kept
