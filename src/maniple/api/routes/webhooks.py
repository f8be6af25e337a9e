"""Webhooks: addresses that are told of the ends and the waits of runs."""

import time
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_location
from maniple.api.error_responses import error_responses
from maniple.api.state import ServiceOf
from maniple.runs import NotFound
from maniple.service import Service
from maniple.store import DeliveryState, ReportedStatus, Webhook, WebhookDelivery
from maniple.webhooks import derive_secret, make_webhook

router = keyed_router("webhooks")
_WebhookPath = Annotated[str, Path(max_length=100, description="The webhook")]
_DeliveryPath = Annotated[str, Path(max_length=100, description="The delivery")]
_Limit = Annotated[int, Query(ge=1, le=200, description="Most to return")]


class WebhookCreate(BaseModel):
    """The body of `POST /api/webhooks`."""

    url: str = Field(max_length=2_000, examples=["https://shop.example/hooks/maniple"])
    statuses: Annotated[list[ReportedStatus], Field(max_length=5)] = Field(
        default_factory=list[ReportedStatus], description="What is reported; empty: all."
    )


class WebhookView(BaseModel):
    """A webhook. `disabled` says why nothing is sent to it any more; "" while it is."""

    webhook_id: str
    url: str
    statuses: list[ReportedStatus]
    created_at: float
    disabled: str

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookView":
        """Return the view of a webhook, without its secret."""
        return cls(
            webhook_id=webhook.webhook_id,
            url=webhook.url,
            statuses=list(webhook.statuses),
            created_at=webhook.created_at,
            disabled=webhook.disabled,
        )


class NewWebhook(WebhookView):
    """A webhook that was just made, with the secret of its signatures, which is not shown again."""

    secret: str


class WebhookList(BaseModel):
    """The webhooks of a key."""

    webhooks: list[WebhookView]


class DeliveryView(BaseModel):
    """A message to a webhook. `next_at` is the time of the next attempt, null if there is none."""

    delivery_id: str
    run_id: str
    status: ReportedStatus
    at: float
    state: DeliveryState
    attempts: int
    next_at: float | None
    outcome: str

    @classmethod
    def of(cls, delivery: WebhookDelivery) -> "DeliveryView":
        """Return the view of a delivery."""
        names = ("delivery_id", "run_id", "status", "at", "state", "attempts", "outcome")
        next_at = delivery.next_at if delivery.state == "pending" else None
        return cls(**{name: getattr(delivery, name) for name in names}, next_at=next_at)


class DeliveryList(BaseModel):
    """The newest deliveries of a webhook."""

    deliveries: list[DeliveryView]


@router.post(
    "/api/webhooks",
    status_code=201,
    operation_id="make_webhook",
    summary="Make a webhook",
    responses={**describe_location(201, "the webhook"), **error_responses()},
)
async def make_new_webhook(
    ask: WebhookCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> NewWebhook:
    """Have each end of the key's runs, and each wait for a person, sent to an address, signed.

    The signatures are those of Standard Webhooks. The secret is returned once.
    """
    await service.webhook_targets.require_allowed(ask.url, caller.owner)
    webhook = make_webhook(caller.owner, ask.url, ask.statuses, time.time())
    await service.store.webhooks.add(webhook)
    response.headers["location"] = f"/api/webhooks/{webhook.webhook_id}"
    secret = derive_secret(service.webhook_key, webhook)
    return NewWebhook(**WebhookView.of(webhook).model_dump(), secret=secret)


@router.get("/api/webhooks", summary="List webhooks", responses=error_responses())
async def list_webhooks(service: ServiceOf, caller: CallerOf) -> WebhookList:
    """The key's webhooks, newest first."""
    found = await service.store.webhooks.list(caller.owner)
    return WebhookList(webhooks=[WebhookView.of(one) for one in found])


@router.get("/api/webhooks/{webhook_id}", summary="Read a webhook", responses=error_responses(404))
async def read_webhook(webhook_id: _WebhookPath, service: ServiceOf, caller: CallerOf) -> WebhookView:
    """Return a webhook, without its secret."""
    return WebhookView.of(await _find(service, webhook_id, caller.owner))


@router.delete(
    "/api/webhooks/{webhook_id}",
    status_code=204,
    summary="Delete a webhook",
    response_class=Response,
    responses=error_responses(404),
)
async def delete_webhook(webhook_id: _WebhookPath, service: ServiceOf, caller: CallerOf) -> None:
    """Delete a webhook with its deliveries, also those that wait."""
    if not await service.store.webhooks.delete(webhook_id, caller.owner):
        raise NotFound("The webhook does not exist.")


@router.get(
    "/api/webhooks/{webhook_id}/deliveries", summary="List deliveries", responses=error_responses(404)
)
async def list_deliveries(
    webhook_id: _WebhookPath, service: ServiceOf, caller: CallerOf, limit: _Limit = 50
) -> DeliveryList:
    """The newest deliveries of a webhook, newest first, with the outcome of their last attempt."""
    webhook = await _find(service, webhook_id, caller.owner)
    found = await service.store.webhooks.list_deliveries(webhook.webhook_id, limit)
    return DeliveryList(deliveries=[DeliveryView.of(one) for one in found])


@router.post(
    "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=204,
    summary="Send a delivery again",
    response_class=Response,
    responses=error_responses(404),
)
async def redeliver(
    webhook_id: _WebhookPath, delivery_id: _DeliveryPath, service: ServiceOf, caller: CallerOf
) -> None:
    """Send the same message again, with the same id; a webhook that was disabled is enabled."""
    webhook = await _find(service, webhook_id, caller.owner)
    if not await service.store.webhooks.redeliver(webhook.webhook_id, delivery_id, time.time()):
        raise NotFound("The delivery does not exist.")
    if webhook.disabled:
        await service.store.webhooks.disable(webhook.webhook_id, "")


async def _find(service: Service, webhook_id: str, owner: str) -> Webhook:
    webhook = await service.store.webhooks.get(webhook_id, owner)
    if webhook is None:
        raise NotFound("The webhook does not exist.")
    return webhook
