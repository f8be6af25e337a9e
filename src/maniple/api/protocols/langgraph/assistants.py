"""The assistants of the LangGraph API: the team, and the agents that answer alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any
from uuid import UUID, uuid5

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.auth import keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.not_used import describe_not_used
from maniple.api.protocols.chat_request import TEAM
from maniple.api.protocols.run_choices import OpenBody, RunChoices
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.runs import NotFound
from maniple.service import Service

router = keyed_router("langgraph", is_protocol=True)
_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace in which LangGraph's server makes the id of a graph's own assistant."""
_MESSAGES = {
    "type": "object",
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    "required": ["messages"],
}
_STATE = {
    "type": "object",
    "properties": {
        "messages": {"type": "array", "items": {"type": "object"}},
        "plan": {"type": ["object", "null"]},
    },
}
AssistantPath = Annotated[
    str, Path(max_length=200, description="The id of an assistant, or its graph's name")
]


class UnsupportedRequest(ManipleError):
    """A request needs something of LangGraph's server that this service does not have."""

    code = "unsupported"


class AssistantView(BaseModel):
    """An assistant: the team, or an agent that answers alone."""

    assistant_id: str
    graph_id: str
    name: str
    description: str | None = None
    config: dict[str, Any] = {}
    context: dict[str, Any] = {}
    metadata: dict[str, Any] = {"created_by": "system"}
    version: int = 1
    created_at: datetime
    updated_at: datetime


class AssistantSearch(OpenBody):
    """Which assistants are looked for."""

    model_config = ConfigDict(extra="allow", title="LangGraphAssistantSearch")

    graph_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0)


class GraphSchemas(BaseModel):
    """The JSON Schemas of what a graph takes and returns."""

    graph_id: str
    input_schema: dict[str, Any] = _MESSAGES
    output_schema: dict[str, Any] = _STATE
    state_schema: dict[str, Any] = _STATE
    config_schema: dict[str, Any]
    context_schema: dict[str, Any]


class ServiceStatus(BaseModel):
    """The service answers."""

    ok: bool = True


class ServiceInfo(BaseModel):
    """What the service is."""

    version: str
    langgraph_py_version: str
    flags: dict[str, bool]


def make_assistant_id(graph_id: str) -> str:
    """Return the id of the assistant of a graph, as LangGraph's server makes it."""
    return str(uuid5(_NAMESPACE, graph_id))


def find_agent(assistant_id: str, service: Service) -> str:
    """Return the agent that an assistant's id, or its graph's name, stands for; "" for the team.

    Raises `NotFound`.
    """
    for name in (TEAM, *service.runtime.alone):
        if assistant_id in (name, make_assistant_id(name)):
            return "" if name == TEAM else str(name)
    known = ", ".join((TEAM, *service.runtime.alone))
    raise NotFound(f"There is no assistant {assistant_id[:100]!r} here; known graphs: {known}.")


@router.get("/ok", summary="Check that the service answers", responses=error_responses())
async def check_service() -> ServiceStatus:
    """The service answers."""
    return ServiceStatus()


@router.get("/info", summary="Read the versions", responses=error_responses())
async def read_info() -> ServiceInfo:
    """The versions of the service and of LangGraph."""
    flags = {"assistants": True, "crons": True, "langsmith": False}
    return ServiceInfo(version=version("maniple"), langgraph_py_version=version("langgraph"), flags=flags)


@router.post("/assistants/search", summary="List the assistants", responses=error_responses())
async def search_assistants(
    search: AssistantSearch, response: Response, service: ServiceOf
) -> list[AssistantView]:
    """The team, and the agents that answer alone."""
    response.headers.update(describe_not_used(search.not_used))
    found = [_describe(name, service) for name in (TEAM, *service.runtime.alone)]
    wanted = [one for one in found if _matches(one, search)]
    return wanted[search.offset : search.offset + search.limit]


@router.get("/assistants/{assistant_id}", summary="Read an assistant", responses=error_responses(404))
async def read_assistant(assistant_id: AssistantPath, service: ServiceOf) -> AssistantView:
    """One of the assistants."""
    return _describe(find_agent(assistant_id, service) or TEAM, service)


@router.get(
    "/assistants/{assistant_id}/schemas",
    summary="Read the schemas of an assistant",
    responses=error_responses(404),
)
async def read_schemas(assistant_id: AssistantPath, service: ServiceOf) -> GraphSchemas:
    """What its graph takes and returns, and the options of a run, in `configurable` or as the context."""
    options = RunChoices.model_json_schema()
    options["properties"].pop("thread_id")
    config = {"type": "object", "properties": {"configurable": options}}
    graph_id = find_agent(assistant_id, service) or TEAM
    return GraphSchemas(graph_id=graph_id, config_schema=config, context_schema=options)


@router.get(
    "/assistants/{assistant_id}/graph",
    summary="Read the graph of an assistant",
    responses=error_responses(404),
)
async def read_graph(
    assistant_id: AssistantPath,
    service: ServiceOf,
    xray: Annotated[str, Query(max_length=10, description="Has no effect: there are no subgraphs")] = "false",
) -> dict[str, list[dict[str, Any]]]:
    """The nodes and edges of the graph."""
    find_agent(assistant_id, service)
    return service.runtime.graph.get_graph().to_json()


def _describe(name: str, service: Service) -> AssistantView:
    begun = datetime.fromtimestamp(0, UTC)
    return AssistantView(
        assistant_id=make_assistant_id(name), graph_id=name, name=name, created_at=begun, updated_at=begun
    )


def _matches(one: AssistantView, search: AssistantSearch) -> bool:
    metadata: Mapping[str, Any] = search.metadata or {}
    return (
        search.graph_id in (None, one.graph_id)
        and (search.name or "").casefold() in one.name.casefold()
        and all(one.metadata.get(key) == value for key, value in metadata.items())
    )
