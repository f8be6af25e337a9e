"""Connects a better model while the service runs: tests an endpoint, saves it, and has later runs use it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from pydantic import SecretStr, ValidationError

from maniple.agents.team_models import LineProgress, open_models
from maniple.app import source_of
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.config.load import ineffective_limits
from maniple.config.secrets import NO_KEY, secrets_of
from maniple.config.variables_file import (
    SettingsNotWritable,
    folder_to_trust,
    variables_file,
    write_variables,
)
from maniple.errors import ConfigError, ManipleError, ModelError
from maniple.llms import open_chat_models
from maniple.llms.capabilities import ANSWER_TOKENS, PROBE_SECONDS, probe
from maniple.llms.model_listing import list_models
from maniple.llms.providers import base_url_of, name_endpoint
from maniple.outgoing import OutgoingGuard
from maniple.redaction import Redactor
from maniple.runs.in_process import InProcessEngine
from maniple.scope.budget import load_prices
from maniple.service.opening import Service
from maniple.service.readiness import open_reach
from maniple.text import fix_surrogates, shorten

_LISTED_NAMES = 20
_NAME_CHARACTERS = 80
_FIELDS: Mapping[str, str] = {
    "model": "BASIC_MODEL",
    "base_url": "BASIC_BASE_URL",
    "api_key": "BASIC_API_KEY",
}
_PROVIDER = "BASIC_PROVIDER"


class InvalidModel(ManipleError):
    """What was given is no model at an endpoint with OpenAI's API."""

    code = "invalid_model"


class ModelUnusable(ManipleError):
    """The model did not answer; the message says why and what to do."""

    code = "model_unusable"


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """A model at an endpoint with OpenAI's API. `api_key` is None to keep the key of the same address."""

    model: str
    base_url: str = ""
    """Default: OpenAI's."""
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ModelTest:
    """The result of a test. `features` are those that the calls have shown to work or not."""

    detail: str = ""
    """Why the model cannot be used; "" if it answers."""
    code: str = ""
    models: Sequence[str] = ()
    """Some of the names that the endpoint lists."""
    features: Mapping[str, bool | None] = field(default_factory=dict[str, bool | None])


@dataclass(frozen=True, slots=True)
class SavedModel:
    """The model that answers from the next run on, and what is to be known of it."""

    model: str
    file: str
    overruled: Sequence[str]
    """The environment variables that win over what was saved."""
    notices: Sequence[str]


def why_fixed(settings: Settings) -> str:
    """Return why the model cannot be changed by a running service, with the remedy; "" if it can.

    Blocks on disk.
    """
    if settings.store.backend == "postgres":
        return (
            "With store.backend: postgres several processes answer, each with its own settings. Change the "
            "model in the .env of each, and start them again."
        )
    try:
        variables_file(settings)
    except SettingsNotWritable as error:
        return str(error)
    return ""


def folder_trusted_by_saving(settings: Settings) -> str:
    """Return the folder that `connect_model` trusts for all later starts; "" if none. Blocks on disk."""
    return "" if why_fixed(settings) else str(folder_to_trust(settings) or "")


async def test_model(service: Service, asked: ModelConnection) -> ModelTest:
    """Call a model, and find out with five more short calls what it can do. Nothing is saved.

    Raises `InvalidModel`, or `SettingsNotWritable` where it could not be used anyway.
    """
    model = await _check(service, asked)
    hide = Redactor(secrets_of(model)).text
    names = await _list_names(model)
    async with _open_alone(model) as chat:
        if failure := await _find_failure(chat):
            return ModelTest(hide(_describe(failure, model, names)), failure.code, names)
        features = {one.feature: one.works async for one in probe(chat)}
    return ModelTest(models=names, features=features)


async def connect_model(service: Service, asked: ModelConnection) -> tuple[Service, SavedModel]:
    """Save a model; return the service whose next runs use it, and what was saved.

    Runs at work end with the model that they have. Raises `InvalidModel`, `ModelUnusable` or
    `SettingsNotWritable`; then nothing has changed.
    """
    model = await _check(service, asked)
    hide = Redactor(secrets_of(model)).text
    async with _open_alone(model) as chat:
        if failure := await _find_failure(chat):
            raise ModelUnusable(hide(_describe(failure, model, await _list_names(model))))
    try:
        found = await asyncio.to_thread(
            write_variables, service.settings, _variables(service.settings, model)
        )
    except SettingsNotWritable:
        raise
    except ConfigError as error:
        raise InvalidModel(hide(str(error))) from None
    settings = service.settings.model_copy(update={"models": found.models})
    basic = settings.models.basic
    assert basic is not None  # a part of it was written
    opened = await _replace_models(service, settings)
    places = (found.origin.places.get(("models", "basic", key), "") for key in _FIELDS)
    overruled = [one.rpartition(" ")[2] for one in places if one.startswith("environment variable")]
    saved = SavedModel(
        basic.model,
        str(service.settings.origin.variables_file),
        overruled,
        list(ineffective_limits(settings)),
    )
    return opened, saved


