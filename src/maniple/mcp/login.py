"""Logging in to a server as a person (OAuth): what was given is kept, refreshed, and shown to nobody."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from maniple.config.mcp_settings import prefix_of
from maniple.errors import McpError
from maniple.redaction import Redactor

_MOST_BYTES = 1_000_000
_NOWHERE = "http://127.0.0.1/callback"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who logs in now: is shown an address, and comes back at `callback`."""

    callback: str
    show: Callable[[str], Awaitable[None]]
    come_back: Callable[[], Awaitable[AuthorizationCodeResult]]


class _Kept(BaseModel):
    """What a login came to; it counts for the address that it was made for, and for no other."""

    url: str
    tokens: OAuthToken
    expires_at: float | None
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None
    resource: ProtectedResourceMetadata | None


class Login(OAuthClientProvider):
    """The login at one server: without a `person` the one that is kept in `file`, with one a new one.

    `is_needed` is set when the server does not take what is kept. A program that runs by itself then asks
    nobody and nothing: where a server says that one should log in may be anywhere.
    """

    def __init__(self, name: str, url: str, file: Path, person: Person | None = None) -> None:
        metadata = OAuthClientMetadata(
            client_name="maniple",
            redirect_uris=[AnyUrl(person.callback if person else _NOWHERE)],
            token_endpoint_auth_method="none",
        )
        shows, comes = (person.show, person.come_back) if person else (None, None)
        super().__init__(url, metadata, _Storage(self), shows, comes)
        self._name, self._url, self._file, self._person = name, url, file, person
        self.is_needed = False

    @property
    def words(self) -> str:
        """What is to be done when a login is needed."""
        return f"it wants you to log in: maniple mcp login {self._name}"

    @property
    def redactor(self) -> Redactor:
        """What masks that which was given, in what the server says."""
        tokens, client = self.context.current_tokens, self.context.client_info
        given = [tokens.access_token, tokens.refresh_token] if tokens else []
        given += [client.client_secret] if client else []
        return Redactor(filter(None, given))

    async def load(self) -> None:
        """Take what is kept; raises `McpError` where that is nothing."""
        kept = await asyncio.to_thread(self._read)
        if kept is None:
            self.is_needed = True
            raise McpError(self.words)
        context = self.context
        context.current_tokens, context.client_info = kept.tokens, kept.client
        context.token_expiry_time = kept.expires_at
        context.oauth_metadata, context.protected_resource_metadata = kept.metadata, kept.resource

    async def save(self) -> None:
        """Keep what is known by now; raises `McpError` when that cannot be written."""
        context = self.context
        if context.current_tokens is None or context.client_info is None:
            return
        kept = _Kept(
            url=self._url,
            tokens=context.current_tokens,
            expires_at=context.token_expiry_time,
            client=context.client_info,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
        )
        await asyncio.to_thread(self._write, kept)

    async def _initialize(self) -> None:
        # The SDK's own forgets when the tokens end, and where they are refreshed.
        if self._person is None:
            await self.load()
        self._initialized = True

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if self._person is None and outgoing is request and _is_refused(response):
                    self.is_needed = True
                    raise McpError(self.words)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _read(self) -> _Kept | None:
        try:
            with self._file.open("rb") as file:
                kept = _Kept.model_validate_json(file.read(_MOST_BYTES))
        except (OSError, ValidationError):
            return None
        return kept if kept.url == self._url else None

    def _write(self, kept: _Kept) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # For its owner alone from its first moment on.
            descriptor, name = tempfile.mkstemp(prefix=".login-", dir=self._file.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(kept.model_dump_json())
            Path(name).replace(self._file)
        except OSError as error:
            raise McpError(f"{self._file} cannot be written: {error.strerror}") from error


class _Storage:
    """Where the SDK puts what it was given; it is all kept together, when there are tokens."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def get_tokens(self) -> OAuthToken | None:
        return self._login.context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await self._login.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._login.context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Logins:
    """The folder with a file for each server that a person logged in to."""

    folder: Path

    def of(self, name: str, url: str, person: Person | None = None) -> Login:
        """Return the login at a server."""
        return Login(name, url, self.folder / f"{prefix_of(name)}.json", person)


def _is_refused(response: Any) -> bool:
    wants = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in wants)
