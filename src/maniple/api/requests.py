"""Request bodies and parameters."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from maniple.app import Runtime
from maniple.config import ModelsSettings
from maniple.errors import ManipleError, UnconfiguredModel
from maniple.graph import RunOptions
from maniple.runs import DoubleTexting, RunRequest
from maniple.scope.budget import Budget
from maniple.scope.client_tools import (
    MAX_CLIENT_TOOLS,
    MAX_DESCRIPTION_CHARACTERS,
    InvalidClientTool,
    read_client_tools,
)
from maniple.scope.inputs import ChangeAction, PlanChange
from maniple.service.client_tools import accept_client_tools
from maniple.service.thread_views import ThreadId
from maniple.text import fix_surrogates, shorten
from maniple.types import GENERAL, WORKERS, Depth, Effort, ReportStyle, Worker

MAX_LEVELS = 50
_SHOWN_CHARACTERS = 80
_MOST = 10**15  # a higher limit has no effect, and some libraries cannot represent it
_MESSAGE_TYPES: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "system": SystemMessage,
}

PageLimit = Annotated[int, Query(ge=1, le=100, description="Most to return")]
PageBefore = Annotated[
    FiniteFloat | SkipJsonSchema[None], Query(description="`next_before` of the page before")
]


# The OpenAPI document requires text in every message; only a last message without any is refused.
_WORDS: dict[str, Any] = {"type": "string", "pattern": r"\S"}
_Words = Annotated[str, Field(json_schema_extra=_WORDS)]


def _part(kind: str, field: str) -> dict[str, Any]:
    return {"properties": {"type": {"const": kind}, field: _WORDS}, "required": [field]}


class ContentPart(BaseModel):
    """A piece of a message: text, or an image by URL (`data:` URLs too)."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_part("text", "text"), _part("image", "image_url")]}
    )

    type: Literal["text", "image"]
    text: str | None = None
    image_url: str | None = None

    def as_langchain(self) -> dict[str, Any]:
        """Return the part in the form chat models take."""
        if self.type == "image":
            return {"type": "image_url", "image_url": {"url": self.image_url or ""}}
        return {"type": "text", "text": self.text or ""}

    @property
    def is_empty(self) -> bool:
        """Whether it has no content."""
        return not ((self.image_url if self.type == "image" else self.text) or "").strip()


class ChatMessageIn(BaseModel):
    """One message of the conversation; other fields, such as the old client's `id`, are ignored."""

    role: str = Field(examples=["user"])
    content: _Words | Annotated[list[ContentPart], Field(json_schema_extra={"minItems": 1})] = Field(
        examples=["1+3=?"]
    )

    @property
    def kind(self) -> type[BaseMessage]:
        """The role of the author; an unknown role counts as the user."""
        return _MESSAGE_TYPES.get(self.role.casefold(), HumanMessage)

    @property
    def is_empty(self) -> bool:
        """Whether it holds neither text nor an image."""
        if isinstance(self.content, str):
            return not self.content.strip()
        return all(part.is_empty for part in self.content)

    def as_langchain(self) -> BaseMessage:
        """Return the message for the graph."""
        if isinstance(self.content, str):
            return self.kind(fix_surrogates(self.content))
        return self.kind(content=fix_surrogates([part.as_langchain() for part in self.content]))


def _ask_something(messages: list[ChatMessageIn]) -> list[ChatMessageIn]:
    newest = messages[-1]
    if newest.kind is not HumanMessage:
        raise ValueError("the last message must be the user's: the team answers that one")
    if newest.is_empty:
        raise ValueError("the last message is empty: give it text or an image")
    return messages


Conversation = Annotated[list[ChatMessageIn], Field(min_length=1), AfterValidator(_ask_something)]
"""Messages, oldest first. Only the last one, which is answered, must have text."""


_Amount = Annotated[int | None, Field(gt=0, le=_MOST)]
_Measure = Annotated[float | None, Field(gt=0, le=_MOST, allow_inf_nan=False)]


class BudgetIn(BaseModel):
    """The limits of a run. They can only lower those of the server and of the key."""

    tokens: _Amount = None
    seconds: _Measure = None
    model_calls: _Amount = None
    tool_calls: _Amount = None
    cost: _Measure = None

    def as_budget(self) -> Budget:
        """Return the limits as the agents' budget."""
        return Budget(**self.model_dump())


