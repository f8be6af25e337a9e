"""Asking a browser inside a sandbox, over HTTP."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.sandbox.answer import MAX_BYTES, Answer, read_answer
from maniple.browser.endpoint import require_endpoint
from maniple.config import BrowserSettings
from maniple.errors import BrowserError

if TYPE_CHECKING:
    import httpx

_PATH = "/api/automation"
# The server takes these as one bare value; OpenManus's tool sends them as objects, and gets 422.
_BARE = {"scroll_to_text": "text", "get_dropdown_options": "index", "extract_content": "goal"}
_UNSURE = "what was asked of it may have happened: look at the page before you go on."
_REMEDIES = {
    401: "Set MANIPLE_BROWSER__SANDBOX_TOKEN to the token of the sandbox; it changes with each start.",
    403: "Set MANIPLE_BROWSER__SANDBOX_TOKEN to the token of the sandbox; it changes with each start.",
    502: "Is the sandbox running?",
    503: "Is the sandbox running?",
    504: "Is the sandbox running?",
}


class NoSuchEndpointError(BrowserError):
    """The sandbox's API does not have it."""


class AutomationApi:
    """The API at `browser.sandbox_url`.

    Source: OpenManus's `SandboxBrowserTool`, and the server in the sandbox that it speaks to: JSON posted
    to `/api/automation/{endpoint}`; the answer tells what came of it, and the state of the page.

    Raises:
        ConfigError: that is no address.
    """

    def __init__(self, url: str, settings: BrowserSettings) -> None:
        base = require_endpoint("browser.sandbox_url", url, ("http", "https")).rstrip("/")
        self._base = base if base.endswith(_PATH) else base + _PATH
        self._token = settings.sandbox_token.get_secret_value() if settings.sandbox_token else None
        self._timeout_seconds = settings.timeout_seconds
        self._client: httpx.AsyncClient | None = None

    async def ask(self, endpoint: str, fields: Mapping[str, Any]) -> Answer:
        """Post `fields` and return the answer, also when it is that of a failure.

        Raises:
            NoSuchEndpointError: there is no such endpoint.
            BrowserError: no answer came, in time, or none that can be read.
        """
        import httpx

        try:
            async with asyncio.timeout(self._timeout_seconds):
                status, body = await self._post(endpoint, fields)
                if status == 422 and endpoint in _BARE:
                    status, body = await self._post(endpoint, fields[_BARE[endpoint]])
        except TimeoutError as error:
            raise BrowserError(
                f"The sandbox's browser did not answer within {self._timeout_seconds:g} s; {_UNSURE}"
            ) from error
        except httpx.ConnectError as error:
            raise BrowserError(
                "The sandbox's browser cannot be reached; nothing was done. "
                "Is the sandbox running, and is browser.sandbox_url its address?"
            ) from error
        except httpx.HTTPError as error:
            raise BrowserError(f"The sandbox's browser broke off its answer; {_UNSURE}") from error
        if status in (404, 405):
            raise NoSuchEndpointError(
                f"The sandbox's browser knows no {endpoint}; check browser.sandbox_url."
            )
        if status != 200:
            raise BrowserError(f"The sandbox answered HTTP {status}. {_REMEDIES.get(status, '')}".strip())
        return await asyncio.to_thread(read_answer, body)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, endpoint: str, content: Any) -> tuple[int, bytes]:
        client = await self._connected()
        body = bytearray()
        async with client.stream("POST", f"{self._base}/{endpoint}", json=content) as response:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_BYTES:
                    raise BrowserError(f"The sandbox's browser sent more than {MAX_BYTES // 1_000_000} MB.")
            return response.status_code, bytes(body)

    async def _connected(self) -> "httpx.AsyncClient":
        if self._client is None:
            client = await asyncio.to_thread(_new_client, self._token)
            self._client = self._client or client
        return self._client


def _new_client(token: str | None) -> "httpx.AsyncClient":
    # Blocks: certificates are read from disk.
    import httpx

    # Unpacked, a small answer can be a huge one.
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers |= {"Authorization": f"Bearer {token}", "X-Daytona-Preview-Token": token}
    return httpx.AsyncClient(headers=headers, timeout=None)
