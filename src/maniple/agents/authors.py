"""Who on the team wrote a message of the conversation."""

from typing import TypeVar

from langchain_core.messages import BaseMessage

from maniple.types import AGENT_MARK, AGENTS, AgentName

M = TypeVar("M", bound=BaseMessage)


def written_by(author: AgentName, message: M) -> M:
    """Return `message` as the author's: by its name alone it could be a user's who is called so."""
    mark = {**message.additional_kwargs, AGENT_MARK: author}
    return message.model_copy(update={"name": author, "additional_kwargs": mark})


def author_of(message: BaseMessage) -> AgentName | None:
    """Return which agent wrote a message; `None` for the user's. Built-in names need no mark."""
    name = message.name
    return name if name in AGENTS or message.additional_kwargs.get(AGENT_MARK, "") == name else None