MemberName = Annotated[str, Field(json_schema_extra={"enum": list(WORKERS)})]
"""A member of the team; the routes check it (`maniple.api.requests`), since the settings may add some."""


NO_AGENT = ("",)
SoleAgent = Annotated[str, Field(json_schema_extra={"enum": list(NO_AGENT)})]
"""The worker that answers alone; "" for the team. Validated like the members."""


class TeamRequest(BaseModel):
    """The fields that all requests to the team share: those of LangManus, and optional extensions."""

    debug: bool | None = Field(default=False, description="For LangManus's client; has no effect.")
    deep_thinking_mode: bool | None = Field(
        default=False, description="Plan with the reasoning model, and stream its reasoning."
    )
    search_before_planning: bool | None = Field(
        default=False, description="Give the planner the results of a web search."
    )
    team_members: list[MemberName] | None = Field(
        default=None, description="Who may work; empty or null: all. The reporter always may."
    )
    auto_accepted_plan: bool | None = Field(
        default=True, description="False: the run waits for an answer to the plan before any step is done."
    )
    agent: SoleAgent | None = Field(
        default=None, description="The agent that answers alone, such as `manus`, if the settings name it."
    )
    depth: Depth | None = Field(
        default=None,
        description="How far the question is researched: `quick` is one step with few sources; `deep` splits "
        "it into sub-questions and follows open ones in further rounds. Null: `team.depth` of the settings.",
    )
    locale: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$",
        description="The language of the answer, such as `de-DE`; null: that of the request.",
    )
    report_style: ReportStyle | None = Field(
        default=None, description="The style of the report; null: that of the settings."
    )
    effort: Effort | None = Field(
        default=None,
        description="How much the models are to reason; null: as they do by themselves. The run says once of "
        "each model that takes no effort (`effort_not_used`).",
    )
    model: str | None = Field(
        default=None,
        max_length=200,
        description="The model of `GET /api/models` that does the basic one's work; null: the basic one. "
        "The run keeps it, also when it is resumed or retried.",
    )
    multitask_strategy: DoubleTexting = Field(
        default="enqueue", description="What happens if a run of the conversation is in progress."
    )
    budget: BudgetIn | None = Field(default=None, description="Limits of this run.")

    def options(self) -> RunOptions:
        """Return the options of the run."""
        return RunOptions(
            team_members=tuple(dict.fromkeys(self.team_members or ())),
            deep_thinking_mode=bool(self.deep_thinking_mode),
            search_before_planning=bool(self.search_before_planning),
            auto_accepted_plan=self.auto_accepted_plan is not False,
            locale=self.locale or "",
            agent=self.agent or "",
            depth=self.depth or "",
            report_style=self.report_style or "",
            effort=self.effort or "",
        )

    def _request(
        self, messages: Sequence[BaseMessage], thread_id: str | None, owner: str, budget: Budget
    ) -> RunRequest:
        return RunRequest(
            *(messages, thread_id, self.options(), owner, self.multitask_strategy, budget),
            model=self.model or "",
        )

    def asked_budget(self) -> Budget:
        """Return the limits that the client sets itself."""
        return self.budget.as_budget() if self.budget else Budget()


