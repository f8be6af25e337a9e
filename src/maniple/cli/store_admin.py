"""`maniple keys` and `maniple db`: API keys, and the database of conversations and runs."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.store import ApiKey, KeyLimits, Store

NO_VALID_KEY = (
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
    from maniple.cli.render import Screens

    async with open_database(settings) as store:
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
    from maniple.cli.render import Screens
    from maniple.cli.text import clean

    async with open_database(settings) as store:
        found = await store.keys.list()
    for key in found:
        print(clean(_key_line(key)))
    if not found:
        Screens.of_this_process().note("There are no keys: maniple keys add NAME makes one.")
    return 0


async def _revoke(settings: "Settings", key_id: str) -> int:
    from maniple.cli.render import Screens
    from maniple.store import valid_keys

    async with open_database(settings) as store:
        key = await _find_key(store, key_id)
        done = await store.keys.revoke(key.key_id)
        left = await valid_keys(store.keys)
    words = "is revoked" if done else "was revoked before"
    screens = Screens.of_this_process()
    screens.note(f"Key {key.key_id[:8]} of {key.name} {words}.")
    if not left:
        screens.note(NO_VALID_KEY)
    return 0


async def _forget(settings: "Settings") -> int:
    from maniple.cli.exit_status import WrongUsage
    from maniple.cli.render import Screens
    from maniple.cli.text import counted
    from maniple.store import valid_keys

    async with open_database(settings) as store:
        forgotten = await store.keys.forget()
        left = await valid_keys(store.keys)
    if left:
        raise WrongUsage(f"{counted(left, 'key')} can still be used. Revoke first: maniple keys revoke ID.")
    Screens.of_this_process().note(
        f"{counted(forgotten, 'revoked key')} forgotten. A server on this machine needs no key now."
    )
    return 0


async def _find_key(store: "Store", key_id: str) -> "ApiKey":
    from maniple.cli.exit_status import WrongUsage

    found = [key for key in await store.keys.list() if key_id and key.key_id.startswith(key_id)]
    if len(found) != 1:
        many = f"{len(found)} keys begin with" if found else "There is no key"
        raise WrongUsage(f"{many} {key_id!r}. maniple keys list shows them.")
    return found[0]


def _key_line(key: "ApiKey") -> str:
    from maniple.cli.text import one_line, time_ago

    now = time.time()
    state = f"revoked {time_ago(now - key.revoked_at)}" if key.revoked_at else "valid"
    limits = ", ".join(_limit_texts(key.limits))
    made = time_ago(now - key.created_at)
    return (
        f"{key.key_id[:8]}  {one_line(key.name, 40)}  {state}, made {made}{f'; {limits}' if limits else ''}"
    )


def _limit_texts(limits: "KeyLimits") -> Iterator[str]:
    from dataclasses import asdict

    for name, value in asdict(limits).items():
        if value is not None:
            yield f"{name.replace('_', ' ')} {value:,}"


database = typer.Typer(name="db", no_args_is_help=True, help="The database of conversations and runs.")


@database.command("check")
def check_database(config: ConfigOption = None) -> None:
    """Look for damage; may be done while a server runs.

    \b
    Examples:
      maniple db check

    \b
    Exit status: 0 all is well, 1 it is damaged or cannot be read, 2 wrong settings
    (conf.yaml, .env).
    """
    finish(_check_integrity(read_settings(config)))


@database.command("vacuum")
def vacuum_database(config: ConfigOption = None) -> None:
    """Give unused space back; may be done while a server runs.

    \b
    Examples:
      maniple db vacuum

    \b
    Exit status: 0 done, 1 it cannot be done, 2 wrong settings (conf.yaml, .env).
    """
    finish(_vacuum(read_settings(config)))


@database.command("backup")
def back_up_database(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.", show_default=False)],
    config: ConfigOption = None,
) -> None:
    """Copy conversations, runs, API keys and artifacts; may be done while a server runs.

    To go back to the copy, stop what runs and name it as data_dir, or put its files there.
    Workspaces are left out: what runs left in them is among the artifacts.

    \b
    Examples:
      maniple db backup /backups/$(date +%F)

    \b
    Exit status: 0 done, 1 it cannot be read or written, 2 wrong usage or settings
    (conf.yaml, .env).
    """
    finish(_back_up(read_settings(config), folder))


@database.command("export")
def export_database(
    thread: Annotated[
        str, typer.Option("--thread", metavar="ID", help="Only this conversation.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="A new file.  [default: the output]")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Write conversations, runs and events as JSON for other programs, an object a line.

    Not to be read back; for that see maniple db backup.

    \b
    Examples:
      maniple db export -o conversations.jsonl
      maniple db export --thread 1a2b3c4d | jq -r 'select(.record == "event").type'

    \b
    Exit status: 0 done, 1 it cannot be read or written, 2 wrong usage or settings
    (conf.yaml, .env).
    """
    finish(_export(read_settings(config), thread, output))


