"""`maniple keys`: who may use the service."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.store import ApiKey, KeyLimits, Store

NOBODY = (
    "Every key is revoked: a server lets nobody in. maniple keys add NAME makes a new one; "
    "maniple keys forget serves without keys again."
)

keys = typer.Typer(name="keys", no_args_is_help=True, help="API keys of the HTTP service.")


@keys.command("add")
def add_key(  # noqa: PLR0913 - typer reads the options from the signature
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, in your words.")],
    max_runs: Annotated[int | None, typer.Option(min=1, help="Runs at once.")] = None,
    daily_model_calls: Annotated[int | None, typer.Option(min=0, help="In any 24 hours.")] = None,
    daily_tool_calls: Annotated[int | None, typer.Option(min=0, help="In any 24 hours.")] = None,
    daily_tokens: Annotated[int | None, typer.Option(min=0, help="In any 24 hours.")] = None,
    daily_seconds: Annotated[float | None, typer.Option(min=0, help="Of work, in any 24 hours.")] = None,
    daily_cost: Annotated[float | None, typer.Option(min=0, help="In any 24 hours.")] = None,
    config: ConfigOption = None,
) -> None:
    """Make a key and print its secret, which is shown only now.

    \b
    Examples:
      maniple keys add alice
      maniple keys add batch --max-runs 2 --daily-tokens 1000000
      curl -H "X-API-Key: $(maniple keys add alice)" …

    \b
    A server that runs takes it at once. Where it is kept: store.path in conf.yaml or .env.

    \b
    Exit status: 0 made, 1 it could not be stored, 2 wrong usage or settings.
    """
    from maniple.store import KeyLimits

    limits = KeyLimits(max_runs, daily_model_calls, daily_tool_calls, daily_tokens, daily_seconds, daily_cost)
    finish(_add(read_settings(config), name, limits))


@keys.command("list")
def list_keys(config: ConfigOption = None) -> None:
    """List the keys, without their secrets.

    \b
    Examples:
      maniple keys list

    \b
    Exit status: 0 listed, 1 they cannot be read, 2 wrong settings (conf.yaml, .env).
    """
    finish(_list(read_settings(config)))


@keys.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As listed; its beginning is enough.")],
    config: ConfigOption = None,
) -> None:
    """Make a key useless, at once and for good; what it began goes on.

    When none is left, the server lets nobody in until one is made (keys add) or the
    revoked ones are forgotten (keys forget).

    \b
    Examples:
      maniple keys revoke 1a2b3c4d

    \b
    Exit status: 0 revoked, 1 it cannot be stored, 2 no such key, or wrong settings
    (conf.yaml, .env).
    """
    finish(_revoke(read_settings(config), key_id))


@keys.command("forget")
def forget_keys(config: ConfigOption = None) -> None:
    """Forget the revoked keys, to serve without keys again.

    Only when none is valid. What their owners kept stays, and is no client's any more.

    \b
    Examples:
      maniple keys forget

    \b
    Exit status: 0 forgotten, 1 it cannot be stored, 2 a key is valid, or wrong settings
    (conf.yaml, .env).
    """
    finish(_forget(read_settings(config)))


async def _add(settings: "Settings", name: str, limits: "KeyLimits") -> int:
    from maniple.cli.keeping import open_kept
    from maniple.cli.screens import Screens

    async with open_kept(settings) as store:
        key, secret = await store.keys.add(name, limits)
    screens = Screens.of_this_process()
    if limits.daily_cost is not None and (unpriced := settings.models.unpriced):
        screens.note(f"Its daily cost counts nothing of {', '.join(unpriced)}: set models.*.price_input.")
    screens.note(
        f"Key {key.key_id[:8]} for {key.name}. This is its secret; it is kept nowhere, so copy it now:"
    )
    print(secret)
    return 0


async def _list(settings: "Settings") -> int:
    from maniple.cli.keeping import open_kept
    from maniple.cli.screens import Screens
    from maniple.cli.untrusted import clean

    async with open_kept(settings) as store:
        found = await store.keys.list()
    for key in found:
        print(clean(_line(key)))
    if not found:
        Screens.of_this_process().note("There are no keys: maniple keys add NAME makes one.")
    return 0


async def _revoke(settings: "Settings", key_id: str) -> int:
    from maniple.cli.keeping import open_kept
    from maniple.cli.screens import Screens
    from maniple.store import valid_keys

    async with open_kept(settings) as store:
        key = await _found(store, key_id)
        done = await store.keys.revoke(key.key_id)
        left = await valid_keys(store.keys)
    words = "is revoked" if done else "was revoked before"
    screens = Screens.of_this_process()
    screens.note(f"Key {key.key_id[:8]} of {key.name} {words}.")
    if not left:
        screens.note(NOBODY)
    return 0


async def _forget(settings: "Settings") -> int:
    from maniple.cli.ending import WrongUsage
    from maniple.cli.keeping import open_kept
    from maniple.cli.screens import Screens
    from maniple.cli.words import counted
    from maniple.store import valid_keys

    async with open_kept(settings) as store:
        forgotten = await store.keys.forget()
        left = await valid_keys(store.keys)
    if left:
        raise WrongUsage(f"{counted(left, 'key')} can still be used. Revoke first: maniple keys revoke ID.")
    Screens.of_this_process().note(
        f"{counted(forgotten, 'revoked key')} forgotten. A server on this machine needs no key now."
    )
    return 0


async def _found(store: "Store", key_id: str) -> "ApiKey":
    from maniple.cli.ending import WrongUsage

    found = [key for key in await store.keys.list() if key_id and key.key_id.startswith(key_id)]
    if len(found) != 1:
        many = f"{len(found)} keys begin with" if found else "There is no key"
        raise WrongUsage(f"{many} {key_id!r}. maniple keys list shows them.")
    return found[0]


def _line(key: "ApiKey") -> str:
    from maniple.cli.words import one_line, time_ago

    now = time.time()
    state = f"revoked {time_ago(now - key.revoked_at)}" if key.revoked_at else "valid"
    limits = ", ".join(_limits(key.limits))
    made = time_ago(now - key.created_at)
    return (
        f"{key.key_id[:8]}  {one_line(key.name, 40)}  {state}, made {made}{f'; {limits}' if limits else ''}"
    )


def _limits(limits: "KeyLimits") -> Iterator[str]:
    from dataclasses import asdict

    for name, value in asdict(limits).items():
        if value is not None:
            yield f"{name.replace('_', ' ')} {value:,}"
