"""Checks of the models: which one answers, and whether it can be reached."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from maniple.cli.doctor.checks import Finding, Status
from maniple.config import ModelSettings, Settings
from maniple.config.sources import MODEL_PREFIXES
from maniple.errors import ManipleError
from maniple.llms.capabilities import Feature
from maniple.llms.embedded import Progress, find_local_server
from maniple.llms.failures import OPENAI_URL, EndpointName
from maniple.llms.models import AZURE_API_VERSION
from maniple.llms.probe import probe
from maniple.runtime.answering import open_models
from maniple.types import LLM_TYPES, LLMType

_ENDPOINT_SECONDS = 5.0
_LISTED_NAMES = 5


def configured(settings: Settings) -> list[tuple[LLMType, ModelSettings]]:
    """Return the configured model types; the first of them answers."""
    models: list[tuple[LLMType, ModelSettings | None]] = [
        (kind, getattr(settings.models, kind)) for kind in LLM_TYPES
    ]
    return [(kind, model) for kind, model in models if model is not None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an endpoint stands in the settings. A `vital` one has nothing to take its place.

    `env_prefix` is empty for a fallback, which has no variables.
    """

    setting: str
    env_prefix: str
    vital: bool = True

    @property
    def failure(self) -> Status:
        """How bad it is when the endpoint does not answer."""
        return "problem" if self.vital else "warning"


async def check_endpoints(settings: Settings) -> list[Finding]:
    """Ask every configured endpoint for its models."""
    return list(await asyncio.gather(*(check_endpoint(*one) for one in _endpoints(settings))))


def _endpoints(settings: Settings) -> Iterator[tuple[ModelSettings, Place]]:
    for number, (kind, model) in enumerate(configured(settings)):
        setting, prefix = f"models.{kind}", MODEL_PREFIXES[kind]
        yield model, Place(setting, prefix, vital=number == 0 and not model.fallbacks)
        for position, spare in enumerate(model.fallbacks):
            yield spare, Place(f"{setting}.fallbacks[{position}]", "", vital=False)


async def check_endpoint(model: ModelSettings, place: Place) -> Finding:
    """Ask one endpoint for its models."""
    name = EndpointName.of(model.model, model.base_url, place.setting, place.env_prefix)
    try:
        async with asyncio.timeout(_ENDPOINT_SECONDS), httpx.AsyncClient(timeout=_ENDPOINT_SECONDS) as client:
            response = await client.send(_listing(client, model))
    except (httpx.HTTPError, TimeoutError) as error:
        remedy = f"Check {name.name_of('base_url')}, the network, and that the server runs."
        return Finding(
            place.setting, place.failure, f"{name} is unreachable: {_connection_failure(error)}", remedy
        )
    except UnicodeError:
        detail, remedy = "the key has characters that no key has", f"Correct {name.name_of('api_key')}."
        return Finding(place.setting, place.failure, detail, remedy)
    return _judge(name, place, response)


def _judge(name: EndpointName, place: Place, response: httpx.Response) -> Finding:
    """Say what an answer means; a list of models that lacks this one is worth a warning."""
    status = response.status_code
    if status in (401, 403):
        detail = f"{name} is unauthorised: it refuses the key (HTTP {status})"
        return Finding(place.setting, place.failure, detail, f"Correct {name.name_of('api_key')}.")
    if status >= 500 or 300 <= status < 400:
        detail = f"{name} is reachable but answers HTTP {status}"
        return Finding(place.setting, "warning", detail, f"Check {name.name_of('base_url')}.")
    listed = _model_names(response)
    if listed and name.model not in listed:
        shown = ", ".join(listed[:_LISTED_NAMES]) + (", …" if len(listed) > _LISTED_NAMES else "")
        detail = f"{name} is reachable, but this model is not among those it lists: {shown}"
        return Finding(place.setting, "warning", detail, f"Check {name.name_of('model')}.")
    unlisted = "" if listed else "; it does not list its models"
    return Finding(place.setting, "ok", f"{name} is reachable{unlisted}")


def _listing(client: httpx.AsyncClient, model: ModelSettings) -> httpx.Request:
    """Return the request for the list of models."""
    key = model.api_key.get_secret_value() if model.api_key else "not-needed"
    base = (model.base_url or OPENAI_URL).rstrip("/")
    if model.provider == "azure":
        version = {"api-version": model.api_version or AZURE_API_VERSION}
        return client.build_request("GET", f"{base}/openai/models", params=version, headers={"api-key": key})
    return client.build_request("GET", f"{base}/models", headers={"authorization": f"Bearer {key}"})


def _model_names(response: httpx.Response) -> list[str]:
    try:
        listing = response.json()
    except ValueError:
        return []
    models = listing.get("data") if isinstance(listing, dict) else None
    return [str(model["id"]) for model in models or () if isinstance(model, dict) and "id" in model]


def _connection_failure(error: Exception) -> str:
    """Return the reason in words that hold neither key nor password."""
    match error:
        case TimeoutError() | httpx.TimeoutException():
            return f"no answer in {_ENDPOINT_SECONDS:.0f} s"
        case httpx.ConnectError():
            return "no connection"
        case httpx.UnsupportedProtocol():
            return "the URL begins with neither http:// nor https://"
        case _:
            return f"the answer breaks off ({type(error).__name__})"


async def check_local_model(settings: Settings) -> Finding | None:
    """Look for a model server on this machine, which answers when no endpoint is configured."""
    if not settings.embedded.discover or settings.embedded.model_file is not None:
        return None
    found = await find_local_server()
    if found is None:
        return None
    where = f"{found.server} runs on this machine"
    return Finding("local server", "ok", f"{where}: {found.model} at {found.base_url} answers")


_FALLBACKS: dict[Feature, str] = {
    "stream_usage": "tokens are not counted",
    "tools": "tools are described in the prompt, and calls are read from the text",
    "json_schema": "plans are asked for by a tool call, as a JSON object or in text",
    "json_object": "plans are asked for in text and repaired",
    "vision": "pictures are left out",
}


async def check_capabilities(settings: Settings, progress: Progress) -> list[Finding]:
    """Ask the models that would answer five short questions each; what is found is remembered for a week."""
    findings = []
    try:
        async with open_models(settings, progress) as (models, _):
            for kind, model in models.by_type.items():
                async for found in probe(model):
                    name = f"models.{kind}: {found.feature}"
                    if found.works is None:
                        findings.append(Finding(name, "warning", f"not found out: {found.words}"))
                    elif found.works:
                        findings.append(Finding(name, "ok", "works"))
                    else:
                        findings.append(Finding(name, "warning", f"missing, so {_FALLBACKS[found.feature]}"))
    except ManipleError as error:
        findings.append(Finding("models", "problem", str(error)))
    return findings
