"""What events are made of: messages, steps of a plan, pieces of text, tabs."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class ChatMessage(BaseModel):
    """One message of the conversation as clients see it."""

    model_config = ConfigDict(frozen=True)

    role: str
    content: str | list[dict[str, Any]]


class PlanStepView(BaseModel):
    """One step of the plan, with where it stands.

    `reason` says in a line why a step failed, is blocked or was skipped; otherwise the wire does not carry
    the key.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    agent_name: str
    title: str
    description: str
    status: str
    reason: str | None = None

    @model_serializer(mode="wrap")
    def _without_an_empty_reason(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = serialize(self)
        return data if self.reason else {key: value for key, value in data.items() if key != "reason"}


class Delta(BaseModel):
    """A piece of a message: text or reasoning, never both."""

    model_config = ConfigDict(frozen=True)

    content: str | None = None
    reasoning_content: str | None = None

    @model_serializer
    def _only_what_is_set(self) -> dict[str, str]:
        if self.reasoning_content is not None:
            return {"reasoning_content": self.reasoning_content}
        return {"content": self.content or ""}


class TabView(BaseModel):
    """A tab of the browser."""

    model_config = ConfigDict(frozen=True)

    tab_id: int
    url: str
    title: str
    is_current: bool