class ClientToolIn(BaseModel):
    """A function that the client runs when a member of the team calls it; other keys have no effect."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARACTERS)
    parameters: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="The JSON Schema of its arguments, an object; {}: none."
    )


class ClientRequest(TeamRequest):
    """The fields of requests whose client can run functions of its own."""

    client_tools: Annotated[list[ClientToolIn], Field(max_length=MAX_CLIENT_TOOLS)] | None = Field(
        default=None,
        description="Functions that the client runs itself. A call pauses the run with a question whose "
        "payload has `client_call` (`id`, `name`, `arguments`); the answer is the result.",
    )

    def described_tools(self) -> list[dict[str, Any]]:
        """Return the functions as mappings; not checked."""
        return [one.model_dump() for one in self.client_tools or ()]

    def name_unknown_keys(self) -> list[str]:
        """Return the places of what the functions have beside their fields."""
        described = enumerate(self.client_tools or ())
        return [f"client_tools.{at}.{key}" for at, one in described for key in one.model_extra or {}]

    def _request(
        self, messages: Sequence[BaseMessage], thread_id: str | None, owner: str, budget: Budget
    ) -> RunRequest:
        asked = super()._request(messages, thread_id, owner, budget)
        return replace(asked, client_tools=read_client_tools(self.described_tools()))


RUN_OPTIONS = tuple(
    name for name in ClientRequest.model_fields if name not in ("debug", "multitask_strategy")
)
"""The fields that are options of a new run."""


class NewRunOptions(TeamRequest):
    """The options of a run whose message is given elsewhere; `multitask_strategy` has no effect."""

    def as_run(self, owner: str, budget: Budget) -> RunRequest:
        """Return the request of the run, within `budget`, still without its message."""
        return self._request([HumanMessage("")], None, owner, budget)


class ChatRequest(ClientRequest):
    """The body of `POST /api/chat/stream`."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"messages": [{"role": "user", "content": "1+3=?"}]}}
    )

    messages: Conversation
    thread_id: ThreadId | None = Field(
        default=None,
        description="The conversation to continue; of `messages` only the newest is new then. Null: the "
        "conversation whose history the messages before the newest one are, else a new one.",
    )
    on_disconnect: Literal["cancel", "continue"] | None = Field(
        default="cancel", description="What becomes of the run when the client disconnects."
    )

    def as_run(self, thread_id: str | None, owner: str, budget: Budget) -> RunRequest:
        """Return the run that the client asks for on a thread, or on one of its own, within `budget`."""
        messages = [message.as_langchain() for message in self.messages]
        return self._request(messages, thread_id, owner, budget)


class RunCreate(ClientRequest):
    """The body of `POST /api/threads/{thread_id}/runs`: `messages`, or `input` as one message of the user."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"input": "1+3=?"},
            # Not `anyOf`, for which generators of clients make no type.
            "if": {"not": {"required": ["messages"]}},
            "then": {"required": ["input"]},
        }
    )

    messages: Conversation = Field(default_factory=list[ChatMessageIn])
    input: str = Field(
        default="", min_length=1, json_schema_extra=_WORDS, description="The text of one message of the user."
    )

    @model_validator(mode="after")
    def _asks(self) -> "RunCreate":
        if not self.messages and not self.input.strip():
            raise ValueError("give messages, or input as the text of one message")
        return self

    def as_run(self, thread_id: str, owner: str, budget: Budget) -> RunRequest:
        """Return the run that the client asks for on a thread, within `budget`."""
        messages = [message.as_langchain() for message in self.messages] or [
            HumanMessage(fix_surrogates(self.input))
        ]
        return self._request(messages, thread_id, owner, budget)


def check_storable(value: Any) -> Any:
    """Return JSON with lone surrogates repaired; refuse values that no checkpoint can store."""
    level = [value]
    for _ in range(MAX_LEVELS):
        if not all(_is_countable(one) for one in level):
            raise ValueError("it holds a number beyond 64 bits, or none (NaN): send it as text")
        level = [below for one in level for below in values_inside(one)]
        if not level:
            return fix_surrogates(value)
    raise ValueError(f"it is nested in more than {MAX_LEVELS} levels")


def _is_countable(value: Any) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return not isinstance(value, float) or math.isfinite(value)


def values_inside(value: Any) -> list[Any]:
    """Return the values of a mapping or a list of JSON; of another value none."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


class ResumeRequest(BaseModel):
    """The answer to what a run, or one of its steps, waits for.

    To a plan: `accept`, an edited plan (an object, or its JSON as text), or a change request as text. To a
    tool call: `{"type": "approve"}`, `{"type": "reject", "message": "why not"}` or `{"type": "edit", "args":
    {...}}`; as text `yes`, or `no` and why not. To a question: any text. `payload.answers` lists the accepted
    answers; any other is asked again.
    """

    model_config = ConfigDict(json_schema_extra={"example": {"answer": "accept"}})

    answer: Annotated[Any, BeforeValidator(check_storable)]
    interrupt_id: Annotated[str, Field(max_length=200)] = ""


class MessageCreate(BaseModel):
    """The body of `POST /api/runs/{run_id}/messages`: what the user writes to the team while it works."""

    model_config = ConfigDict(json_schema_extra={"example": {"content": "Use euros throughout."}})

    content: Annotated[
        str, Field(min_length=1, max_length=100_000, pattern=r"\S"), AfterValidator(fix_surrogates)
    ]


