"""The coordinator: answers the user, or hands the request over to the planner."""

import asyncio
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from maniple.agents import ROLES, Roles, find_current_roles, format_briefs
from maniple.agents.call_envelopes import MARKS
from maniple.agents.compact import (
    ANSWER_TOKENS,
    FILE_NAME,
    PROMPT_ONLY,
    choose_language,
    detect_language,
    example_messages,
    write_ignorance,
    write_memory_note,
    write_unseen_note,
)
from maniple.agents.compact_pictures import (
    CompactPictures,
    SeenPictures,
    find_pictures,
    without_names,
)
from maniple.agents.middleware.context_window import find_newest_start, send_within_window, summarize
from maniple.agents.middleware.text_tools import text_with_note
from maniple.agents.profiles import profile_of
from maniple.agents.task import (
    COMPACT_CALLER_CHARACTERS,
    append_files,
    format_caller,
    format_client_tools,
    format_files,
    format_lost_pictures,
)
from maniple.errors import BudgetExhausted, ModelError
from maniple.graph.adaptation import format_unfinished
from maniple.graph.clarification import ASK_TOOL, as_question, find_question, merge_clarifications
from maniple.graph.earlier_turns import format_decided_turns
from maniple.graph.follow_ups import complete_follow_up
from maniple.graph.handoff import HANDOFF, PLAN_KEY, find_step, handoff_tool, is_handoff, locale_of
from maniple.graph.nodes.schedule import find_wish, schedule_tool
from maniple.graph.state import (
    ANSWER_MARK,
    PrivateState,
    RunOptions,
    State,
    caller_of,
    conversation_of,
    make_update,
    private_of,
    progress_of,
    request_of,
    with_private,
)
from maniple.graph.written_plan import object_schema
from maniple.llms import PartialAnswer, Shape, ShapeError, ask, ask_for, capabilities_of, observing
from maniple.llms.context_windows import count_tokens, room_of
from maniple.prompts import read_examples, render
from maniple.scope.run_scope import current_meter, run_scope
from maniple.scope.schedules import RunSchedules, ScheduleWish
from maniple.search import SearchProvider, find_outage
from maniple.text import without_thoughts
from maniple.tools.client_tools import offered_client_tools
from maniple.tools.files import NamedFiles
from maniple.tools.interaction import answer_text
from maniple.tools.web import find_address
from maniple.types import ANSWER_DRAFT, Worker

_CALL_NAMES = (HANDOFF, "ask_user")
_BRACE = re.compile(r"[{}]")
_CALL_OPENING = re.compile(r"```|[{<\[]")
_ENVELOPE = re.compile(MARKS, re.MULTILINE)
_WORD_CHARACTERS = f"{string.ascii_letters}{string.digits}_.:\"'`*(-"
CALL_CHARACTERS = 64
"""The longest text before the name of a call that is written as text, such as `<tool_call>{"name": "`."""
ANNOUNCEMENT_WIDTH = 36
"""A text of this width is not the announcement of a hand-off. East Asian characters count as three."""
REPLY_TOKENS = 80
_NOT_SEEN = "(The user's picture cannot be seen here: do not guess what it shows.)"
Kind = Literal["chat", "coder", "researcher", "answer", "write", "browser"]
"""The classes of requests for small models.

An `answer` and what the model is to `write` need no tools.
"""


class Sorted(BaseModel):
    """A small model's classification of a request: its kind and language."""

    kind: Kind
    language: str = ""


_ANSWERED: Mapping[Kind, str] = {"chat": "reply", "answer": "answer", "write": "write"}
"""The kinds that the coordinator answers itself, and the prompts for them."""


class Timeliness(BaseModel):
    """A small model's judgement of a question: whether its answer changes over time."""

    changes: bool


def sorting_shape(*, can_search: bool) -> Shape[Sorted]:
    """Return the shape of a small model's classification; without a search there is no `researcher`."""
    kinds = [kind for kind in get_args(Kind) if can_search or kind != "researcher"]
    language = {"type": "string", "maxLength": 20}
    return Shape("Sorted", object_schema(kind={"enum": kinds}, language=language), Sorted)


