"""The HTTP API of a browser in a sandbox. Responses are untrusted: a page shown there may write them."""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maniple.browser.arguments import require_endpoint
from maniple.browser.listing import sanitize_text
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    import httpx

_PATH = "/api/automation"
# The server takes these as one bare value; OpenManus's tool sends objects, and gets 422.
_BARE = {"scroll_to_text": "text", "get_dropdown_options": "index", "extract_content": "goal"}
_MAY_HAVE_HAPPENED = "what was asked of it may have happened: look at the page before you go on."
_REMEDIES = {
    401: "Set MANIPLE_BROWSER__SANDBOX_TOKEN to the token of the sandbox; it changes with each start.",
    403: "Set MANIPLE_BROWSER__SANDBOX_TOKEN to the token of the sandbox; it changes with each start.",
    502: "Is the sandbox running?",
    503: "Is the sandbox running?",
    504: "Is the sandbox running?",
}
MAX_BYTES = 16_000_000
"""The limit of a response: ten times the size of a screenshot."""
_MAX_CONTROLS = 3_000
_MAX_NAME_CHARACTERS = 120
_MAX_ADDRESS_CHARACTERS = 2_000
_MAX_CONTENT_CHARACTERS = 200_000
_MAX_PIXELS = 10_000_000
_JPEG = b"\xff\xd8\xff"

# A line of the API's list of controls for a model, such as `[3]<input type="text"> Name </>`.
_LINE = re.compile(r"\[(\d{1,6})\]<([a-zA-Z][\w-]{0,30})([^>]{0,2000})>(.*)")
_ATTRIBUTE = re.compile(r'([\w-]{1,30})="([^"]{0,500})"')
_ATTRIBUTES = ("type", "role", "placeholder", "alt", "title", "name", "id", "href", "src")
_NAME_ATTRIBUTES = ("placeholder", "alt", "title", "name", "id")


@dataclass(frozen=True, slots=True)
class SandboxControl:
    """A control as the API describes it."""

    index: int
    tag: str
    text: str
    in_view: bool
    attributes: tuple[tuple[str, str], ...]

    @property
    def is_password(self) -> bool:
        """Whether it is a password field."""
        return ("type", "password") in self.attributes

    @property
    def role(self) -> str:
        """Its role, such as `button` or `input email`."""
        attributes = dict(self.attributes)
        kind = attributes.get("type", "") if self.tag == "input" else ""
        role = attributes.get("role") or f"{self.tag} {kind}"
        return re.sub(r"[^\w -]", "", role).strip()[:40] or "element"

    @property
    def name(self) -> str:
        """Its text, except for a password field; else an attribute that names it; else ""."""
        attributes = dict(self.attributes)
        text = "" if self.is_password else self.text
        return text or next((attributes[key] for key in _NAME_ATTRIBUTES if attributes.get(key)), "")


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response; that of a failure often has a message only."""

    success: bool
    message: str
    url: str
    """The address of the page; "" when the response has no state of a page."""
    title: str
    controls: tuple[SandboxControl, ...]
    pixels_above: int
    pixels_below: int
    viewport_height: int
    content: str
    screenshot: bytes | None


def parse_response(body: bytes) -> ApiResponse:
    """Parse the body of a response. Takes long for a large body: call it in a thread.

    Raises:
        BrowserError: it is not the JSON of such a response.
    """
    try:
        data = fix_surrogates(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise BrowserError("The sandbox's browser sent an answer that cannot be read; try again.") from error
    if not isinstance(data, dict) or not isinstance(data.get("success"), bool):
        raise BrowserError("What answered is no browser of a sandbox; check browser.sandbox_url.")
    return ApiResponse(
        success=data["success"],
        message=_line(data.get("message") or data.get("error"), 500),
        url=_address(data.get("url")),
        title=_line(data.get("title"), 500),
        controls=tuple(_controls(data)),
        pixels_above=_pixels(data.get("pixels_above")),
        pixels_below=_pixels(data.get("pixels_below")),
        viewport_height=_pixels(data.get("viewport_height")),
        content=_text(data.get("content"))[:_MAX_CONTENT_CHARACTERS],
        screenshot=_picture(_text(data.get("screenshot_base64"))),
    )


def _controls(data: Mapping[str, Any]) -> Iterator[SandboxControl]:
    rows = data.get("interactive_elements")
    if isinstance(rows, list):
        found = (_parse_row(row) for row in rows[:_MAX_CONTROLS] if isinstance(row, dict))
    else:
        lines = _text(data.get("elements")).splitlines()[:_MAX_CONTROLS]
        found = (_parse_line(line) for line in lines)
    seen: set[int] = set()
    for control in found:
        if control is not None and control.index not in seen:
            seen.add(control.index)
            yield control


def _parse_row(row: Mapping[str, Any]) -> SandboxControl | None:
    index = row.get("index")
    if type(index) is not int or not 0 <= index < 1_000_000:
        return None
    attributes = tuple((key, _line(row[key], 500)) for key in _ATTRIBUTES if row.get(key))
    tag = re.sub(r"[^a-z0-9-]", "", _line(row.get("tag_name"), 30).lower())
    text = _line(row.get("text"), _MAX_NAME_CHARACTERS)
    return SandboxControl(index, tag or "element", text, row.get("is_in_viewport") is not False, attributes)


def _parse_line(line: str) -> SandboxControl | None:
    if (match := _LINE.match(line.strip())) is None:
        return None
    index, tag, attributes, text = match.groups()
    values = {key: _line(value, 500) for key, value in _ATTRIBUTE.findall(attributes)}
    name = _line(text.removesuffix("</>"), _MAX_NAME_CHARACTERS)
    return SandboxControl(
        int(index), tag.lower(), name, True, tuple((key, values[key]) for key in _ATTRIBUTES if key in values)
    )


def _picture(encoded: str) -> bytes | None:
    try:
        picture = base64.b64decode(encoded.partition("base64,")[2] or encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return picture if picture.startswith(_JPEG) else None


def _line(value: Any, longest: int) -> str:
    return sanitize_text(_text(value), longest)


def _address(value: Any) -> str:
    address = _text(value)[:_MAX_ADDRESS_CHARACTERS]
    return "".join(one for one in address if one.isprintable() and one != " ")


def _pixels(value: Any) -> int:
    if not isinstance(value, int | float) or not 0 <= value <= _MAX_PIXELS:
        return 0
    return int(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class NoSuchEndpointError(BrowserError):
    """The sandbox's API does not have the endpoint."""