async def _check(service: Service, asked: ModelConnection) -> ModelSettings:
    if why := await asyncio.to_thread(why_fixed, service.settings):
        raise SettingsNotWritable(why)
    present = service.settings.models.basic
    key = asked.api_key.strip() if asked.api_key is not None else None
    try:
        model = ModelSettings(
            model=asked.model.strip(),
            base_url=asked.base_url.strip() or None,
            api_key=SecretStr(key) if key else None,
        )
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        lines = (
            f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}"
            for one in problems
        )
        raise InvalidModel(f"This is no model at an endpoint: {'; '.join(lines)}.") from None
    if not all(map(str.isprintable, (model.model, model.base_url or ""))):
        raise InvalidModel("The name and the address of a model have printable characters only.")
    if asked.api_key is None and present is not None and _url(present) == _url(model):
        model = model.model_copy(update={"api_key": present.api_key})
    return model


def _url(model: ModelSettings) -> str:
    return name_endpoint(model, "models.basic", "BASIC").url.rstrip("/")


def _variables(settings: Settings, model: ModelSettings) -> dict[str, str]:
    """Return what is written: all of a model, so that nothing of another one is left, such as its key.

    Without a key `NO_KEY` takes its place.
    """
    key = model.api_key.get_secret_value() if model.api_key else NO_KEY
    values = {"model": model.model, "base_url": base_url_of(model), "api_key": key}
    variables = {_FIELDS[name]: value for name, value in values.items()}
    present = settings.models.basic
    if present is not None and present.provider != model.provider:
        variables[_PROVIDER] = model.provider
    return variables


@asynccontextmanager
async def _open_alone(model: ModelSettings) -> AsyncGenerator[BaseChatModel]:
    hasty = model.model_copy(update={"max_retries": 0, "timeout_seconds": PROBE_SECONDS})
    async with open_chat_models(ModelsSettings(basic=hasty), deferred=True) as models:
        await models.load()
        yield models.get("basic")


async def _list_names(model: ModelSettings) -> list[str]:
    """Return some names of an endpoint's list, in which anything may stand."""
    listed, hide = await list_models(model), Redactor(secrets_of(model)).text
    return [shorten(hide(fix_surrogates(one)), _NAME_CHARACTERS) for one in listed[:_LISTED_NAMES]]


async def _find_failure(chat: BaseChatModel) -> ModelError | None:
    try:
        await chat.ainvoke([HumanMessage("Say ok.")], max_tokens=ANSWER_TOKENS)
    except ModelError as error:
        return error
    return None


def _describe(failure: ModelError, model: ModelSettings, names: Sequence[str]) -> str:
    if failure.code == "model_not_found" and names and model.model not in names:
        return f"{failure} The endpoint lists: {', '.join(names)}."
    return str(failure)


async def _replace_models(service: Service, settings: Settings) -> Service:
    """Return the service over the models of `settings`, which its engine uses from the next run on."""
    engine = service.engine
    assert isinstance(engine, InProcessEngine)  # `why_fixed` excludes PostgreSQL
    async with AsyncExitStack() as stack:
        models, answering = await stack.enter_async_context(
            open_models(settings, LineProgress(), deferred=True)
        )
        runtime = await asyncio.to_thread(service.runtime.builder.build, models, answering, settings)
        runtime = replace(runtime, notices=(*runtime.notices, *service.tracing.notices))
        reach = await stack.enter_async_context(open_reach(runtime))
        _share(service, settings)
        runtime = replace(runtime, close_models=stack.pop_all().aclose)
    await engine.teams.replace(source_of(runtime))
    return replace(service, settings=settings, runtime=runtime, reach=reach)


def _share(service: Service, settings: Settings) -> None:
    """Have all parts that mask or refuse secrets, or count costs, know those of new models."""
    secrets = list(secrets_of(settings.models))
    service.redactor.add(secrets)
    if (guard := service.runtime.offer.service(OutgoingGuard)) is not None:
        guard.add(secrets)
    service.engine_config.prices.update(load_prices(settings.models))