@dataclass(frozen=True, slots=True)
class _CoordinatorOutcome:
    """The coordinator's decision about a conversation; without an `answer` the team works on it."""

    answer: AIMessage | None = None
    request: str = ""
    question: str = ""
    wish: ScheduleWish | None = None
    """The schedule that it proposes."""
    sorted_for: str = ""
    language: str = ""
    summary: PrivateState = field(default_factory=PrivateState)
    unseen: Sequence[str] = ()
    """The pictures that no model of a team of small ones has seen."""
    number_source: str | None = None
    """As in `FollowUp`."""


@dataclass(frozen=True, slots=True)
class CoordinatorNode:
    """Replies to small talk and simple questions; everything else goes to the planner."""

    model: BaseChatModel
    available: Sequence[Worker] = field(default=())
    max_clarifications: int = 0
    """The number of questions that the user may be asked about one request."""
    files: NamedFiles | None = None
    search: SearchProvider | None = None
    no_search: str = ""
    """Why there is no search."""
    roles: Roles = field(default_factory=lambda: ROLES)
    pictures: CompactPictures | None = None
    """Finds out what pictures show, for a small model."""

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["planner", "clarify", "schedule", "__end__"]]:
        options = RunOptions.of(runtime, state)
        files = await self.files() if self.files is not None else []
        state = with_private(state, files=files)
        if (last := progress_of(state)) is not None:
            state = with_private(state, unfinished=format_unfinished(last))
        try:
            async with current_meter().enforce_time_limit():
                outcome = await self._decide(state, options)
        except BudgetExhausted:
            outcome = _CoordinatorOutcome()  # the planner cannot be asked either; the report says so
        # A new request starts without the plan of the one before it.
        fresh: PrivateState = {
            "plan": None,
            "full_plan": "",
            "feedback": "",
            "asked": "",
            "next": outcome.sorted_for,
            "request": outcome.request,
            "files": files,
            "unfinished": private_of(state).get("unfinished") or "",
            "schedule": outcome.wish.arguments() if outcome.wish is not None else None,
            "schedule_note": "",
            "handed_step": None,
            "unseen_pictures": list(outcome.unseen),
            "number_source": outcome.number_source,
            **outcome.summary,
        }
        answer = outcome.answer
        if answer is not None and outcome.question:
            asking = as_question(outcome.question, answer.id)
            return Command(goto="clarify", update=make_update(asking, **fresh))
        if outcome.wish is not None:
            return Command(goto="schedule", update=make_update(**fresh))
        if answer is None or await asyncio.to_thread(is_handoff, answer):
            fresh["locale"] = options.locale or locale_of(answer) or outcome.language
            if answer is not None and self._members_for_a_step(state, options):
                fresh["handed_step"] = await asyncio.to_thread(find_step, answer)
            return Command(goto="planner", update=make_update(**fresh))
        reply = AIMessage(text_with_note(answer), name="coordinator", id=answer.id)
        return Command(goto="__end__", update=make_update(reply, **fresh))

    async def _decide(self, state: State, options: RunOptions) -> _CoordinatorOutcome:
        if note := private_of(state).get("schedule_note"):
            return _CoordinatorOutcome(await self._report_schedule(state, note, options))
        if profile_of(self.model).sorts_by_grammar:
            return await self._compact(state, options)
        summary = await summarize_history(self.model, state)
        request, asked = merge_clarifications(state["messages"], self.max_clarifications)
        may_ask = options.may_ask and run_scope().can_pause and asked < self.max_clarifications
        answer = await self._answer(with_private(state, **summary), options, may_ask)
        question = find_question(answer) if may_ask else ""
        wish = find_wish(answer) if _schedules_of(options) is not None else None
        return _CoordinatorOutcome(answer, request=request, question=question, wish=wish, summary=summary)

    async def _report_schedule(self, state: State, note: str, options: RunOptions) -> AIMessage:
        """Return the words in which the user is told what became of a schedule."""
        system = SystemMessage(render("scheduled", outcome=note, team=(), locale=options.locale))
        answer = await self._asked(self.model, [system, *conversation_of(state)], announcement=0)
        return answer if without_thoughts(answer.text) else answer.model_copy(update={"content": note})

    async def _answer(self, state: State, options: RunOptions, may_ask: bool) -> AIMessage:
        capabilities = capabilities_of(self.model)
        if capabilities.has("tools"):
            try:
                handoff = handoff_tool(self._members_for_a_step(state, options))
                schedules = _schedules_of(options)
                tools = [handoff, *([ASK_TOOL] if may_ask else [])]
                tools += [schedule_tool(schedules.time_zone)] if schedules is not None else []
                model = self.model.bind_tools(tools)
                messages = await self._messages(state, options, tools=True, may_ask=may_ask)
                return await self._asked(model, messages)
            except ModelError as error:
                # The endpoint rejected tools, which was recorded: ask for a hand-off as text instead.
                if error.code != "model_bad_request" or capabilities.has("tools"):
                    raise
        messages = await self._messages(state, options, tools=False, may_ask=may_ask)
        return await self._asked(self.model, messages)

    async def _asked(
        self,
        model: Runnable[Any, AIMessage],
        messages: list[BaseMessage],
        announcement: int = ANNOUNCEMENT_WIDTH,
        **limits: Any,
    ) -> AIMessage:
        config = observing(_ReplySender(announcement).receive)
        return await send_within_window(
            self.model, messages, lambda shown: ask(model, shown, config=config, **limits)
        )

    def _members_for_a_step(self, state: State, options: RunOptions) -> list[Worker]:
        """Return the members that a hand-off may give a step to: none where the planner has to be asked."""
        # Only the planner sees what the plan before lacks.
        if not options.takes_handed_step or private_of(state).get("unfinished"):
            return []
        return options.enabled(self.available)

    async def _messages(
        self, state: State, options: RunOptions, *, tools: bool, may_ask: bool
    ) -> list[BaseMessage]:
        members = self._members_for_a_step(state, options)
        roles = await find_current_roles(self.roles, self.search)
        prompt = render(
            "coordinator",
            tools=tools,
            may_ask=may_ask,
            may_schedule=tools and _schedules_of(options) is not None,
            members=format_briefs(members, roles),
            team=() if members else options.enabled(self.available),
            locale=options.locale,
        )
        private = private_of(state)
        addition = format_caller(caller_of(state)) + format_files(private.get("files") or ())
        addition += format_lost_pictures(private.get("lost_pictures") or ())
        addition += format_client_tools(offered_client_tools())
        decided = [HumanMessage(text) for text in [format_decided_turns(state)] if text]
        return [SystemMessage(prompt + addition), *decided, *conversation_of(state)]

    async def _compact(self, state: State, options: RunOptions) -> _CoordinatorOutcome:
        """Classify the request; answer small talk and questions that the model can answer without tools."""
        # Only the messages, so that the request of the turn before is ignored.
        written = request_of({"messages": state["messages"]})
        follow_up = await complete_follow_up(self.model, state, written)
        asked = follow_up.request
        files = private_of(state).get("files") or ()
        state = with_private(state, request=asked)
        seen = await self.pictures.look(files, self.model) if self.pictures is not None else SeenPictures()
        outcome = await self._answer_compact(state, options, seen)
        unseen = _find_unsaid(state, asked, seen.unseen)
        if unseen and (answer := outcome.answer) is not None:
            note = write_unseen_note(choose_language(asked, options.locale or outcome.language), unseen)
            text = f"{text_with_note(answer)}\n\n{note}"
            outcome = replace(outcome, answer=answer.model_copy(update={"content": text}))
        request = seen.extend(asked) if seen.descriptions else asked if asked != written else ""
        return replace(outcome, request=request, unseen=unseen, number_source=follow_up.number_source)

    async def _answer_compact(
        self, state: State, options: RunOptions, seen: SeenPictures
    ) -> _CoordinatorOutcome:
        asked, files = request_of(state), private_of(state).get("files") or ()
        request, pictures = seen.extend(asked), find_pictures(files)
        no_search = self.no_search if self.search is None else await find_outage(self.search)
        can_search = self.search is not None and not no_search
        sort = await self._sort(append_files(request, files), can_search=can_search)
        # What is known of a picture is in the request: naming it is no reason for a program.
        plain = without_names(asked, pictures)
        others = [line for line in files if line.rpartition(" (")[0] not in pictures]
        kind = choose_kind(sort.kind, plain, others, can_search=can_search)
        language = detect_language(asked, sort.language)
        if kind not in _ANSWERED:
            return _CoordinatorOutcome(sorted_for=kind, language=language)
        chosen = choose_language(asked, options.locale or language)
        if kind == "answer" and not can_search and not seen.descriptions and await self._changes(request):
            return _CoordinatorOutcome(AIMessage(write_ignorance(chosen, no_search)), language=language)
        name, tokens = _ANSWERED[kind], REPLY_TOKENS if kind == "chat" else ANSWER_TOKENS
        prompt = render(f"compact/{name}", language=chosen)
        system = SystemMessage(prompt + format_caller(caller_of(state), COMPACT_CALLER_CHARACTERS))
        messages = [system, *conversation_of(state)[-5:]]
        if seen.descriptions:
            messages[-1] = HumanMessage(request)
        elif _find_unsaid(state, asked, seen.unseen):
            messages[-1] = HumanMessage(f"{request}\n{_NOT_SEEN}")
        answer = await self._asked(self.model, messages, announcement=0, max_tokens=tokens)
        if kind == "answer":
            text = f"{text_with_note(answer)}\n\n{write_memory_note(chosen, no_search)}"
            answer = answer.model_copy(update={"content": text})
        return _CoordinatorOutcome(answer, language=language)

    async def _sort(self, asked: str, *, can_search: bool) -> Sorted:
        pairs = [
            (question, Sorted(**_without_search(sort, can_search)).model_dump_json())
            for question, sort in read_examples()["route"]
        ]
        prompt = render("compact/coordinator", search=can_search)
        messages = [SystemMessage(prompt), *example_messages(pairs), HumanMessage(asked)]
        shape = sorting_shape(can_search=can_search)
        sort, _ = await send_within_window(
            self.model, messages, lambda shown: ask_for(self.model, shown, shape), pinned=PROMPT_ONLY
        )
        return sort

    async def _changes(self, request: str) -> bool:
        """Return whether the answer to a question changes over time: no model knows it from memory."""
        pairs = [
            (question, Timeliness(changes=changes).model_dump_json())
            for question, changes in read_examples()["changes"]
        ]
        system = SystemMessage(render("compact/changes"))
        messages = [system, *example_messages(pairs), HumanMessage(request)]
        shape = Shape("Timeliness", object_schema(changes={"type": "boolean"}), Timeliness)
        try:
            found, _ = await send_within_window(
                self.model, messages, lambda shown: ask_for(self.model, shown, shape), pinned=PROMPT_ONLY
            )
        except ShapeError:
            return False
        return found.changes


