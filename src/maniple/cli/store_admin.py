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
from maniple.cli.process import WrongUsage

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.store import ApiKey, KeyLimits, Store, Thread

_HIDES_THREADS = (
    "The server requires a key from now on, and conversations made without one belong to no key: no client "
    "of the server sees them. They are stored: maniple chat still opens them, and the server shows them "
    "again when all keys are revoked and forgotten (maniple keys revoke, maniple keys forget)."
)
NO_VALID_KEY = (
    "Every API key is revoked, so the server rejects all requests. Create a key with maniple keys add NAME, "
    "or run maniple keys forget to serve this machine without keys."
)

TERMINAL_OWNER = ""
"""The owner of the conversations of the terminal, which asks for no API key."""
_SHORTEST_PREFIX = 4
_PAGE = 500
_PROGRESS_SECONDS = 2.0

keys = typer.Typer(name="keys", no_args_is_help=True, help="Manage the API keys of the HTTP service.")


@keys.command("add")
def add_key(  # noqa: PLR0913 - typer reads the options from the signature
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of its owner, for your records.")],
    max_runs: Annotated[int | None, typer.Option(min=1, help="Most runs at the same time.")] = None,
    daily_model_calls: Annotated[
        int | None, typer.Option(min=0, help="Most model calls in 24 hours.")
    ] = None,
    daily_tool_calls: Annotated[int | None, typer.Option(min=0, help="Most tool calls in 24 hours.")] = None,
    daily_tokens: Annotated[int | None, typer.Option(min=0, help="Most tokens in 24 hours.")] = None,
    daily_seconds: Annotated[float | None, typer.Option(min=0, help="Most seconds in 24 hours.")] = None,
    daily_cost: Annotated[float | None, typer.Option(min=0, help="Highest cost in 24 hours.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May change the model for everybody.")] = False,
    config: ConfigOption = None,
) -> None:
    """Create an API key and print its secret, which is not shown again.

    \b
    Examples:
      maniple keys add alice
      maniple keys add batch --max-runs 2 --daily-tokens 1000000
      curl -H "X-API-Key: $(maniple keys add alice)" …

    \b
    A running server accepts the key immediately. Keys are stored in the database, at store.path
    in conf.yaml or .env; docs/http.md describes limits and ownership.

    \b
    Exit status: 0 created, 1 it cannot be stored, 2 wrong usage or settings.
    """
    from maniple.store import KeyLimits

    limits = KeyLimits(
        *(max_runs, daily_model_calls, daily_tool_calls, daily_tokens, daily_seconds, daily_cost), admin=admin
    )
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
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, or its beginning.")],
    config: ConfigOption = None,
) -> None:
    """Revoke an API key immediately and permanently; its runs continue.

    If no valid key is left, the server rejects all requests until you create a key (keys add)
    or delete the revoked ones (keys forget).

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
    """Delete the revoked API keys, to serve without keys again.

    This works only if no key is valid. The data of their owners stays, but no client can read it.

    \b
    Examples:
      maniple keys forget

    \b
    Exit status: 0 deleted, 1 it cannot be stored, 2 a key is valid, or wrong settings
    (conf.yaml, .env).
    """
    finish(_forget(read_settings(config)))


async def _add(settings: "Settings", name: str, limits: "KeyLimits") -> int:
    from maniple.cli.render import Consoles
    from maniple.store import count_valid_keys

    async with open_database(settings) as store:
        key, secret = await store.keys.add(name, limits)
        is_first = await count_valid_keys(store.keys) == 1
        hides_threads = is_first and bool(await store.threads.list(TERMINAL_OWNER, limit=1))
    consoles = Consoles.of_this_process()
    if hides_threads:
        consoles.note(_HIDES_THREADS)
    if limits.daily_cost is not None and (unpriced := settings.models.unpriced):
        consoles.note(f"The daily cost does not include {', '.join(unpriced)}: set models.*.price_input.")
    consoles.note(f"Created key {key.key_id[:8]} for {key.name}. Copy its secret now; it is not stored:")
    print(secret)
    return 0


async def _list(settings: "Settings") -> int:
    from maniple.cli.render import Consoles
    from maniple.cli.text import clean

    async with open_database(settings) as store:
        found = await store.keys.list()
    for key in found:
        print(clean(_key_line(key)))
    if not found:
        Consoles.of_this_process().note("There are no API keys. Create one with maniple keys add NAME.")
    return 0


async def _revoke(settings: "Settings", key_id: str) -> int:
    from maniple.cli.render import Consoles
    from maniple.store import count_valid_keys

    async with open_database(settings) as store:
        key = await _find_key(store, key_id)
        done = await store.keys.revoke(key.key_id)
        left = await count_valid_keys(store.keys)
    outcome = "is revoked" if done else "was already revoked"
    consoles = Consoles.of_this_process()
    consoles.note(f"Key {key.key_id[:8]} of {key.name} {outcome}.")
    if not left:
        consoles.note(NO_VALID_KEY)
    return 0


async def _forget(settings: "Settings") -> int:
    from maniple.cli.process import WrongUsage
    from maniple.cli.render import Consoles
    from maniple.store import count_valid_keys
    from maniple.text import counted

    async with open_database(settings) as store:
        forgotten = await store.keys.delete_revoked()
        left = await count_valid_keys(store.keys)
    if left:
        raise WrongUsage(f"{counted(left, 'key')} can still be used. First run maniple keys revoke ID.")
    deleted = f"Deleted {counted(forgotten, 'revoked key')}." if forgotten else "There are no revoked keys."
    Consoles.of_this_process().note(f"{deleted} Clients on this machine need no key.")
    return 0


async def _find_key(store: "Store", key_id: str) -> "ApiKey":
    from maniple.cli.process import WrongUsage

    found = [key for key in await store.keys.list() if key_id and key.key_id.startswith(key_id)]
    if len(found) != 1:
        problem = f"{len(found)} keys begin with" if found else "There is no key"
        raise WrongUsage(f"{problem} {key_id!r}. List the keys with maniple keys list.")
    return found[0]


def _key_line(key: "ApiKey") -> str:
    from maniple.cli.text import one_line, time_ago

    now = time.time()
    state = f"revoked {time_ago(now - key.revoked_at)}" if key.revoked_at else "valid"
    limits = ", ".join(_limit_texts(key.limits))
    created = time_ago(now - key.created_at)
    line = f"{key.key_id[:8]}  {one_line(key.name, 40)}  {state}, created {created}"
    return f"{line}; {limits}" if limits else line


def _limit_texts(limits: "KeyLimits") -> Iterator[str]:
    from dataclasses import asdict

    for name, value in asdict(limits).items():
        if isinstance(value, bool):
            yield from ([name] if value else [])
        elif value is not None:
            yield f"{name.replace('_', ' ')} {value:,}"


database = typer.Typer(
    name="db",
    no_args_is_help=True,
    help="Maintain the database of conversations and runs.",
)


@database.command("check")
def check_database(config: ConfigOption = None) -> None:
    """Check the database for damage; safe while a server runs.

    \b
    Examples:
      maniple db check

    \b
    Exit status: 0 no damage, 1 it is damaged or cannot be read, 2 wrong settings
    (conf.yaml, .env).
    """
    finish(_check_integrity(read_settings(config)))


@database.command("vacuum")
def vacuum_database(config: ConfigOption = None) -> None:
    """Shrink the database file to the space that it needs; safe while a server runs.

    \b
    Examples:
      maniple db vacuum

    \b
    Exit status: 0 done, 1 it failed, 2 wrong settings (conf.yaml, .env).
    """
    finish(_vacuum(read_settings(config)))


@database.command("backup")
def back_up_database(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to create.", show_default=False)],
    config: ConfigOption = None,
) -> None:
    """Copy conversations, runs, API keys and artifacts; safe while a server runs.

    To restore the copy, stop the server and set data_dir to the folder, or move its files into
    data_dir. Workspaces are not copied: files that runs leave there are among the artifacts.

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
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="New file.  [default: standard output]"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Export conversations, runs and events as JSON, one object a line.

    For use in other programs; an export cannot be imported again. See maniple db backup.

    \b
    Examples:
      maniple db export -o conversations.jsonl
      maniple db export --thread 1a2b3c4d | jq -r 'select(.record == "event").type'

    \b
    Exit status: 0 done, 1 it cannot be read or written, 2 wrong usage or settings
    (conf.yaml, .env).
    """
    finish(_export(read_settings(config), thread, output))


@database.command("migrate")
def migrate_database(config: ConfigOption = None) -> None:
    """Bring the database to the schema of this version.

    With store.backend: postgres, do this before each new version serves; maniple serve refuses a
    database of another schema. Several may do it at the same time. A SQLite file is migrated
    whenever it is opened.

    \b
    Examples:
      maniple db migrate && maniple serve

    \b
    Exit status: 0 done, 1 it cannot be reached or written, 2 wrong settings (conf.yaml, .env).
    """
    finish(_migrate(read_settings(config)))


@database.command("move")
def move_database(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL|FILE",
            help="The PostgreSQL database  [default: store.url]; back from there, a new SQLite file.",
            show_default=False,
        ),
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Move the SQLite database to PostgreSQL, or with store.backend: postgres back to a new file.

    Stop all servers, workers and chats first. The database of the URL must be empty; tables are
    created. The target gets everything, or after an error nothing: then run the command again. The
    contents of artifacts and workspaces stay where they are, the search index is made again. Runs
    that wait or were cut off go on there.

    \b
    Examples:
      maniple db move --to postgresql://maniple@db.example.org/maniple
      MANIPLE_STORE__URL=postgresql://maniple:password@db.example.org/maniple maniple db move
      MANIPLE_STORE__BACKEND=postgres maniple db move --to data/maniple.db

    \b
    Exit status: 0 done, 1 one of them cannot be read or written, 2 wrong usage or settings
    (conf.yaml, .env).
    """
    finish(_move(read_settings(config), to))