class BranchCreate(BaseModel):
    """The body of `POST /api/runs/{run_id}/branch`: what differs from the run; may be empty."""

    model_config = ConfigDict(json_schema_extra={"example": {"input": "1+4=?"}})

    input: Annotated[
        str | None,
        Field(max_length=1_000_000, pattern=r"\S", description="The new text; null: the question as it was."),
        AfterValidator(fix_surrogates),
    ] = None
    run: NewRunOptions | None = Field(default=None, description="The options; null: those of the run.")


class ThreadCreate(BaseModel):
    """The body of `POST /api/threads`; may be empty."""

    title: Annotated[str, Field(max_length=200)] = ""


class ThreadUpdate(BaseModel):
    """The body of `PATCH /api/threads/{thread_id}`: the new title of the conversation."""

    title: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]


class PlanEditRequest(BaseModel):
    """A change of the plan: a step is skipped, done again, edited, added or moved."""

    model_config = ConfigDict(json_schema_extra={"example": {"action": "skip", "step_id": 2}})

    action: ChangeAction
    step_id: Annotated[int, Field(ge=0, le=1_000)] = 0
    title: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    description: Annotated[str, Field(max_length=10_000)] | None = None
    agent_name: MemberName | None = None
    after: Annotated[int, Field(ge=0, le=1_000)] | None = None
    needs: Annotated[list[int], Field(max_length=100)] | None = None
    """Of an added step: the steps whose results it is given. Without it, all before it."""

    def as_change(self) -> PlanChange:
        """Return the change for the run."""
        return PlanChange(
            self.action,
            self.step_id,
            fix_surrogates(self.title),
            fix_surrogates(self.description),
            self.agent_name,
            self.after,
            self.needs,
        )


def check_team_members(names: Sequence[str] | None, known: Iterable[Worker]) -> None:
    """Raise a `RequestValidationError` if `team_members` has an unknown name."""
    if unknown := [fix_surrogates(name) for name in names or () if name not in (known := tuple(known))]:
        words = f"no such team member: {', '.join(unknown)}; known are {', '.join(known)}"
        _refuse("value_error", "team_members", f"Value error, {words}", names)


def check_agent_name(name: str | None, known: Iterable[Worker]) -> None:
    """Raise a `RequestValidationError` if `agent_name` is unknown."""
    if name is not None and name not in (known := tuple(known)):
        *others, last = (f"'{one}'" for one in known)
        _refuse("literal_error", "agent_name", f"Input should be {', '.join(others)} or {last}", name)


def check_sole_agent(name: str | None, alone: Iterable[Worker]) -> None:
    """Raise the `RequestValidationError` of an `agent` that does not work alone here."""
    if name and name not in (alone := tuple(alone)):
        there = ", ".join(alone) or f"none; team.members in the server's settings can name {GENERAL}"
        words = f"no agent {fix_surrogates(name)} works alone here; known: {there}"
        _refuse("value_error", "agent", f"Value error, {words}", name)


def check_choices(ask: TeamRequest, runtime: Runtime) -> None:
    """Raise the error of members, an agent, a model or functions that a request names in vain.

    That is a `RequestValidationError`, or `UnconfiguredModel`.
    """
    check_team_members(ask.team_members, runtime.roles)
    check_sole_agent(ask.agent, runtime.alone)
    if ask.model and ask.model not in (known := runtime.models.names):
        raise UnconfiguredModel(shorten(fix_surrogates(ask.model), _SHOWN_CHARACTERS), known)
    if isinstance(ask, ClientRequest) and ask.client_tools:
        try:
            accept_client_tools(ask.described_tools(), runtime, ask.model or "")
        except InvalidClientTool as error:
            place = ".".join(filter(None, ("client_tools", error.place)))
            _refuse("value_error", "client_tools", f"Value error, {place}: {error}", None)


def _refuse(kind: str, field: str, words: str, given: Any) -> None:
    raise RequestValidationError([{"type": kind, "loc": ("body", field), "msg": words, "input": given}])


class UnknownPrices(ManipleError):
    """The cost of a run is to be limited, but some model has no price."""

    code = "prices_unknown"


def check_budget(budget: Budget, models: ModelsSettings) -> Budget:
    """Return the budget; raises `UnknownPrices` if it limits the cost and some model has no price."""
    if budget.cost is not None and (models.unpriced or not any(models.each())):
        unpriced = ", ".join(models.unpriced) or "the model that answers"
        raise UnknownPrices(
            f"The cost cannot be limited: no price is set here for {unpriced}. "
            "Limit tokens instead, or have price_input and price_output set."
        )
    return budget