def _schedules_of(options: RunOptions) -> RunSchedules | None:
    """Return what makes schedules in the present run; None where the user cannot be asked about one."""
    scope = run_scope()
    return scope.schedules if options.may_ask and scope.can_pause else None


def _find_unsaid(state: State, request: str, unseen: Sequence[str]) -> list[str]:
    """Return the pictures that the answer has to name: those that are asked about, and new ones.

    Pictures of messages that are no files are among them.
    """
    lost = [one.partition(": ")[0] for one in private_of(state).get("lost_pictures") or ()]
    answers = "\n".join(one.text for one in state["messages"] if isinstance(one, AIMessage))
    named = (name for name in unseen if name.casefold() in request.casefold() or name not in answers)
    return [*named, *lost]


def choose_kind(kind: Kind, request: str, files: Sequence[str], *, can_search: bool) -> Kind:
    """Return the kind of a request that a model classified as `kind`, corrected by rules.

    Requests that name a page go to a member that reads pages; without a search, only these do. Requests that
    name a file of the user go to the coder.
    """
    names = (line.rpartition(" (")[0].casefold() for line in files)
    if any(name and name in request.casefold() for name in names):
        return "coder"
    has_address = find_address(request) is not None
    if kind in ("researcher", "browser"):
        kind = kind if has_address or can_search else "answer"
    elif has_address and kind == "answer":
        kind = "researcher"
    return "coder" if kind in ("chat", "answer", "write") and FILE_NAME.search(request) else kind


