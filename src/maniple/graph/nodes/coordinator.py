"""Answer the user, or hand over to the planner."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from maniple.agents.compact import PROMPT_ONLY, choose_language, detect_language, example_messages
from maniple.agents.middleware.context_window import find_newest_start, send_within_window, summarize
from maniple.agents.middleware.text_tools import text_with_note
from maniple.agents.profiles import profile_of
from maniple.agents.run_scope import run_scope
from maniple.agents.task import COMPACT_CALLER_CHARACTERS, append_files, format_caller, format_files
from maniple.errors import BudgetExhausted, ModelError
from maniple.graph.clarification import ASK_TOOL, as_question, clarified, question_in
from maniple.graph.limits import current_meter
from maniple.graph.state import (
    PrivateState,
    RunOptions,
    State,
    caller_of,
    conversation_of,
    make_update,
    private_of,
    request_of,
    with_private,
)
from maniple.llms import Shape, ask, ask_for, capabilities_of
from maniple.llms.context_windows import count_tokens, room_of
from maniple.prompts import read_examples, render
from maniple.text import without_thoughts
from maniple.tools.files import NamedFiles
from maniple.tools.interaction import answer_text
from maniple.types import Worker

HANDOFF_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "handoff_to_planner",
        "description": "Hand the request over to the planner and the team.",
        "parameters": {
            "type": "object",
            "properties": {
                "locale": {
                    "type": "string",
                    "description": "The language of the answer that the user wants, such as en-US.",
                }
            },
            "required": ["locale"],
        },
    },
}
_HANDOFF_TEXT = re.compile(r"handoff_to_planner")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}")
REPLY_TOKENS = 80


class Sorted(BaseModel):
    """What kind of request it is, and in which language, in the compact form for small models."""

    kind: Literal["chat", "coder", "researcher", "browser"]
    language: str = ""


SORTED = Shape(
    "Sorted",
    {
        "type": "object",
        "properties": {
            "kind": {"enum": ["chat", "coder", "researcher", "browser"]},
            "language": {"type": "string", "maxLength": 20},
        },
        "required": ["kind", "language"],
        "additionalProperties": False,
    },
    Sorted,
)


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the coordinator made of a conversation; without an `answer` the team is to work on it."""

    answer: AIMessage | None = None
    request: str = ""
    question: str = ""
    sorted_for: str = ""
    language: str = ""
    summary: PrivateState = field(default_factory=PrivateState)


