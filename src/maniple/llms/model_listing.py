"""The list of models that an OpenAI-compatible endpoint has."""

import asyncio

import httpx

from maniple.config import ModelSettings
from maniple.config.model_providers import provider_named
from maniple.config.secrets import NO_KEY
from maniple.egress.bounded_responses import ACCEPT_ENCODING, ResponseBounds, ResponseRefused, response_hook
from maniple.egress.certificates import describe_certificate_failure
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.llms.models import AZURE_API_VERSION
from maniple.llms.providers import base_url_of

LISTING_SECONDS = 5.0
_BOUNDS = ResponseBounds(max_bytes=4_000_000, max_stream_bytes=4_000_000)


async def list_models(model: ModelSettings) -> list[str]:
    """Return the names of the models that an endpoint lists; none if it lists none or does not answer.

    Raises `ConfigError` if the settings of the endpoint cannot be used.
    """
    if not provider_named(model.provider).speaks_openai:
        return []
    try:
        client = await asyncio.to_thread(open_listing_client)
        async with asyncio.timeout(LISTING_SECONDS), client:
            response = await client.send(listing_request(client, model))
    except (ResponseRefused, httpx.HTTPError, TimeoutError, UnicodeError):
        return []
    return read_model_names(response) if response.is_success else []


def open_listing_client() -> httpx.AsyncClient:
    """Return a client over the proxies of the environment, whose responses are bounded. Blocks on disk."""
    return httpx.AsyncClient(
        transport=EnvironmentTransport(httpx),  # pyright: ignore[reportArgumentType] - it has its methods
        timeout=LISTING_SECONDS,
        headers={"Accept-Encoding": ACCEPT_ENCODING},
        event_hooks={"response": [response_hook(httpx.AsyncByteStream, _BOUNDS)]},
    )


def listing_request(client: httpx.AsyncClient, model: ModelSettings) -> httpx.Request:
    """Return the request for the list of models."""
    key = model.api_key.get_secret_value() if model.api_key else NO_KEY
    base = base_url_of(model).rstrip("/")
    if model.provider == "azure":
        version = {"api-version": model.api_version or AZURE_API_VERSION}
        return client.build_request("GET", f"{base}/openai/models", params=version, headers={"api-key": key})
    return client.build_request("GET", f"{base}/models", headers={"authorization": f"Bearer {key}"})


def read_model_names(response: httpx.Response) -> list[str]:
    """Return the names in the list of an endpoint; none for any other response."""
    try:
        listing = response.json()
    except (ValueError, RecursionError):
        return []
    models = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(models, list):
        return []
    return [str(model["id"]) for model in models if isinstance(model, dict) and "id" in model]


def describe_connection_failure(error: Exception) -> str:
    """Return the reason without any key or password."""
    match error:
        case TimeoutError() | httpx.TimeoutException():
            return f"no answer in {LISTING_SECONDS:.0f} s"
        case httpx.ConnectError():
            return describe_certificate_failure(error) or "no connection"
        case httpx.UnsupportedProtocol():
            return "the URL does not begin with http:// or https://"
        case _:
            return f"the response is not valid HTTP ({type(error).__name__})"
