"""Sends the deliveries of webhooks: each at least once, with retries, signed."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus

import httpx

from maniple.background import background_task
from maniple.errors import FetchError, ManipleError
from maniple.store import WebhookDelivery, WebhookTable
from maniple.webhooks.signing import derive_secret, sign_message

LOOK_SECONDS = 1.0
"""How often due deliveries are looked for."""
ATTEMPT_SECONDS = 15.0
"""How long an endpoint may take to answer."""
CLAIM_SECONDS = 60.0
"""When an attempt whose process was killed is made again."""
RETRY_SECONDS = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""The pauses after failed attempts, those that the specification recommends; then the delivery has failed."""
RETENTION_SECONDS = 30 * 86_400.0
"""How long deliveries are shown."""
_PARALLEL = 100
"""How many attempts are under way at a time, at most."""
_PARALLEL_OF_WEBHOOK = 5
"""How many of them are to one webhook: an address that does not answer holds up no others."""
_SWEEP_SECONDS = 3_600.0
_MAX_OUTCOME_CHARACTERS = 300
_LOG = logging.getLogger(__name__)


class WebhookSender:
    """Makes due attempts. `client` reaches allowed addresses only; `clock` returns Unix seconds."""

    def __init__(
        self,
        webhooks: WebhookTable,
        client: httpx.AsyncClient,
        key: bytes,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._webhooks = webhooks
        self._client = client
        self._key = key
        self._clock = clock
        self._swept_at = float("-inf")
        self._under_way: dict[asyncio.Task[None], WebhookDelivery] = {}

    async def send_due(self) -> None:
        """Make the attempts that are due now, and wait for their ends; raises `StoreError`."""
        await self.begin_due()
        while self._under_way:
            await self.wait()
            await self.begin_due()

    async def begin_due(self) -> None:
        """Begin the attempts that are due and have room; raises `StoreError`."""
        now = self._clock()
        while await self._begin_some(now):
            pass
        if now - self._swept_at > _SWEEP_SECONDS:
            self._swept_at = now
            await self._webhooks.delete_settled(now - RETENTION_SECONDS)

    async def _begin_some(self, now: float) -> bool:
        """Begin some attempts to webhooks with room; return whether there were any."""
        counts = Counter(one.webhook_id for one in self._under_way.values())
        busy = [webhook_id for webhook_id, count in counts.items() if count >= _PARALLEL_OF_WEBHOOK]
        begun = {one.delivery_id for one in self._under_way.values()}
        has_begun = False
        for delivery in await self._webhooks.list_due(now, _PARALLEL, busy):
            has_room = len(self._under_way) < _PARALLEL and counts[delivery.webhook_id] < _PARALLEL_OF_WEBHOOK
            if has_room and delivery.delivery_id not in begun:
                counts[delivery.webhook_id] += 1
                self._under_way[asyncio.create_task(self._attempt(delivery))] = delivery
                has_begun = True
        return has_begun

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until an attempt has ended, `seconds` at most; raises what it has raised."""
        if not self._under_way:
            await asyncio.sleep(seconds or 0.0)
            return
        ended, _ = await asyncio.wait(self._under_way, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for attempt in ended:
            del self._under_way[attempt]
        for error in [attempt.exception() for attempt in ended]:
            if error is not None:
                raise error

    async def close(self) -> None:
        """Break off the attempts under way, which another process makes again."""
        for attempt in self._under_way:
            attempt.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _attempt(self, delivery: WebhookDelivery) -> None:
        webhook = await self._webhooks.get(delivery.webhook_id, None)
        if webhook is None or not await self._webhooks.claim(delivery, self._clock() + CLAIM_SECONDS):
            return
        if webhook.disabled:
            await self._webhooks.settle(delivery.delivery_id, "failed", delivery.next_at, webhook.disabled)
            return
        status, outcome = await self._send(webhook.url, derive_secret(self._key, webhook), delivery)
        now = self._clock()
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            await self._webhooks.settle(delivery.delivery_id, "delivered", now, outcome)
        elif status == HTTPStatus.GONE:
            await self._webhooks.disable(webhook.webhook_id, "The address answered 410 (Gone).")
            await self._webhooks.settle(delivery.delivery_id, "failed", now, outcome)
        elif delivery.attempts < len(RETRY_SECONDS):
            pause = RETRY_SECONDS[delivery.attempts]
            await self._webhooks.settle(delivery.delivery_id, "pending", now + pause, outcome)
        else:
            await self._webhooks.settle(delivery.delivery_id, "failed", now, outcome)
            _LOG.warning("Webhook %s was not reached: %s", webhook.webhook_id, outcome)

    async def _send(self, url: str, secret: str, delivery: WebhookDelivery) -> tuple[int, str]:
        """Return the status of the answer, 0 without one, and a description of it."""
        body, timestamp = make_body(delivery), int(self._clock())
        headers = {
            "content-type": "application/json",
            "webhook-id": delivery.delivery_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign_message(secret, delivery.delivery_id, timestamp, body),
        }
        try:
            async with (
                asyncio.timeout(ATTEMPT_SECONDS),
                self._client.stream("POST", url, content=body, headers=headers) as response,
            ):
                return response.status_code, f"HTTP {response.status_code} {response.reason_phrase}".strip()
        except TimeoutError:
            return 0, f"No answer within {ATTEMPT_SECONDS:.0f} s"
        except (httpx.HTTPError, httpx.InvalidURL, FetchError, OSError, UnicodeError) as error:
            return 0, (str(error) or type(error).__name__)[:_MAX_OUTCOME_CHARACTERS]


def make_body(delivery: WebhookDelivery) -> bytes:
    """Return the message of a delivery as JSON: the same bytes at each attempt."""
    kind = "waiting" if delivery.status == "interrupted" else delivery.status
    data = {
        "run_id": delivery.run_id,
        "thread_id": delivery.thread_id,
        "status": delivery.status,
        "error_code": delivery.error_code,
    }
    at = datetime.fromtimestamp(delivery.at, UTC).isoformat(timespec="milliseconds")
    return json.dumps({"type": f"run.{kind}", "timestamp": at, "data": data}).encode()


@asynccontextmanager
async def open_webhook_sender(
    webhooks: WebhookTable, transport: httpx.AsyncBaseTransport, key: bytes
) -> AsyncGenerator[WebhookSender]:
    """Send due deliveries until the end of the block, through a transport that checks each address."""
    async with httpx.AsyncClient(
        transport=transport, follow_redirects=False, timeout=ATTEMPT_SECONDS
    ) as client:
        sender = WebhookSender(webhooks, client, key)
        try:
            async with background_task(_send_on(sender), "webhooks"):
                yield sender
        finally:
            await sender.close()


async def _send_on(sender: WebhookSender) -> None:
    while True:
        try:
            await sender.begin_due()
            await sender.wait(LOOK_SECONDS)
            continue
        except ManipleError as error:
            _LOG.warning("Webhooks could not be sent: %s", error)
        except Exception:  # noqa: BLE001 - the others are sent until the program ends
            _LOG.exception("A webhook could not be sent; it is tried again.")
        await asyncio.sleep(LOOK_SECONDS)
