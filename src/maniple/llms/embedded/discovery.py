"""Model servers that already run on this machine."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from maniple.egress.bounded_responses import ACCEPT_ENCODING, ResponseBounds, ResponseRefused, response_hook

USUAL_PORTS: tuple[tuple[str, int], ...] = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080))
"""Programs and their default loopback ports, in order of preference."""

_NOT_CHAT = re.compile(
    r"embed|rerank|bge-|\bgte-|\be5-|minilm|whisper|\btts\b|stable-diffusion", re.IGNORECASE
)
_BOUNDS = ResponseBounds(max_bytes=1_000_000, max_stream_bytes=1_000_000)


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """An OpenAI-compatible server on this machine.

    `base_url` ends in `/v1`; `server` is the program's name for the user, such as `Ollama`;
    `context_tokens` is the window of one request, or None if the server does not report it.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    server: str
    context_tokens: int | None = None


async def find_local_server(
    timeout_seconds: float = 1.0, ports: Sequence[tuple[str, int]] = USUAL_PORTS
) -> LocalEndpoint | None:
    """Return the first of `ports` whose server lists a chat model, with its first chat model; None if there
    is none.

    All ports are tried concurrently, within `timeout_seconds` in total. Other programs on these ports, and
    servers that require a key, are skipped. Only `GET` requests are sent.
    """
    async with httpx.AsyncClient(
        trust_env=False,
        timeout=timeout_seconds,
        headers={"Accept-Encoding": ACCEPT_ENCODING},
        event_hooks={"response": [response_hook(httpx.AsyncByteStream, _BOUNDS)]},
    ) as client:
        attempts = [
            asyncio.create_task(_ask(client, server, port, timeout_seconds)) for server, port in ports
        ]
        try:
            for answer in attempts:
                if endpoint := await answer:
                    return endpoint
        finally:
            for answer in attempts:
                answer.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)
    return None


async def _ask(
    client: httpx.AsyncClient, server: str, port: int, timeout_seconds: float
) -> LocalEndpoint | None:
    root = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(timeout_seconds):
            model = _chat_model(await _get_json(client, f"{root}/v1/models"))
            if model is None:
                return None
            # llama.cpp lists its models without a key, but needs it for the properties, which have the
            # window.
            properties = await _get_json(client, f"{root}/props")
    except (TimeoutError, httpx.HTTPError, PermissionError, ResponseRefused):
        return None
    return LocalEndpoint(f"{root}/v1", "none", model, server, _window(properties))


async def _get_json(client: httpx.AsyncClient, url: str) -> object:
    """Return the JSON body of a 200 response, else None; raises `PermissionError` if a key is required."""
    async with client.stream("GET", url) as response:
        if response.status_code in {401, 403}:
            raise PermissionError(url)
        if response.status_code != 200:
            return None
        body = await response.aread()
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _chat_model(listing: object) -> str | None:
    models = listing.get("data") if isinstance(listing, dict) else None
    for model in models if isinstance(models, list) else []:
        name = model.get("id") if isinstance(model, dict) else None
        if isinstance(name, str) and name and not _NOT_CHAT.search(name):
            return name
    return None


def _window(properties: object) -> int | None:
    defaults = properties.get("default_generation_settings") if isinstance(properties, dict) else None
    window = defaults.get("n_ctx") if isinstance(defaults, dict) else None
    return window if isinstance(window, int) and not isinstance(window, bool) and window > 0 else None
