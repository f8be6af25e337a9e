"""Webhooks and their deliveries, as every database stores them.

A trigger of the database stores a delivery in the transaction that ends a run or lets it wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from maniple.store.statements import Statements, column_names, column_value, conditions, insert_sql

DeliveryState = Literal["pending", "delivered", "failed"]
ReportedStatus = Literal["completed", "failed", "cancelled", "budget_exhausted", "interrupted"]
"""The statuses that webhooks report; `interrupted` is a wait for a person."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that is sent a message when one of the owner's runs gets one of `statuses`.

    `disabled` says why it is not sent anything any more; "" while it is.
    """

    webhook_id: str
    owner: str
    url: str
    statuses: tuple[ReportedStatus, ...]
    salt: str
    created_at: float
    disabled: str = ""


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A message for a webhook: that a run got `status` at the time `at`.

    `attempts` were made; the next one is at `next_at` while it is pending. `outcome` describes the last one.
    """

    delivery_id: str
    webhook_id: str
    run_id: str
    thread_id: str
    status: ReportedStatus
    error_code: str | None
    at: float
    state: DeliveryState
    attempts: int
    next_at: float
    outcome: str


class WebhookTable(Protocol):
    """Webhooks, each with its deliveries."""

    async def add(self, webhook: Webhook) -> None:
        """Store a new webhook."""
        ...

    async def get(self, webhook_id: str, owner: str | None) -> Webhook | None:
        """Return a webhook of this owner; None stands for any owner."""
        ...

    async def list(self, owner: str) -> Sequence[Webhook]:
        """Return the owner's webhooks, newest first."""
        ...

    async def disable(self, webhook_id: str, reason: str) -> None:
        """Store no more deliveries for a webhook; "" stores them again."""
        ...

    async def delete(self, webhook_id: str, owner: str) -> bool:
        """Delete a webhook with its deliveries; return whether it existed."""
        ...

    async def list_due(
        self, now: float, limit: int, without: Sequence[str] = ()
    ) -> Sequence[WebhookDelivery]:
        """Return pending deliveries whose next attempt is due, the oldest first.

        Those to the webhooks `without` are left out.
        """
        ...

    async def claim(self, delivery: WebhookDelivery, until: float) -> bool:
        """Count an attempt, which ends before the time `until`; return False if another process makes it."""
        ...

    async def settle(self, delivery_id: str, state: DeliveryState, next_at: float, outcome: str) -> None:
        """Store what became of an attempt."""
        ...

    async def list_deliveries(self, webhook_id: str, limit: int = 50) -> Sequence[WebhookDelivery]:
        """Return the newest deliveries of a webhook, newest first."""
        ...

    async def redeliver(self, webhook_id: str, delivery_id: str, now: float) -> bool:
        """Make a delivery pending again, with all its attempts; return whether it exists."""
        ...

    async def delete_settled(self, before: float) -> None:
        """Delete deliveries of before this time that are not pending."""
        ...


_COLUMNS = column_names(Webhook)
_SELECTED = ", ".join(_COLUMNS)
_DELIVERIES = ", ".join(column_names(WebhookDelivery))


class SqlWebhooks:
    """See `WebhookTable`."""

    def __init__(self, database: Statements) -> None:
        self._database = database

    async def add(self, webhook: Webhook) -> None:
        values = {name: column_value(getattr(webhook, name)) for name in _COLUMNS}
        values["statuses"] = "".join(f",{one}" for one in webhook.statuses) + ","
        await self._database.execute(insert_sql("webhooks", _COLUMNS), list(values.values()))

    async def get(self, webhook_id: str, owner: str | None) -> Webhook | None:
        where, values = conditions({"webhook_id = ?": webhook_id, "owner = ?": owner})
        rows = await self._database.fetch(f"SELECT {_SELECTED} FROM webhooks {where}", values)
        return _make_webhook(*rows[0]) if rows else None

    async def list(self, owner: str) -> Sequence[Webhook]:
        sql = f"SELECT {_SELECTED} FROM webhooks WHERE owner = ? ORDER BY position DESC"
        return [_make_webhook(*row) for row in await self._database.fetch(sql, (owner,))]

    async def disable(self, webhook_id: str, reason: str) -> None:
        sql = "UPDATE webhooks SET disabled = ? WHERE webhook_id = ?"
        await self._database.execute(sql, (column_value(reason), webhook_id))

    async def delete(self, webhook_id: str, owner: str) -> bool:
        sql = "DELETE FROM webhooks WHERE webhook_id = ? AND owner = ? RETURNING 1"
        return bool(await self._database.execute(sql, (webhook_id, owner)))

    async def list_due(
        self, now: float, limit: int, without: Sequence[str] = ()
    ) -> Sequence[WebhookDelivery]:
        others = f"AND webhook_id NOT IN ({', '.join('?' * len(without))}) " if without else ""
        due = f"state = 'pending' AND next_at <= ? {others}ORDER BY next_at, position LIMIT ?"
        sql = f"SELECT {_DELIVERIES} FROM webhook_deliveries WHERE {due}"
        return [WebhookDelivery(*row) for row in await self._database.fetch(sql, (now, *without, limit))]

    async def claim(self, delivery: WebhookDelivery, until: float) -> bool:
        sql = (
            "UPDATE webhook_deliveries SET attempts = attempts + 1, next_at = ? "
            "WHERE delivery_id = ? AND state = 'pending' AND next_at = ? RETURNING 1"
        )
        return bool(await self._database.execute(sql, (until, delivery.delivery_id, delivery.next_at)))

    async def settle(self, delivery_id: str, state: DeliveryState, next_at: float, outcome: str) -> None:
        sql = "UPDATE webhook_deliveries SET state = ?, next_at = ?, outcome = ? WHERE delivery_id = ?"
        await self._database.execute(sql, (state, next_at, column_value(outcome), delivery_id))

    async def list_deliveries(self, webhook_id: str, limit: int = 50) -> Sequence[WebhookDelivery]:
        newest = "WHERE webhook_id = ? ORDER BY position DESC LIMIT ?"
        sql = f"SELECT {_DELIVERIES} FROM webhook_deliveries {newest}"
        return [WebhookDelivery(*row) for row in await self._database.fetch(sql, (webhook_id, limit))]

    async def redeliver(self, webhook_id: str, delivery_id: str, now: float) -> bool:
        sql = (
            "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_at = ? "
            "WHERE webhook_id = ? AND delivery_id = ? RETURNING 1"
        )
        return bool(await self._database.execute(sql, (now, webhook_id, delivery_id)))

    async def delete_settled(self, before: float) -> None:
        sql = "DELETE FROM webhook_deliveries WHERE state <> 'pending' AND at < ?"
        await self._database.execute(sql, (before,))


def _make_webhook(*row: Any) -> Webhook:
    named: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    statuses: str = named["statuses"]
    named["statuses"] = tuple(one for one in statuses.split(",") if one)
    return Webhook(**named)
