"""The addresses of webhooks, which the guard must allow."""

import secrets
from collections.abc import Sequence
from typing import get_args
from urllib.parse import urlsplit
from uuid import uuid4

from maniple.egress import AddressGuard
from maniple.errors import FetchError, ManipleError
from maniple.store import ReportedStatus, Webhook, WebhookTable

MAX_WEBHOOKS = 20
"""How many webhooks one API key may have."""
MAX_URL_CHARACTERS = 2_000
_PORTS = {"http": 80, "https": 443}


class InvalidWebhook(ManipleError):
    """A webhook cannot be made; the message has the reason and the remedy."""

    code = "invalid_webhook"


class WebhookTargets:
    """Checks the address of a new webhook."""

    def __init__(self, webhooks: WebhookTable, guard: AddressGuard) -> None:
        self._webhooks = webhooks
        self._guard = guard

    async def require_allowed(self, url: str, owner: str) -> None:
        """Raise `InvalidWebhook` for an address that is not to be called, or above `MAX_WEBHOOKS`."""
        if len(await self._webhooks.list(owner)) >= MAX_WEBHOOKS:
            raise InvalidWebhook(f"There are {MAX_WEBHOOKS} webhooks, which is the limit. Remove one first.")
        host, port = _split_address(url)
        try:
            await self._guard.resolve(host, port)
        except FetchError as error:
            raise InvalidWebhook(
                f"{error} To allow a private network, name it in fetch.allow_private."
            ) from error


def make_webhook(owner: str, url: str, statuses: Sequence[ReportedStatus], now: float) -> Webhook:
    """Return the record of a new webhook; without statuses, it reports all of them."""
    chosen = tuple(one for one in get_args(ReportedStatus) if one in statuses or not statuses)
    return Webhook(str(uuid4()), owner, url, chosen, secrets.token_urlsafe(16), now)


def _split_address(url: str) -> tuple[str, int]:
    """Return the host and the port of a web address; raises `InvalidWebhook`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidWebhook(f"{url[:200]} is no valid address: {error}.") from error
    if parts.scheme not in _PORTS or not host or len(url) > MAX_URL_CHARACTERS or not url.isprintable():
        raise InvalidWebhook(f"{url[:200]} is no web address. It begins with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise InvalidWebhook("The address holds a user name or password. The signature takes their place.")
    return host, port or _PORTS[parts.scheme]
