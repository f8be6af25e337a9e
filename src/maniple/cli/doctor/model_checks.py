"""Checks of the models: which one answers, whether it is reachable, and what it can do."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import httpx

from maniple.agents.claim_judge import name_prompt
from maniple.agents.team_models import open_models
from maniple.cli.doctor.checks import CheckResult, CheckStatus
from maniple.config import ModelSettings, Settings
from maniple.config.model_providers import Provider, provider_named
from maniple.config.sources import MODEL_PREFIXES
from maniple.egress.bounded_responses import ResponseRefused
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.errors import ConfigError, ManipleError, ModelError, Unavailable
from maniple.llms.capabilities import CapabilityCache, Feature, probe
from maniple.llms.embedded import Progress, find_local_server
from maniple.llms.embeddings import EndpointEmbedder
from maniple.llms.endpoints import EndpointName
from maniple.llms.model_listing import (
    LISTING_SECONDS,
    describe_connection_failure,
    listing_request,
    open_listing_client,
    read_model_names,
)
from maniple.llms.providers import base_url_of, make_model, name_endpoint
from maniple.store.shared_state import open_shared_state, state_files
from maniple.types import LLM_TYPES, LLMType

_EMBEDDING = "models.embedding"
_LISTED_NAMES = 5
_NAME_LENGTH = 80
"""The number of characters of a name that an endpoint lists which are shown."""


def configured_models(settings: Settings) -> list[tuple[LLMType, ModelSettings]]:
    """Return the configured model types; the first of them answers."""
    models: list[tuple[LLMType, ModelSettings | None]] = [
        (kind, getattr(settings.models, kind)) for kind in LLM_TYPES
    ]
    return [(kind, model) for kind, model in models if model is not None]


@dataclass(frozen=True, slots=True)
class EndpointSetting:
    """The place of an endpoint in the settings. With `is_required` there is no other endpoint.

    `env_prefix` is empty for a fallback, which has no environment variables.
    """

    setting: str
    env_prefix: str
    is_required: bool = True

    @property
    def failure_status(self) -> CheckStatus:
        """The status of a finding that the endpoint does not answer."""
        return "problem" if self.is_required else "warning"


async def check_endpoints(settings: Settings) -> list[CheckResult]:
    """Request the list of models from every configured endpoint."""
    return list(await asyncio.gather(*(check_endpoint(*one) for one in _endpoints(settings))))


def _endpoints(settings: Settings) -> Iterator[tuple[ModelSettings, EndpointSetting]]:
    for number, (kind, model) in enumerate(configured_models(settings)):
        setting, prefix = f"models.{kind}", MODEL_PREFIXES[kind]
        yield model, EndpointSetting(setting, prefix, is_required=number == 0 and not model.fallbacks)
        for position, fallback in enumerate(model.fallbacks):
            yield fallback, EndpointSetting(f"{setting}.fallbacks[{position}]", "", is_required=False)


def read_capabilities(settings: Settings) -> CapabilityCache:
    """Return what calls have shown of endpoints. Blocks on disk, or on PostgreSQL."""
    try:
        with open_shared_state(settings) as state:
            return CapabilityCache(state.endpoints)
    except Unavailable:  # `check_database` says why
        return CapabilityCache(state_files(settings).endpoints)


def show_learned(settings: Settings, cache: CapabilityCache) -> list[CheckResult]:
    """Return what real calls have shown of each endpoint."""
    findings = []
    for model, setting in _endpoints(settings):
        url = name_endpoint(model, setting.setting, setting.env_prefix).url
        known = ", ".join(
            f"{name}: {'yes' if works else 'no'}" for name, works in cache.of(url, model.model).items()
        )
        if known:
            findings.append(CheckResult(setting.setting, "ok", f"learned from calls: {known}"))
    return findings


def check_judge(settings: Settings, cache: CapabilityCache) -> CheckResult | None:
    """Return which model judges claims, or why none does; None if no model is configured."""
    evidence = settings.evidence
    by_type = dict(configured_models(settings))
    model = by_type.get(evidence.llm) or next(iter(by_type.values()), None)
    if model is None:
        return None
    objections = {one.model: _find_objection(cache, one, evidence.llm) for one in _with_fallbacks(model)}
    objection = next((f"{name}: {why}" for name, why in objections.items() if why), "")
    url = name_endpoint(model, f"models.{evidence.llm}", MODEL_PREFIXES[evidence.llm]).url
    measured = cache.judging_of(url, model.model)
    rates = f"; measured: {measured.describe()}" if measured else ""
    if evidence.judge == "off":
        return CheckResult("evidence.judge", "ok", f"off: rules alone judge the claims of reports{rates}")
    if evidence.judge == "on":
        status: CheckStatus = "warning" if objection else "ok"
        doubt = f"; {objection}" if objection else ""
        return CheckResult("evidence.judge", status, f"on: {model.model} judges claims{rates}{doubt}")
    if objection:
        remedy = "Measure it with labelled claims: maniple eval judge --set FOLDER" if not rates else ""
        detail = f"auto: no model judges claims. {objection}{rates}"
        return CheckResult("evidence.judge", "ok", detail, remedy)
    return CheckResult("evidence.judge", "ok", f"auto: {model.model} judges claims{rates}")


def _with_fallbacks(model: ModelSettings) -> Iterator[ModelSettings]:
    yield model
    for one in model.fallbacks:
        yield from _with_fallbacks(one)


def _find_objection(cache: CapabilityCache, model: ModelSettings, kind: LLMType) -> str:
    measured = cache.judging_of(name_endpoint(model, f"models.{kind}", "").url, model.model)
    return "it was not measured" if measured is None else measured.find_objection(name_prompt())


async def check_endpoint(model: ModelSettings, setting: EndpointSetting) -> CheckResult:
    """Request the list of models from one endpoint."""
    name = name_endpoint(model, setting.setting, setting.env_prefix)
    provider = provider_named(model.provider)
    if not provider.speaks_openai:
        return await _check_provider(provider, model, setting)
    try:
        client = await asyncio.to_thread(open_listing_client)
        async with asyncio.timeout(LISTING_SECONDS), client:
            response = await client.send(listing_request(client, model))
    except ConfigError as error:
        return CheckResult(setting.setting, setting.failure_status, str(error))
    except ResponseRefused as error:
        remedy = f"Check {name.name_of('base_url')}."
        return CheckResult(setting.setting, setting.failure_status, f"{name} {error}", remedy)
    except (httpx.HTTPError, TimeoutError) as error:
        remedy = f"Check {name.name_of('base_url')}, the network, and that the server is running."
        if proxy := await asyncio.to_thread(_describe_proxy, model):
            remedy = f"Correct or unset the proxy of {proxy}, or set NO_PROXY. {remedy}"
        return CheckResult(
            setting.setting,
            setting.failure_status,
            f"{name} is unreachable: {describe_connection_failure(error)}",
            remedy,
        )
    except UnicodeError:
        detail, remedy = "the key has characters that are not allowed", f"Correct {name.name_of('api_key')}."
        return CheckResult(setting.setting, setting.failure_status, detail, remedy)
    return _judge(name, setting, response)


async def _check_provider(provider: Provider, model: ModelSettings, setting: EndpointSetting) -> CheckResult:
    """Make the model of a provider; nothing is sent, because there is no common list of models."""
    try:
        await asyncio.to_thread(make_model, provider, model, setting.setting)
    except ConfigError as error:
        return CheckResult(setting.setting, setting.failure_status, str(error))
    detail = f"model {model.model!r} of {model.provider} is set up; `maniple doctor --probe` asks it"
    return CheckResult(setting.setting, "ok", detail)


def _judge(name: EndpointName, setting: EndpointSetting, response: httpx.Response) -> CheckResult:
    """Return the finding for a response; a list without the configured model is a warning."""
    status = response.status_code
    if status in (401, 403):
        detail = f"{name} rejects the API key (HTTP {status}, unauthorised)"
        return CheckResult(
            setting.setting, setting.failure_status, detail, f"Correct {name.name_of('api_key')}."
        )
    if status >= 500 or 300 <= status < 400:
        detail = f"{name} is reachable, but returned HTTP {status}"
        return CheckResult(setting.setting, "warning", detail, f"Check {name.name_of('base_url')}.")
    listed = read_model_names(response)
    if listed and name.model not in listed:
        shown = ", ".join(one[:_NAME_LENGTH] for one in listed[:_LISTED_NAMES])
        shown += ", …" if len(listed) > _LISTED_NAMES else ""
        detail = f"{name} is reachable, but does not list this model. It lists: {shown}"
        return CheckResult(setting.setting, "warning", detail, f"Check {name.name_of('model')}.")
    unlisted = "" if listed else "; it does not list its models"
    return CheckResult(setting.setting, "ok", f"{name} is reachable{unlisted}")


def _describe_proxy(model: ModelSettings) -> str:
    """Return the variable and the host of the proxy to an endpoint; "" without one."""
    return EnvironmentProxies.read().describe_for(base_url_of(model))


async def check_embedding(settings: Settings) -> Sequence[CheckResult]:
    """Ask the endpoint of `models.embedding` for the vector of one word; nothing without it."""
    own, folder = settings.models.embedding, settings.search.folder
    if own is None:
        return []
    if folder is None:
        detail = "it is not used: there is no folder whose documents it could find"
        return [CheckResult(_EMBEDDING, "ok", detail, "Set search.folder, or remove models.embedding.")]
    try:
        async with aclosing(EndpointEmbedder(own)) as embedder:
            vector = await embedder.embed_query("word")
    except (ModelError, ConfigError) as error:
        return [CheckResult(_EMBEDDING, "warning", f"{error} Documents are found by their words only.")]
    detail = f"{embedder} gives {len(vector):,} dimensions; the text of {folder} and questions are sent to it"
    return [CheckResult(_EMBEDDING, "ok", detail)]


async def check_local_model(settings: Settings) -> CheckResult | None:
    """Look for a model server on this machine, which is used if no endpoint is configured."""
    if not settings.embedded.discover or settings.embedded.model_file is not None:
        return None
    found = await find_local_server()
    if found is None:
        return None
    detail = f"{found.server} runs on this machine; {found.model} at {found.base_url} answers"
    return CheckResult("local server", "ok", detail)


_FALLBACKS: dict[Feature, str] = {
    "stream_usage": "tokens are not counted",
    "tools": "tools are described in the prompt, and calls are parsed from the text",
    "json_schema": "plans are requested as a tool call, a JSON object or text",
    "json_object": "plans are requested as text, and repaired",
    "vision": "pictures are not sent",
}


async def check_capabilities(settings: Settings, progress: Progress) -> list[CheckResult]:
    """Test each model that would answer with five short calls; the results are stored for a week."""
    findings = []
    try:
        async with open_models(settings, progress) as (models, _):
            for kind, model in models.by_type.items():
                async for found in probe(model):
                    name = f"models.{kind}: {found.feature}"
                    if found.works is None:
                        findings.append(CheckResult(name, "warning", f"unknown: {found.detail}"))
                    elif found.works:
                        findings.append(CheckResult(name, "ok", "works"))
                    else:
                        findings.append(
                            CheckResult(name, "warning", f"not supported: {_FALLBACKS[found.feature]}")
                        )
    except ManipleError as error:
        findings.append(CheckResult("models", "problem", str(error)))
    return findings