def _without_search(sort: Mapping[str, str], can_search: bool) -> Mapping[str, Any]:
    is_possible = can_search or sort["kind"] != "researcher"
    return sort if is_possible else {**sort, "kind": "answer"}


@dataclass(slots=True)
class _ReplySender:
    """Sends a reply while it is written, unless it is a hand-off or a question by tool call."""

    announcement: int
    _sent: str = ""

    async def receive(self, answer: PartialAnswer) -> None:
        """Send the part of an incomplete answer that is certainly a reply."""
        if answer.calls_tools:
            return
        text = certain_text(answer.text, self.announcement)
        if text and text != self._sent:
            self._sent = text
            await adispatch_custom_event(ANSWER_DRAFT, {"message_id": answer.message_id, "text": text})


def certain_text(text: str, announcement: int = ANNOUNCEMENT_WIDTH) -> str:
    """Return the beginning of an incomplete answer that is certainly not part of a call written as text.

    Models announce a hand-off in a few words, so a text narrower than `announcement` is not certain.
    """
    text = without_thoughts(text)
    ends = [at + len(name) for name in _CALL_NAMES if (at := text.find(name)) >= 0]
    text = _before_work(text[: min(ends, default=len(text))])
    recent = _CALL_OPENING.search(text, max(0, len(text) - CALL_CHARACTERS))
    starts = [_unclosed(text), recent.start() if recent else len(text), len(text.rstrip(_WORD_CHARACTERS))]
    certain = text[: min(starts)].rstrip()
    # No character is narrower than one.
    return certain if len(certain) >= announcement or _width(certain) >= announcement else ""


