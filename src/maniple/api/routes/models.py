"""The models that answer here."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from maniple.api.auth import keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.state import ServiceOf
from maniple.service import Service
from maniple.types import LLM_TYPES

router: APIRouter = keyed_router("service")


class ConfiguredModelView(BaseModel):
    """A configured model."""

    name: str
    types: list[str] = Field(description="The types of work that it does: basic, reasoning, vision; or none")
    has_price: bool = Field(description="Whether its calls are counted by the cost limit of a run")


class ModelsView(BaseModel):
    """The model that answers unless a run chooses another one, and all that a run may choose."""

    answering: str
    embedded: bool = Field(description="Whether the small model of this installation answers")
    models: list[ConfiguredModelView]


@router.get("/api/models", summary="List the models", responses=error_responses())
async def list_models(service: ServiceOf) -> ModelsView:
    """The models of the settings, each under the name that `model` of a run may have."""
    answering = service.runtime.answering
    return ModelsView(answering=answering.model, embedded=answering.embedded, models=_views(service))


def _views(service: Service) -> list[ConfiguredModelView]:
    configured, models = service.settings.models, service.runtime.models
    priced = {one.model for one in configured.each() if one.has_price}
    by_name = {name: list[str]() for name in models.names}
    for kind in LLM_TYPES:
        endpoint = getattr(models.by_type.get(kind), "endpoint", None)
        if endpoint is not None:
            by_name[endpoint.model].append(kind)
    return [
        ConfiguredModelView(name=name, types=types, has_price=name in priced)
        for name, types in by_name.items()
    ]