async def _move(settings: "Settings", to: str) -> int:
    from maniple.cli.text import clean
    from maniple.errors import ConfigError
    from maniple.store.configured import describe_postgres, move_to_postgres
    from maniple.text import counted

    if settings.store.backend == "postgres":
        if not to or "://" in to:
            raise ConfigError(
                "store.backend is postgres. Name a new SQLite file, --to FILE, or set store.backend to "
                "sqlite until the SQLite database is moved."
            )
        return await _move_back(settings, Path(to))
    url = to or settings.store.database_url
    if not url:
        raise WrongUsage("Name the PostgreSQL database: --to postgresql://user@host/name, or store.url.")
    if _existing_database(settings) is None:
        return 1
    file, target = database_file(settings), describe_postgres(url)
    counts = await move_to_postgres(file, url, _MoveProgress())
    total = counted(sum(counts.values()), "row")
    print(clean(f"Copied {total} of {file} to {target}, each table whole. Now set:"))
    print("  MANIPLE_STORE__BACKEND=postgres\n  MANIPLE_STORE__URL= the URL of the database, in .env")
    await _print_moved_folders(settings, None)
    print(clean(f"{file} is as it was. Do not serve it again: its runs would be done twice."))
    return 0


async def _move_back(settings: "Settings", file: Path) -> int:
    from maniple.cli.text import clean
    from maniple.store.configured import describe_database, move_to_sqlite
    from maniple.text import counted

    obstacles: list[str] = []
    file = await asyncio.to_thread(file.resolve)
    counts = await move_to_sqlite(
        settings.store.database_url,
        file,
        _MoveProgress(),
        lambda: obstacles.extend(_copy_shared_state(settings)),
    )
    total = counted(sum(counts.values()), "row")
    print(clean(f"Copied {total} of {describe_database(settings)} to {file}, each table whole. Now set:"))
    print(clean(f"  MANIPLE_STORE__BACKEND=sqlite\n  MANIPLE_STORE__PATH={file}"))
    await _print_moved_folders(settings, file)
    print("Do not serve the database again: its runs would be done twice.")
    if obstacles:
        print(clean(f"Not moved: logins at MCP servers, or tools accepted there. {obstacles[0]}"))
        return 1
    print(clean(f"Logins at MCP servers and accepted tools are in {settings.data_dir / 'mcp'}."))
    return 0


