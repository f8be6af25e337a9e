"""Who of the team depends on which endpoints."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from maniple.agents import Roles, choose_llm
from maniple.llms import ChatModels
from maniple.types import DIRECTORS, AgentName, LLMType, Worker

IN_EVERY_RUN: tuple[AgentName, ...] = ("coordinator", "planner", "reporter")
DEEP_THINKING = "planner (deep thinking)"


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A role and the URLs of its model and that model's fallbacks: one of them must answer.

    Without a `vital` one no question can be worked on.
    """

    role: str
    urls: tuple[str, ...]
    vital: bool = False


def uses_of(
    models: ChatModels, llms: Mapping[AgentName, LLMType], workers: Iterable[Worker], roles: Roles
) -> tuple[ModelUse, ...]:
    """Return what each role uses; `llms` are the model types that differ from the roles' defaults."""
    uses = [
        ModelUse(agent, _urls(models.get(choose_llm(agent, roles, llms))), vital=agent in IN_EVERY_RUN)
        for agent in (*DIRECTORS, *workers)
    ]
    deep = ModelUse(DEEP_THINKING, _urls(models.get("reasoning")))
    return tuple(one for one in (*uses, deep) if one.urls)


def _urls(model: BaseChatModel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_each(model)))


def _each(model: BaseChatModel) -> Iterator[str]:
    # A model that is not ours tells of no endpoint.
    endpoint = getattr(model, "endpoint", None)
    if endpoint is not None:
        yield endpoint.url
    for fallback in getattr(model, "fallback_models", ()):
        yield from _each(fallback)
