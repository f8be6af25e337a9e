"""What clients send and what they are answered outside the stream."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field, field_validator

from maniple.graph import RunOptions
from maniple.runs import RunRequest
from maniple.text import whole
from maniple.types import WORKERS, Worker

_MESSAGE_TYPES: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "system": SystemMessage,
}


class ContentPart(BaseModel):
    """A piece of a message: text, or an image by URL (`data:` URLs too)."""

    type: Literal["text", "image"]
    text: str | None = None
    image_url: str | None = None

    def as_langchain(self) -> dict[str, Any]:
        """Return the part in the form chat models take."""
        if self.type == "image":
            return {"type": "image_url", "image_url": {"url": self.image_url or ""}}
        return {"type": "text", "text": self.text or ""}


class ChatMessageIn(BaseModel):
    """One message of the conversation; other fields, such as the old client's `id`, are ignored."""

    role: str = Field(examples=["user"])
    content: str | list[ContentPart] = Field(examples=["1+3=?"])

    def as_langchain(self) -> BaseMessage:
        """Return the message for the graph; an unknown role speaks for the user."""
        kind = _MESSAGE_TYPES.get(self.role.casefold(), HumanMessage)
        if isinstance(self.content, str):
            return kind(whole(self.content))
        return kind(content=whole([part.as_langchain() for part in self.content]))


class ChatRequest(BaseModel):
    """The body of `POST /api/chat/stream`. LangManus's fields, and optional ones of ours."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"messages": [{"role": "user", "content": "1+3=?"}]}}
    )

    messages: Annotated[list[ChatMessageIn], Field(min_length=1)]
    debug: bool | None = False
    deep_thinking_mode: bool | None = False
    search_before_planning: bool | None = False
    team_members: list[str] | None = None
    thread_id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    auto_accepted_plan: bool | None = True
    on_disconnect: Literal["cancel", "continue"] | None = "cancel"
    locale: Annotated[str | None, Field(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$")] = None

    @field_validator("team_members")
    @classmethod
    def _known(cls, names: list[str] | None) -> list[str] | None:
        unknown = [whole(name) for name in names or () if name not in WORKERS]
        if unknown:
            raise ValueError(f"no such team member: {', '.join(unknown)}; known are {', '.join(WORKERS)}")
        return names

    def as_run(self) -> RunRequest:
        """Return the run that the client asks for."""
        chosen: list[Worker] = [name for name in WORKERS if name in (self.team_members or ())]
        options = RunOptions(
            team_members=tuple(chosen),
            deep_thinking_mode=bool(self.deep_thinking_mode),
            search_before_planning=bool(self.search_before_planning),
            auto_accepted_plan=self.auto_accepted_plan is not False,
            locale=self.locale or "",
        )
        messages = [message.as_langchain() for message in self.messages]
        return RunRequest(messages, self.thread_id, options)


class TeamMember(BaseModel):
    """A member of the team as the old client lists it."""

    name: str
    desc: str
    is_optional: bool


class TeamMembers(BaseModel):
    """Everyone who may be chosen, by name."""

    team_members: dict[str, TeamMember]


class Health(BaseModel):
    """The process is alive; which model answers, and what is absent."""

    status: Literal["ok"] = "ok"
    model: str
    notices: list[str]
