"""Connecting to a checked address, directly or through the proxy that the settings name."""

import asyncio
from base64 import b64encode
from urllib.parse import urlsplit

from maniple.config import BrowserSettings
from maniple.egress import EgressDialer, Streams
from maniple.errors import ConfigError


def dial(settings: BrowserSettings) -> EgressDialer:
    """How to connect under `settings`.

    Raises:
        ConfigError: `browser.proxy_server` is not the address of an HTTP proxy.
    """
    if settings.proxy_server is None:
        return asyncio.open_connection
    proxy = urlsplit(settings.proxy_server)
    if proxy.scheme != "http" or not proxy.hostname:
        raise ConfigError("browser.proxy_server must be an HTTP proxy, such as http://proxy.example:3128.")
    host, port = proxy.hostname, proxy.port or 80

    async def through_proxy(address: str, target_port: int, /) -> Streams:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(_connect_request(settings, address, target_port))
            answer = await reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise ConnectionError("the proxy gave no answer") from error
        if answer.split()[1:2] != [b"200"]:
            writer.close()
            raise ConnectionError("the proxy refused the connection")
        return reader, writer

    return through_proxy


def _connect_request(settings: BrowserSettings, address: str, port: int) -> bytes:
    target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if settings.proxy_username:
        password = settings.proxy_password.get_secret_value() if settings.proxy_password else ""
        token = b64encode(f"{settings.proxy_username}:{password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {token}")
    return "\r\n".join([*lines, "", ""]).encode()