@dataclass(frozen=True, slots=True)
class CoordinatorNode:
    """Reply to small talk and simple questions; everything else goes to the planner."""

    model: BaseChatModel
    available: Sequence[Worker] = field(default=())
    max_clarifications: int = 0
    """How many questions the user is asked about one request."""
    files: NamedFiles | None = None

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["planner", "clarify", "__end__"]]:
        options = RunOptions.of(runtime, state)
        files = await self.files() if self.files is not None else []
        state = with_private(state, files=files)
        try:
            async with current_meter().enforce_time_limit():
                heard = await self._heard(state, options)
        except BudgetExhausted:
            heard = _Heard()  # the planner cannot be asked either, and has the report say so
        # A new request starts without the plan of the one before it.
        fresh: PrivateState = {
            "plan": None,
            "full_plan": "",
            "feedback": "",
            "next": heard.sorted_for,
            "request": heard.request,
            "files": files,
            **heard.summary,
        }
        answer = heard.answer
        if answer is not None and heard.question:
            asking = as_question(heard.question, answer.id)
            return Command(goto="clarify", update=make_update(asking, **fresh))
        if answer is None or is_handoff(answer):
            locale = options.locale or _locale_of(answer) or heard.language
            return Command(goto="planner", update=make_update(**{**fresh, "locale": locale}))
        reply = AIMessage(text_with_note(answer), name="coordinator", id=answer.id)
        return Command(goto="__end__", update=make_update(reply, **fresh))

    async def _heard(self, state: State, options: RunOptions) -> _Heard:
        if profile_of(self.model).sorts_by_grammar:
            return await self._compact(state, options)
        summary = await summarised(self.model, state)
        request, asked = clarified(state["messages"], self.max_clarifications)
        may_ask = options.may_ask and run_scope().can_pause and asked < self.max_clarifications
        answer = await self._answer(with_private(state, **summary), options, may_ask)
        question = question_in(answer) if may_ask else ""
        return _Heard(answer, request=request, question=question, summary=summary)

    async def _answer(self, state: State, options: RunOptions, may_ask: bool) -> AIMessage:
        capabilities = capabilities_of(self.model)
        if capabilities.has("tools"):
            try:
                model = self.model.bind_tools([HANDOFF_TOOL, ASK_TOOL] if may_ask else [HANDOFF_TOOL])
                messages = self._messages(state, options, tools=True, may_ask=may_ask)
                return await self._asked(model, messages)
            except ModelError as error:
                # Rejected and noted just now: ask for the words instead.
                if error.code != "model_bad_request" or capabilities.has("tools"):
                    raise
        return await self._asked(self.model, self._messages(state, options, tools=False, may_ask=may_ask))

    async def _asked(
        self, model: Runnable[Any, AIMessage], messages: list[BaseMessage], **limits: Any
    ) -> AIMessage:
        return await send_within_window(self.model, messages, lambda shown: ask(model, shown, **limits))

    def _messages(
        self, state: State, options: RunOptions, *, tools: bool, may_ask: bool
    ) -> list[BaseMessage]:
        team = options.enabled(self.available)
        prompt = render("coordinator", tools=tools, may_ask=may_ask, team=team, locale=options.locale)
        addition = format_caller(caller_of(state)) + format_files(private_of(state).get("files") or ())
        return [SystemMessage(prompt + addition), *conversation_of(state)]

    async def _compact(self, state: State, options: RunOptions) -> _Heard:
        """Sort the request, and reply when it is small talk."""
        request = request_of(state)
        pairs = [(question, Sorted(**sort).model_dump_json()) for question, sort in read_examples()["route"]]
        asked = HumanMessage(append_files(request, private_of(state).get("files") or ()))
        messages = [SystemMessage(render("compact/coordinator")), *example_messages(pairs), asked]
        sort, _ = await send_within_window(
            self.model, messages, lambda shown: ask_for(self.model, shown, SORTED), pinned=PROMPT_ONLY
        )
        language = detect_language(request, sort.language)
        if sort.kind != "chat":
            return _Heard(sorted_for=sort.kind, language=language)
        prompt = render("compact/reply", language=choose_language(request, options.locale or language))
        system = SystemMessage(prompt + format_caller(caller_of(state), COMPACT_CALLER_CHARACTERS))
        reply = [system, *conversation_of(state)[-5:]]
        answer = await self._asked(self.model, reply, max_tokens=REPLY_TOKENS)
        return _Heard(answer, language=language)


def is_handoff(answer: AIMessage) -> bool:
    """Return whether the coordinator handed over, by tool call or in words; an empty answer counts too."""
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


HISTORY_SHARE = 0.5
"""Of the model's room: a conversation that is longer is put into a summary and its newest part."""
NEWEST_SHARE = 0.25


async def summarised(model: BaseChatModel, state: State) -> PrivateState:
    """Return the update that gives `state` a summary of its older part, or none where all of it fits.

    No message is taken from the thread: only what models are shown of it changes.
    """
    said, room = conversation_of(state), room_of(model)
    if count_tokens(said) <= HISTORY_SHARE * room:
        return {}
    start = find_newest_start(said, int(NEWEST_SHARE * room))
    upto = said[start - 1].id if start > 1 else None
    if upto is None or not (text := await summarize(model, said[:start])):
        return {}
    return {"summary": {"upto": upto, "text": text}}


@dataclass(frozen=True, slots=True)
class ClarifyNode:
    """Pause with the question; its answer joins the conversation, and the coordinator decides again.

    A node of its own: LangGraph executes a node again after a pause, and the coordinator's model would be
    asked again and might ask something else.
    """

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["coordinator"]]:
        question = state["messages"][-1].text
        answer = interrupt({"kind": "question", "question": question, "options": []})
        reply = HumanMessage(answer_text(answer))
        return Command(goto="coordinator", update=make_update(reply, next="coordinator"))
