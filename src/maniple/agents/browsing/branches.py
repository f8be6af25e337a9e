"""Middleware: tree of thoughts. Several next steps are thought of, scored, and the best is taken.

Yao et al. 2023, "Tree of Thoughts", with a tree of one level at each step: the browser cannot go back to try
another branch.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, BeforeValidator, Field

from maniple.agents.middleware.base import ModelHandler
from maniple.llms import Shape, ShapeError, ask_for
from maniple.text import without_thoughts

BRANCHES = 3
_SHOWN = 1_500
"""Characters of each."""
_WARMTH = {"temperature": 1.0}
"""Branches that are all the same are none; 1 is what models are made for, and all endpoints take it."""
_JUDGE = (
    "You judge the next steps that an agent in a browser could take. Score each from 0 to 1: how likely it "
    "leads to the goal from what the browser shows now. Answer with JSON only."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"scores": {"type": "array", "items": {"type": "number"}}},
    "required": ["scores"],
}


class _Scores(BaseModel):
    scores: list[Annotated[float, BeforeValidator(lambda given: given if given is not None else 0)]] = Field(
        default_factory=list
    )


class Branches(AgentMiddleware[Any, Any]):
    """Answers with the best of `BRANCHES` answers, of which one call is kept."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        warm = request.override(model_settings={**request.model_settings, **_WARMTH})
        asked = [asyncio.ensure_future(handler(warm)) for _ in range(BRANCHES)]
        try:
            responses = await asyncio.gather(*asked)
        finally:
            for one in asked:
                one.cancel()  # a group of tasks would wrap the error that says why
        answers = [
            _single(one) for response in responses for one in response.result if isinstance(one, AIMessage)
        ]
        different = list({_step(answer): answer for answer in reversed(answers)}.values())[::-1]
        if len(different) < 2:
            return responses[0] if not different else ModelResponse(result=[different[0]])
        scores = await _scores(request, different)
        best = max(range(len(different)), key=lambda at: (scores[at], -at))
        return ModelResponse(result=[different[best]])


def _single(answer: AIMessage) -> AIMessage:
    return answer.model_copy(update={"tool_calls": answer.tool_calls[:1]})


def _step(answer: AIMessage) -> str:
    """Return what an answer does, or what it says when it does nothing."""
    if not answer.tool_calls:
        return without_thoughts(answer.text).strip()
    call = answer.tool_calls[0]
    return json.dumps([call["name"], call["args"]], sort_keys=True, ensure_ascii=False, default=str)


async def _scores(request: ModelRequest, answers: Sequence[AIMessage]) -> list[float]:
    """Return a score for each answer; all the same where the judge gave none."""

    def check(said: _Scores) -> _Scores:
        if len(said.scores) != len(answers):
            raise ValueError(f"there are {len(said.scores)} scores; it must be {len(answers)}, in order")
        return said

    steps = [(without_thoughts(one.text)[:_SHOWN], _step(one)[:_SHOWN]) for one in answers]
    listed = "\n\n".join(f"{number}. {why}\n{what}" for number, (why, what) in enumerate(steps, 1))
    question = HumanMessage(f"The next steps to score, in order:\n\n{listed}")
    prompt: list[BaseMessage] = [SystemMessage(_JUDGE), *_told(request), question]
    try:
        said, _ = await ask_for(request.model, prompt, Shape("scores", _SCHEMA, _Scores), check=check)
    except ShapeError:
        return [0.0] * len(answers)
    return said.scores


def _told(request: ModelRequest) -> list[BaseMessage]:
    """Return the goal and what the browser shows: the user's words at the conversation's ends."""
    told = [one for one in request.messages if isinstance(one, HumanMessage)]
    return [*told[:2], *(told[-1:] if len(told) > 2 else [])]