async def _print_moved_folders(settings: "Settings", file: Path | None) -> None:
    from maniple.cli.text import clean
    from maniple.store.configured import list_moved_folders

    for folder, place in await asyncio.to_thread(list_moved_folders, settings, file):
        print(clean(f"Move the folder {folder} to {place}."))


def _copy_shared_state(settings: "Settings") -> list[str]:
    """Copy logins, accepted tools and what models can do to files; return why some were not, if so."""
    from maniple.errors import ConfigError, StoreError
    from maniple.store.shared_state import open_state_rows, state_files

    try:
        with open_state_rows(settings) as rows:
            rows.copy_to(state_files(settings), replace=True)
    except (ConfigError, StoreError) as error:
        return [str(error)]
    return []


class _MoveProgress:
    """Prints each table when it is copied, and what is copied of a long one."""

    def __init__(self) -> None:
        self._printed_at = time.monotonic()

    def __call__(self, table: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now < self._printed_at + _PROGRESS_SECONDS:
            return
        self._printed_at = now
        print(f"{table}: {done:,} of {total:,}", file=sys.stderr)


async def _migrate(settings: "Settings") -> int:
    from maniple.store.configured import describe_database, migrate_postgres

    if settings.store.backend == "postgres":
        before, after = await migrate_postgres(settings)
        done = f"had schema {before} and has schema {after}" if before < after else f"has schema {after}"
        print(f"{describe_database(settings)} {done}.")
        return 0
    if _existing_database(settings) is None:
        return 0
    async with open_database(settings):
        print(f"{database_file(settings)} has the schema of this version.")
    return 0


async def _check_integrity(settings: "Settings") -> int:
    from maniple.cli.text import clean

    name = _existing_database(settings)
    if name is None:
        return 0
    async with open_database(settings) as store:
        problems = await store.check()
    for problem in problems:
        print(clean(f"✘ {problem}"))
    if not problems:
        print(f"✔ {name} is not damaged.")
    return 1 if problems else 0


async def _vacuum(settings: "Settings") -> int:
    from maniple.text import file_size

    name = _existing_database(settings)
    if name is None:
        return 0
    if settings.store.backend == "postgres":
        async with open_database(settings) as store:
            await store.vacuum()
        print(f"Vacuumed {name}.")
        return 0
    file = database_file(settings)
    before = file.stat().st_size
    async with open_database(settings) as store:
        await store.vacuum()
    print(f"{file}: {file_size(before)} before, {file_size(file.stat().st_size)} now.")
    return 0


async def _back_up(settings: "Settings", folder: Path) -> int:
    from maniple.cli.process import WrongUsage
    from maniple.errors import ConfigError
    from maniple.store.configured import artifact_contents
    from maniple.store.export import back_up

    contents = await asyncio.to_thread(artifact_contents, settings)
    if settings.store.backend == "postgres":
        raise ConfigError(f"Back up PostgreSQL with pg_dump, and copy the artifacts, {contents.address}.")
    if _existing_database(settings) is None:
        return 1
    file = database_file(settings)
    try:
        async with open_database(settings):  # checks that the file is ours, and migrates it
            await back_up(file, contents, folder)
    except FileExistsError as error:
        raise WrongUsage(f"{folder} exists. Choose a new folder.") from error
    print(f"Copied {file} and its artifacts to {folder}.")
    return 0


def _existing_database(settings: "Settings") -> str | None:
    """Return the name of the database; if there is no file yet, print that and return None."""
    from maniple.store.configured import describe_database

    if settings.store.backend != "postgres" and not (file := database_file(settings)).exists():
        print(f"There is no database yet: {file} does not exist.")
        return None
    return describe_database(settings)


async def _export(settings: "Settings", name: str, output: Path | None) -> int:
    if output is None:
        await _export_lines(settings, name, sys.stdout)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            lines = await _export_lines(settings, name, file)
    except FileExistsError as error:
        raise WrongUsage(f"{output} exists. Choose a new file.") from error
    from maniple.text import counted

    print(f"Wrote {counted(lines, 'record')} to {output}.", file=sys.stderr)
    return 0


async def _export_lines(settings: "Settings", name: str, file: IO[str]) -> int:
    from maniple.store import export_records
    from maniple.store.configured import describe_database

    print(f"Reading {describe_database(settings)}.", file=sys.stderr)
    lines = 0
    async with open_database(settings) as store:
        thread_id = (await find_thread(store, name, None)).thread_id if name else None
        async for line in export_records(store, thread_id):
            file.write(line + "\n")
            lines += 1
    return lines


class UnknownConversation(WrongUsage):
    """No conversation has this id or number, or several have."""


async def find_thread(store: "Store", name: str, owner: str | None) -> "Thread":
    """Return the owner's thread with this id, or the only one whose id begins with `name`.

    Raises `UnknownConversation`.
    """
    thread = await store.threads.get(name, owner)
    if thread is not None:
        return thread
    found: list[Thread] = []
    before: float | None = None
    is_prefix = len(name) >= _SHORTEST_PREFIX
    while is_prefix and (page := await store.threads.list(owner, _PAGE, before)):
        found += [thread for thread in page if thread.thread_id.startswith(name)]
        before = page[-1].created_at
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownConversation(
            f"{len(found)} conversations have an id that begins with {name!r}. Give more of the id."
        )
    raise UnknownConversation(
        f"There is no conversation {name!r}. To list conversations, run maniple threads list, or enter "
        "/threads in maniple chat."
    )


async def require_thread(settings: "Settings", name: str) -> None:
    """Raise `UnknownConversation` if the terminal has no conversation with this id, or beginning of an id."""
    from maniple.store.configured import open_configured_store

    async with open_configured_store(settings, server=False) as store:
        await find_thread(store, name, TERMINAL_OWNER)


def database_file(settings: "Settings") -> Path:
    """Return the path of the SQLite database; raises `ConfigError` if nothing is stored on disk."""
    from maniple.errors import ConfigError
    from maniple.store.configured import database_path

    file = database_path(settings)
    if file is None:
        raise ConfigError("Nothing is stored on disk: store.backend is memory. Set it to sqlite.")
    return file


@asynccontextmanager
async def open_database(settings: "Settings") -> AsyncIterator["Store"]:
    """Open the database, which a server may have open too; raises `ConfigError` or `StoreError`."""
    from maniple.store.configured import open_configured_store

    if settings.store.backend == "memory":
        database_file(settings)
    async with open_configured_store(settings, server=False) as store:
        yield store


async def has_valid_key(settings: "Settings") -> bool:
    """Return whether there is an API key that is not revoked."""
    from maniple.store import count_valid_keys
    from maniple.store.configured import database_path

    file = database_path(settings)
    if settings.store.backend == "memory" or (file is not None and not file.exists()):
        return False
    async with open_database(settings) as store:
        return await count_valid_keys(store.keys) > 0
