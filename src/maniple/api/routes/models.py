"""The models that answer here, and a better one for all runs."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.service import Service
from maniple.service.callers import Caller
from maniple.service.model_setup import (
    ModelConnection,
    connect_model,
    folder_trusted_by_saving,
    test_model,
    why_fixed,
)
from maniple.types import LLM_TYPES

router: APIRouter = keyed_router("service")
_Text = Annotated[str, Field(max_length=2_000)]
_NOT_ADMIN = (
    "Only who runs this service may change its model: with a key of `maniple keys add NAME --admin`, or, "
    "while there are no keys, from this machine."
)


class NotAdmin(ManipleError):
    """The caller may not change what all callers share."""

    code = "not_admin"


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
    fixed: str = Field(description='Why the caller cannot connect another model; "": it can')
    trusts: str = Field(description='The folder without settings that connecting one trusts; "": none')


class ModelConnectionIn(BaseModel):
    """A model at an endpoint with OpenAI's API. Without `api_key` the key of the same address is kept."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"model": "gpt-4o", "base_url": "https://api.openai.com/v1"}}
    )

    model: _Text = ""
    base_url: _Text = Field(default="", description='"": OpenAI\'s own')
    api_key: _Text | None = None

    def as_connection(self) -> ModelConnection:
        """Return the model as the service takes it."""
        return ModelConnection(self.model, self.base_url, self.api_key)


class ModelTestView(BaseModel):
    """What a test has shown. `features` are true, false, or null where the calls did not show it."""

    works: bool
    code: str
    detail: str
    models: list[str]
    features: dict[str, bool | None]


class SavedModelView(BaseModel):
    """The model that answers from the next run on."""

    model: str
    file: str = Field(description="Where it was saved")
    overruled: list[str] = Field(description="The environment variables that win over what was saved")
    notices: list[str]


@router.get("/api/models", summary="List the models", responses=error_responses())
async def list_models(service: ServiceOf, caller: CallerOf) -> ModelsView:
    """The models of the settings, each under the name that `model` of a run may have."""
    answering = service.runtime.answering
    fixed, trusts = _NOT_ADMIN, ""
    if caller.is_admin:
        fixed = await asyncio.to_thread(why_fixed, service.settings)
        trusts = await asyncio.to_thread(folder_trusted_by_saving, service.settings)
    return ModelsView(
        answering=answering.model,
        embedded=answering.embedded,
        models=_views(service),
        fixed=fixed,
        trusts=trusts,
    )


@router.post(
    "/api/models/test",
    operation_id="test_model",
    summary="Test a model",
    responses=error_responses(403, 409),
)
async def test(asked: ModelConnectionIn, service: ServiceOf, caller: CallerOf) -> ModelTestView:
    """Call a model six times to find out whether it answers and what it can do. Nothing is saved."""
    _require_admin(caller)
    found = await test_model(service, asked.as_connection())
    return ModelTestView(
        works=not found.detail,
        code=found.code,
        detail=found.detail,
        models=list(found.models),
        features=dict(found.features),
    )


@router.put(
    "/api/models/basic",
    operation_id="connect_model",
    summary="Connect a model",
    responses=error_responses(403, 409),
)
async def connect(
    asked: ModelConnectionIn, request: Request, service: ServiceOf, caller: CallerOf
) -> SavedModelView:
    """Save the basic model in the settings' `.env`; runs use it from the next one on, without a restart."""
    _require_admin(caller)
    async with service.model_change:
        # Not the one that waited: another change may have replaced it.
        opened, saved = await connect_model(request.app.state.service, asked.as_connection())
        request.app.state.service = opened
    return SavedModelView(
        model=saved.model, file=saved.file, overruled=list(saved.overruled), notices=list(saved.notices)
    )


def _require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise NotAdmin(_NOT_ADMIN)


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