async def _check_integrity(settings: "Settings") -> int:
    from maniple.cli.text import clean

    file = _existing_database_file(settings)
    if file is None:
        return 0
    async with open_database(settings) as store:
        problems = await store.check()
    for problem in problems:
        print(clean(f"✘ {problem}"))
    if not problems:
        print(f"✔ {file} is in order.")
    return 1 if problems else 0


async def _vacuum(settings: "Settings") -> int:
    from maniple.cli.text import file_size

    file = _existing_database_file(settings)
    if file is None:
        return 0
    before = file.stat().st_size
    async with open_database(settings) as store:
        await store.vacuum()
    print(f"{file}: {file_size(before)} before, {file_size(file.stat().st_size)} now.")
    return 0


async def _back_up(settings: "Settings", folder: Path) -> int:
    from maniple.cli.exit_status import WrongUsage
    from maniple.store.backup import back_up
    from maniple.store.configured import ARTIFACTS, place_of

    file = _existing_database_file(settings)
    if file is None:
        return 1
    try:
        async with open_database(settings):  # no other program's file, and of the newest version
            await back_up(file, await asyncio.to_thread(place_of, settings, ARTIFACTS), folder)
    except FileExistsError as error:
        raise WrongUsage(f"{folder} exists; name a new folder.") from error
    print(f"{file} and its artifacts are in {folder}.")
    return 0


def _existing_database_file(settings: "Settings") -> Path | None:
    """Return where the database lies; None, having said so, when there is none yet."""

    file = database_file(settings)
    if file.exists():
        return file
    print(f"There is no {file} yet.")
    return None


async def _export(settings: "Settings", name: str, output: Path | None) -> int:
    if output is None:
        await _export_lines(settings, name, sys.stdout)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            lines = await _export_lines(settings, name, file)
    except FileExistsError as error:
        from maniple.cli.exit_status import WrongUsage

        raise WrongUsage(f"{output} exists; name a new file.") from error
    from maniple.cli.text import counted

    print(f"{counted(lines, 'record')} in {output}.", file=sys.stderr)
    return 0


async def _export_lines(settings: "Settings", name: str, file: IO[str]) -> int:
    from maniple.cli.chat.session import find_thread
    from maniple.store import export

    print(f"From {database_file(settings)}.", file=sys.stderr)
    lines = 0
    async with open_database(settings) as store:
        thread_id = (await find_thread(store, name, None)).thread_id if name else None
        async for line in export(store, thread_id):
            file.write(line + "\n")
            lines += 1
    return lines


def database_file(settings: "Settings") -> Path:
    """Return where the database lies, or is to lie; raises `ConfigError` when nothing is kept."""
    from maniple.errors import ConfigError
    from maniple.store.configured import database_of

    file = database_of(settings)
    if file is None:
        raise ConfigError("Nothing is kept: store.backend is memory. Set it to sqlite.")
    return file


@asynccontextmanager
async def open_database(settings: "Settings") -> AsyncIterator["Store"]:
    """Open the database beside whoever has it open; raises `ConfigError` or `StoreError`."""
    from maniple.store.configured import open_configured_store

    database_file(settings)
    async with open_configured_store(settings, server=False) as store:
        yield store


async def has_valid_key(settings: "Settings") -> bool:
    """Say whether somebody has an API key that was not revoked."""
    from maniple.store import valid_keys
    from maniple.store.configured import database_of

    file = database_of(settings)
    if file is None or not file.exists():
        return False
    async with open_database(settings) as store:
        return await valid_keys(store.keys) > 0
