"""`maniple webhook`: addresses that the server tells of the ends and the waits of runs."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.store import ReportedStatus, Store, Webhook

webhooks = typer.Typer(
    name="webhook", no_args_is_help=True, help="Have the server report the ends of runs to an address."
)
_IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The webhook's id, or its beginning.", show_default=False)
]


@webhooks.command("add")
def add_webhook(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address to send to.", show_default=False)],
    on: Annotated[
        str, typer.Option(help="Statuses to report, with commas.  [default: all]", show_default=False)
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Add a webhook for the runs of the terminal's owner, and print its secret.

    \b
    Examples:
      maniple webhook add https://shop.example/hooks/maniple
      maniple webhook add --on completed,failed https://shop.example/hooks/maniple

    \b
    Statuses: completed, failed, cancelled, budget_exhausted, interrupted (waits for a person).
    Messages are signed as Standard Webhooks has it; the secret is not shown again. Runs of API
    keys are reported to webhooks that were made with the same key, at POST /api/webhooks. A
    private network has to be named in fetch.allow_private.

    \b
    Exit status: 0 added, 1 it cannot be stored, 2 wrong usage, settings or address.
    """
    from maniple.store import ReportedStatus

    wanted = [one.strip() for one in on.split(",") if one.strip()]
    known: Sequence[ReportedStatus] = get_args(ReportedStatus)
    if unknown := [one for one in wanted if one not in known]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}.", param_hint="--on")
    finish(_add(read_settings(config), url, [one for one in known if one in wanted]))


@webhooks.command("list")
def list_webhooks(config: ConfigOption = None) -> None:
    """List the webhooks, without their secrets.

    \b
    Examples:
      maniple webhook list

    \b
    Exit status: 0 listed, even if there are none, 1 they cannot be read, 2 wrong settings.
    """
    finish(_list(read_settings(config)))


@webhooks.command("remove")
def remove_webhook(webhook: _IdArgument, config: ConfigOption = None) -> None:
    """Remove a webhook, with what waits to be sent to it.

    \b
    Examples:
      maniple webhook remove 1a2b3c4d

    \b
    Exit status: 0 removed, 1 it cannot be stored, 2 there is no such webhook, or wrong settings.
    """
    finish(_remove(read_settings(config), webhook))


@webhooks.command("deliveries")
def list_deliveries(
    webhook: _IdArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most deliveries.")] = 20,
    config: ConfigOption = None,
) -> None:
    """List what was sent to a webhook, newest first, with the outcome of the last attempt.

    \b
    Examples:
      maniple webhook deliveries 1a2b3c4d

    \b
    Exit status: 0 listed, 1 they cannot be read, 2 there is no such webhook, or wrong settings.
    """
    finish(_list_deliveries(read_settings(config), webhook, limit))


@webhooks.command("redeliver")
def redeliver(
    webhook: _IdArgument,
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="Id of the delivery.")],
    config: ConfigOption = None,
) -> None:
    """Have the server send a delivery again, with the same id.

    \b
    Examples:
      maniple webhook redeliver 1a2b3c4d msg_0a1b2c3d4e5f

    \b
    Exit status: 0 it will be sent, 1 it cannot be stored, 2 there is no such delivery.
    """
    finish(_redeliver(read_settings(config), webhook, delivery))


async def _add(settings: "Settings", url: str, statuses: Sequence["ReportedStatus"]) -> int:
    from maniple.cli.process import WrongUsage
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import TERMINAL_OWNER, open_database
    from maniple.egress import AddressGuard
    from maniple.webhooks import (
        InvalidWebhook,
        WebhookTargets,
        derive_secret,
        load_webhook_key,
        make_webhook,
    )

    key = await asyncio.to_thread(load_webhook_key, settings.data_dir)
    guard = AddressGuard(settings.fetch)
    async with open_database(settings) as store:
        try:
            await WebhookTargets(store.webhooks, guard).require_allowed(url, TERMINAL_OWNER)
        except InvalidWebhook as error:
            raise WrongUsage(str(error)) from error
        webhook = make_webhook(TERMINAL_OWNER, url, statuses, time.time())
        await store.webhooks.add(webhook)
    note = f"Added webhook {webhook.webhook_id[:8]}. Copy its secret now; it is not shown again:"
    Consoles.of_this_process().note(note)
    print(derive_secret(key, webhook))
    return 0


async def _list(settings: "Settings") -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import TERMINAL_OWNER, open_database
    from maniple.cli.text import clean

    async with open_database(settings) as store:
        found = await store.webhooks.list(TERMINAL_OWNER)
    for one in found:
        state = f"disabled: {one.disabled}" if one.disabled else ", ".join(one.statuses)
        print(clean(f"{one.webhook_id[:8]}  {one.url}  {state}"))
    if not found:
        Consoles.of_this_process().note("There are no webhooks. Add one with maniple webhook add URL.")
    return 0


async def _remove(settings: "Settings", name: str) -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import open_database

    async with open_database(settings) as store:
        webhook = await _find(store, name)
        await store.webhooks.delete(webhook.webhook_id, webhook.owner)
    Consoles.of_this_process().note(f"Webhook {webhook.webhook_id[:8]} is removed.")
    return 0


async def _list_deliveries(settings: "Settings", name: str, limit: int) -> int:
    from maniple.cli.store_admin import open_database
    from maniple.cli.text import clean, time_ago

    async with open_database(settings) as store:
        webhook = await _find(store, name)
        found = await store.webhooks.list_deliveries(webhook.webhook_id, limit)
    now = time.time()
    for one in found:
        outcome = one.outcome or "not sent yet"
        tries = f"{one.state} ({one.attempts} attempts)"
        about = f"{one.status}  run {one.run_id}  {time_ago(now - one.at)}"
        print(clean(f"{one.delivery_id}  {about}  {tries}  {outcome}"))
    return 0


async def _redeliver(settings: "Settings", name: str, delivery: str) -> int:
    from maniple.cli.process import WrongUsage
    from maniple.cli.render import Consoles
    from maniple.cli.store_admin import open_database

    async with open_database(settings) as store:
        webhook = await _find(store, name)
        if not await store.webhooks.redeliver(webhook.webhook_id, delivery, time.time()):
            raise WrongUsage(f"There is no delivery {delivery!r}. List them with maniple webhook deliveries.")
        if webhook.disabled:
            await store.webhooks.disable(webhook.webhook_id, "")
    Consoles.of_this_process().note("The server sends it again.")
    return 0


async def _find(store: "Store", name: str) -> "Webhook":
    from maniple.cli.process import WrongUsage
    from maniple.cli.store_admin import TERMINAL_OWNER

    found = [
        one for one in await store.webhooks.list(TERMINAL_OWNER) if name and one.webhook_id.startswith(name)
    ]
    if len(found) != 1:
        problem = f"{len(found)} webhooks begin with" if found else "There is no webhook"
        raise WrongUsage(f"{problem} {name!r}. List them with maniple webhook list.")
    return found[0]
