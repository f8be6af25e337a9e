"""Answer the user, or hand over to the planner."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from maniple.agents.compact import worked
from maniple.errors import ModelError
from maniple.graph.state import RunOptions, State, conversation_of, request_of
from maniple.llms import Shape, ask, ask_for, capabilities_of, prompting_of
from maniple.prompts import read_examples, render
from maniple.text import without_thoughts
from maniple.types import Worker

HANDOFF_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "handoff_to_planner",
        "description": "Hand the request over to the planner and the team.",
        "parameters": {
            "type": "object",
            "properties": {
                "locale": {"type": "string", "description": "The user's language, such as en-US."}
            },
            "required": ["locale"],
        },
    },
}
_HANDOFF_TEXT = re.compile(r"handoff_to_planner")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}")
REPLY_TOKENS = 80


class Sorted(BaseModel):
    """What kind of request it is, in the compact form for small models."""

    kind: Literal["chat", "coder", "researcher", "browser"]


SORTED = Shape(
    "Sorted",
    {
        "type": "object",
        "properties": {"kind": {"enum": ["chat", "coder", "researcher", "browser"]}},
        "required": ["kind"],
        "additionalProperties": False,
    },
    Sorted,
)


@dataclass(frozen=True, slots=True)
class CoordinatorNode:
    """Reply to small talk and simple questions; everything else goes to the planner."""

    model: BaseChatModel
    available: Sequence[Worker] = field(default=())

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["planner", "__end__"]]:
        options = RunOptions.of(runtime, state)
        sorted_for = ""
        if prompting_of(self.model) == "compact":
            sorted_for, answer = await self._compact(state)
        else:
            answer = await self._answer(state, options)
        # A new request starts without the plan of the one before it.
        fresh: dict[str, Any] = {"plan": None, "full_plan": "", "feedback": "", "next": sorted_for}
        if answer is None or is_handoff(answer):
            locale = options.locale or _locale_of(answer) or ""
            return Command(goto="planner", update={**fresh, "locale": locale})
        reply = AIMessage(without_thoughts(answer.text), name="coordinator", id=answer.id)
        return Command(goto="__end__", update={**fresh, "messages": [reply]})

    async def _answer(self, state: State, options: RunOptions) -> AIMessage:
        capabilities = capabilities_of(self.model)
        if capabilities.has("tools"):
            try:
                model = self.model.bind_tools([HANDOFF_TOOL])
                return await ask(model, self._messages(state, options, tools=True))
            except ModelError as error:
                # Rejected and noted just now: ask for the words instead.
                if error.code != "model_bad_request" or capabilities.has("tools"):
                    raise
        return await ask(self.model, self._messages(state, options, tools=False))

    def _messages(self, state: State, options: RunOptions, *, tools: bool) -> list[BaseMessage]:
        team = options.enabled(self.available)
        prompt = render("coordinator", tools=tools, team=team, locale=options.locale)
        return [SystemMessage(prompt), *conversation_of(state)]

    async def _compact(self, state: State) -> tuple[str, AIMessage | None]:
        """Return whom the request is for, and the reply when it is small talk."""
        request = request_of(state)
        pairs = [
            (question, Sorted(kind=kind).model_dump_json()) for question, kind in read_examples()["route"]
        ]
        messages = [SystemMessage(render("compact/coordinator")), *worked(pairs), HumanMessage(request)]
        sort, _ = await ask_for(self.model, messages, SORTED)
        if sort.kind != "chat":
            return sort.kind, None
        reply = [SystemMessage(render("compact/reply")), *conversation_of(state)[-5:]]
        return "", await ask(self.model, reply, max_tokens=REPLY_TOKENS)


def is_handoff(answer: AIMessage) -> bool:
    """Say whether the coordinator handed over, by tool call or in words; an empty answer counts too."""
    # Whatever it tried to call, it wanted the team.
    if answer.tool_calls or answer.invalid_tool_calls:
        return True
    text = without_thoughts(answer.text)
    return not text or _HANDOFF_TEXT.search(text) is not None


def _locale_of(answer: AIMessage | None) -> str | None:
    if answer is None or not answer.tool_calls:
        return None
    locale = str(answer.tool_calls[0]["args"].get("locale") or "")
    return locale if _LOCALE.fullmatch(locale) else None
