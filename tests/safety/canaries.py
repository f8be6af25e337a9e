"""A secret of its own in every setting that can hold one, and the ways in which it may be found again."""

import base64
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from pydantic import BaseModel, SecretStr

from maniple.config import Settings
from tests.environment import environment

CANARIES = {
    name: f"Canary{number:02}{name}Zq7x{number * 7919}"
    for number, name in enumerate(
        (
            *("Basic", "BasicUrl", "Spare", "SpareUrl", "Reasoning", "Vision", "Embedding", "HubUrl"),
            *("Tavily", "TavilyUrl", "Brave", "SearxngUrl", "Jina", "Proxy", "ProxyUrl"),
            *("OtlpBearer", "OtlpPlain", "OtlpUrl", "LangSmith", "LangSmithUrl"),
            *("Daytona", "DaytonaUrl", "DockerUrl", "E2b", "StoreUrl"),
            *("BrowserToken", "BrowserUrl", "CdpUrl"),
            *("McpArgument", "McpVariable", "McpUrl", "McpHeader", "McpClient"),
            *("SecretKey", "FormerKey"),
        )
    )
}
# As passwords are: what JSON, URLs and HTML write in another way.
CANARIES["Proxy"] = 'Canary "Proxy"\\päss/wörd&<Zq7x>'

for _name in ("SecretKey", "FormerKey"):  # 32 bytes in base64
    CANARIES[_name] = CANARIES[_name].ljust(43, "A") + "="


def configured(model_url: str, site_url: str, home: Path) -> dict[str, str]:
    """Write `conf.yaml` into `home`; return the environment. Each half holds a part of the canaries."""
    spare = {
        "model": "spare",
        "base_url": _with_user(model_url, "SpareUrl"),
        "api_key": CANARIES["Spare"],
        "max_retries": 0,
    }
    written = {
        "models": {
            "basic": {"fallbacks": [spare], "max_retries": 0},
            "vision": {"model": "seeing", "base_url": model_url, "api_key": CANARIES["Vision"]},
            "embedding": {"model": "near", "base_url": model_url, "api_key": CANARIES["Embedding"]},
        },
        "search": {"tavily_base_url": _with_user(site_url, "TavilyUrl")},
        "fetch": {"allow_private": ["127.0.0.0/8"], "jina_api_key": CANARIES["Jina"]},
        "browser": {
            "proxy_server": _with_user("http://127.0.0.1:9", "ProxyUrl"),
            "proxy_username": "somebody",
            "proxy_password": CANARIES["Proxy"],
            "sandbox_url": _with_user("http://127.0.0.1:9", "BrowserUrl"),
            "sandbox_token": CANARIES["BrowserToken"],
            "cdp_url": _with_user("http://127.0.0.1:9", "CdpUrl"),
        },
        "secret_key": CANARIES["SecretKey"],
        "former_secret_key": CANARIES["FormerKey"],
        "store": {"url": _with_user("postgresql://127.0.0.1:9/team", "StoreUrl")},
        "embedded": {"hub_url": f"{site_url}/?token={CANARIES['HubUrl']}"},
        "mcpServers": {
            "program": {
                "command": "/nowhere/server",
                "args": ["--key", "${MCP_ARGUMENT}"],
                "env": {"SERVER_TOKEN": CANARIES["McpVariable"]},
            },
            "address": {
                "url": "${MCP_URL}",
                "headers": {"Authorization": f"Bearer {CANARIES['McpHeader']}"},
                "oauth": {"issuer": site_url, "client_id": "team", "client_secret": CANARIES["McpClient"]},
            },
        },
        "runs": {"approval": ["bash_tool"]},
        "sandbox": {"docker_host": _with_user("tcp://127.0.0.1:9", "DockerUrl")},
        "logging": {"level": "DEBUG", "format": "json"},
        "telemetry": {
            "otlp_endpoint": _with_user(site_url, "OtlpUrl"),
            "otlp_headers": {
                "authorization": f"Bearer {CANARIES['OtlpBearer']}",
                "x-tenant": CANARIES["OtlpPlain"],
            },
            "contents": True,
            "langsmith": {"endpoint": _with_user(site_url, "LangSmithUrl")},
        },
    }
    (home / "conf.yaml").write_text(json.dumps(written), encoding="utf-8")
    return environment(
        _with_user(model_url, "BasicUrl"),
        home,
        BASIC_API_KEY=CANARIES["Basic"],
        REASONING_MODEL="deep",
        REASONING_BASE_URL=model_url,
        REASONING_API_KEY=CANARIES["Reasoning"],
        TAVILY_API_KEY=CANARIES["Tavily"],
        BRAVE_API_KEY=CANARIES["Brave"],
        SEARXNG_URL=_with_user(site_url, "SearxngUrl"),
        MANIPLE_SEARCH__PROVIDERS="tavily",
        LANGSMITH_API_KEY=CANARIES["LangSmith"],
        DAYTONA_API_KEY=CANARIES["Daytona"],
        DAYTONA_API_URL=_with_user(site_url, "DaytonaUrl"),
        E2B_API_KEY=CANARIES["E2b"],
        MCP_ARGUMENT=CANARIES["McpArgument"],
        MCP_URL=_with_user(site_url, "McpUrl"),
    )


def _with_user(url: str, name: str) -> str:
    return url.replace("://", f"://somebody:{CANARIES[name]}@")


def secret_settings(model: type[BaseModel] = Settings, above: str = "") -> Iterator[str]:
    """Yield the name of every setting that is a secret by its type, such as `models.basic.api_key`."""
    for name, field in model.model_fields.items():
        for kind in _kinds(field.annotation):
            if kind is SecretStr:
                yield f"{above}{name}"
            elif issubclass(kind, BaseModel) and kind is not model:
                yield from secret_settings(kind, f"{above}{name}.")


def _kinds(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inside in get_args(annotation):
        yield from _kinds(inside)


def value_at(settings: BaseModel, name: str) -> str:
    """Return the text of the secret called `name`; of a mapping, all of them."""
    values: list[Any] = [settings]
    for part in name.split("."):
        values = [inner for value in values for inner in _ones(getattr(value, part))]
    return " ".join(one.get_secret_value() if isinstance(one, SecretStr) else str(one) for one in values)


def _ones(value: Any) -> list[Any]:
    """Return what a setting has in it, be it one thing, a list or a mapping."""
    if isinstance(value, dict | tuple):
        return list(value.values() if isinstance(value, dict) else value)
    return [] if value is None else [value]


def found_in(content: bytes | str) -> set[str]:
    """Return the names of the canaries that `content` holds in any spelling."""
    data = content.encode() if isinstance(content, str) else content
    return {name for name, secret in CANARIES.items() if any(one in data for one in _spellings(secret))}


def _spellings(secret: str) -> Iterator[bytes]:
    once = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    for text in (
        secret,
        once,
        plain,
        json.dumps(once)[1:-1],
        quote(secret),
        html.escape(secret),
        repr(secret)[1:-1],
    ):
        yield text.encode()
    # A user's name and password, as Basic authentication sends them.
    yield base64.b64encode(f"somebody:{secret}".encode()).rstrip(b"=")[:-1]
