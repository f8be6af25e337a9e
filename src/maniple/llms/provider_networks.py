"""How the clients of providers reach a company's network: its proxies, NO_PROXY and certificate authorities.

Each client reads the environment in a way of its own: google-genai leaves out SOCKS and ALL_PROXY, ollama
networks in NO_PROXY, boto3 all of them and SSL_CERT_FILE; only anthropic's reads all. So they are given what
the team's own clients use. A class that a user names gets nothing: its arguments are not known.
"""

import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
from langchain_core.language_models import BaseChatModel

from maniple.config.model_providers import PROVIDERS, Provider
from maniple.egress.certificates import tls_context
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.egress.upstream import UpstreamProxy
from maniple.errors import ConfigError
from maniple.types import is_dict

_BUNDLE_VARIABLES = ("AWS_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""The variables that name a file of authorities; boto3's own one, and the one of the team, come first."""


def network_arguments(provider: Provider) -> dict[str, Any]:
    """Return what the constructor of a provider's chat model is given. Blocks: it reads certificates.

    Raises `ConfigError` if the environment names a proxy or certificates that cannot be used.
    """
    arguments = _ARGUMENTS.get(provider.path)
    return arguments() if arguments is not None else {}


def merge_arguments(network: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return both; what the user has chosen counts, also within an argument that is a `dict`."""
    merged = {**network, **chosen}
    for name, ours in network.items():
        if is_dict(ours) and is_dict(theirs := chosen.get(name)):
            kept = {key: value for key, value in ours.items() if key != "transport" or "proxy" not in theirs}
            merged[name] = {**kept, **theirs}
    return merged


def route_client(provider: Provider, model: BaseChatModel, setting: str) -> None:
    """Let a model's client use the environment's network where its constructor takes no arguments for it.

    `setting` is the path of the model's settings. Raises `ConfigError` for a proxy that it cannot use.
    """
    if provider.path == PROVIDERS["bedrock"].path:
        _route_boto(getattr(model, "client", None), setting)


class _GeminiTransport(EnvironmentTransport, httpx2.AsyncBaseTransport):
    """google-genai gives it to a client without asyncio as well, which the team never uses."""

    def close(self) -> None:
        """Do nothing."""


def _gemini_arguments() -> dict[str, Any]:
    context = tls_context()
    proxies = EnvironmentProxies.read()
    # Its own transport, aiohttp, is the fastest one; `ssl` is how that takes the authorities.
    own: dict[str, Any] = {"ssl": context, "verify": context}
    if proxies.by_scheme:
        own["transport"] = _GeminiTransport(httpx2, context, proxies=proxies)
    return {"client_args": own}


def _ollama_arguments() -> dict[str, Any]:
    return {"async_client_kwargs": {"transport": EnvironmentTransport(httpx)}}


_ARGUMENTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    PROVIDERS["gemini"].path: _gemini_arguments,
    PROVIDERS["ollama"].path: _ollama_arguments,
}


def _route_boto(client: Any, setting: str) -> None:
    """Send the requests of a client of boto3 through a session that knows the network."""
    from botocore.httpsession import URLLib3Session

    config, url = client.meta.config, urlsplit(client.meta.endpoint_url)
    found, proxies = EnvironmentProxies.read(), config.proxies
    if proxies is None:
        address = found.find(url.scheme, url.hostname or "", url.port)
        proxies = {} if address is None else {url.scheme: address}
        if address and not UpstreamProxy.parse(address, found.variables[url.scheme]).forwards:
            raise ConfigError(
                f"{setting}: boto3 speaks to no SOCKS proxy, which {found.describe(url.scheme)} is. Name an "
                f"HTTP proxy in {url.scheme.upper()}_PROXY, or the host {url.hostname} in NO_PROXY."
            )
    bundle = _authorities_of_boto()
    session = URLLib3Session(
        verify=bundle or True,  # pyright: ignore[reportArgumentType] - a file, too
        proxies=proxies,
        timeout=(config.connect_timeout, config.read_timeout),
        max_pool_connections=config.max_pool_connections,
        client_cert=config.client_cert,
        proxies_config=config.proxies_config or ({"proxy_ca_bundle": bundle} if bundle else None),
    )
    client.meta.events.register(
        f"before-send.{client.meta.service_model.service_id.hyphenize()}",
        lambda request, **_: session.send(request),
        unique_id="maniple-network",
    )


def _authorities_of_boto() -> str | None:
    """Return the file with the authorities; None for those that botocore brings."""
    named = (os.environ.get(name) for name in _BUNDLE_VARIABLES)  # noqa: TID251 - others'
    return next(filter(None, named), None) or ssl.get_default_verify_paths().cafile