class AutomationApi:
    """The API at `browser.sandbox_url`.

    Source: OpenManus's `SandboxBrowserTool` and the server in the sandbox: JSON is posted to
    `/api/automation/{endpoint}`; the response has the result and the state of the page.

    Raises:
        ConfigError: `url` is no valid address.
    """

    def __init__(self, url: str, settings: BrowserSettings) -> None:
        base = require_endpoint("browser.sandbox_url", url, ("http", "https")).rstrip("/")
        self._base = base if base.endswith(_PATH) else base + _PATH
        self._token = settings.sandbox_token.get_secret_value() if settings.sandbox_token else None
        self._timeout_seconds = settings.timeout_seconds
        self._client: httpx.AsyncClient | None = None

    async def ask(self, endpoint: str, fields: Mapping[str, Any]) -> ApiResponse:
        """Post `fields` and return the response, also that of a failure.

        Raises:
            NoSuchEndpointError: there is no such endpoint.
            BrowserError: no response came in time, or it cannot be parsed.
        """
        import httpx

        try:
            async with asyncio.timeout(self._timeout_seconds):
                status, body = await self._post(endpoint, fields)
                if status == 422 and endpoint in _BARE:
                    status, body = await self._post(endpoint, fields[_BARE[endpoint]])
        except TimeoutError as error:
            raise BrowserError(
                f"The sandbox's browser did not answer within {self._timeout_seconds:g} s; "
                f"{_MAY_HAVE_HAPPENED}"
            ) from error
        except httpx.ConnectError as error:
            raise BrowserError(
                "The sandbox's browser cannot be reached; nothing was done. "
                "Is the sandbox running, and is browser.sandbox_url its address?"
            ) from error
        except httpx.HTTPError as error:
            raise BrowserError(f"The sandbox's browser broke off its answer; {_MAY_HAVE_HAPPENED}") from error
        if status in (404, 405):
            raise NoSuchEndpointError(
                f"The sandbox's browser knows no {endpoint}; check browser.sandbox_url."
            )
        if status != 200:
            raise BrowserError(f"The sandbox answered HTTP {status}. {_REMEDIES.get(status, '')}".strip())
        return await asyncio.to_thread(parse_response, body)

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
    # Blocks while certificates are read from disk.
    import httpx

    # A small compressed response could be huge when unpacked.
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers |= {"Authorization": f"Bearer {token}", "X-Daytona-Preview-Token": token}
    return httpx.AsyncClient(headers=headers, timeout=None)