def _before_work(text: str) -> str:
    """Return the text before a plan or a tool call: only the team's members write these."""
    starts = [one.start() for one in [_ENVELOPE.search(text)] if one]
    if key := PLAN_KEY.search(text):
        starts.append(len(text[: _unclosed(text[: key.start()])].rstrip("[ \t\r\n")))
    return text[: min(starts, default=len(text))]


def _unclosed(text: str) -> int:
    """Return the start of the code block or JSON that is open at the end of `text`, else its length."""
    start, depth, brace = len(text), 0, len(text)
    if text.count("```") % 2:
        start = text.rfind("```")
    # The answer is scanned again for each piece; a loop over its characters would take seconds in total.
    for found in _BRACE.finditer(text, 0, start):
        if found[0] == "{":
            depth, brace = depth + 1, found.start() if depth == 0 else brace
        else:
            depth = max(0, depth - 1)
    return min(start, brace) if depth else start


def _width(text: str) -> int:
    return sum(3 if character > "\u2e7f" else 1 for character in text)


HISTORY_SHARE = 0.5
"""The share of the model's room from which on a conversation is summarised, except its newest part."""
NEWEST_SHARE = 0.25


async def summarize_history(model: BaseChatModel, state: State) -> PrivateState:
    """Return the update that adds a summary of the older messages to `state`; empty if all messages fit.

    The messages stay on the thread; only prompts contain the summary instead.
    """
    messages, room = conversation_of(state), room_of(model)
    if count_tokens(messages) <= HISTORY_SHARE * room:
        return {}
    start = find_newest_start(messages, int(NEWEST_SHARE * room))
    upto = messages[start - 1].id if start > 1 else None
    if upto is None or not (text := await summarize(model, messages[:start])):
        return {}
    return {"summary": {"upto": upto, "text": text}}


@dataclass(frozen=True, slots=True)
class ClarifyNode:
    """Pauses with the coordinator's question; the answer is added to the conversation.

    This is a separate node because LangGraph executes a node again after a pause: the coordinator's model
    would be called again and might ask something else.
    """

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["coordinator"]]:
        question = state["messages"][-1].text
        answer = interrupt({"kind": "question", "question": question, "options": []})
        reply = HumanMessage(
            answer_text(answer), id=run_scope().inbox.answer_id, additional_kwargs={ANSWER_MARK: True}
        )
        return Command(goto="coordinator", update=make_update(reply, next="coordinator"))
