"""`maniple db`: the file that keeps conversations and runs."""

import asyncio
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings

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
    finish(_check(read_settings(config)))


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


async def _check(settings: "Settings") -> int:
    from maniple.cli.keeping import open_kept
    from maniple.cli.untrusted import clean

    file = _kept_file(settings)
    if file is None:
        return 0
    async with open_kept(settings) as store:
        problems = await store.check()
    for problem in problems:
        print(clean(f"✘ {problem}"))
    if not problems:
        print(f"✔ {file} is in order.")
    return 1 if problems else 0


async def _vacuum(settings: "Settings") -> int:
    from maniple.cli.keeping import open_kept
    from maniple.cli.words import file_size

    file = _kept_file(settings)
    if file is None:
        return 0
    before = file.stat().st_size
    async with open_kept(settings) as store:
        await store.vacuum()
    print(f"{file}: {file_size(before)} before, {file_size(file.stat().st_size)} now.")
    return 0


async def _back_up(settings: "Settings", folder: Path) -> int:
    from maniple.cli.ending import WrongUsage
    from maniple.cli.keeping import open_kept
    from maniple.store.backup import back_up
    from maniple.store.configured import ARTIFACTS, place_of

    file = _kept_file(settings)
    if file is None:
        return 1
    try:
        async with open_kept(settings):  # no other program's file, and of the newest version
            await back_up(file, await asyncio.to_thread(place_of, settings, ARTIFACTS), folder)
    except FileExistsError as error:
        raise WrongUsage(f"{folder} exists; name a new folder.") from error
    print(f"{file} and its artifacts are in {folder}.")
    return 0


def _kept_file(settings: "Settings") -> Path | None:
    """Return where the database lies; None, having said so, when there is none yet."""
    from maniple.cli.keeping import database_file

    file = database_file(settings)
    if file.exists():
        return file
    print(f"There is no {file} yet.")
    return None


async def _export(settings: "Settings", name: str, output: Path | None) -> int:
    if output is None:
        await _write(settings, name, sys.stdout)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            lines = await _write(settings, name, file)
    except FileExistsError as error:
        from maniple.cli.ending import WrongUsage

        raise WrongUsage(f"{output} exists; name a new file.") from error
    from maniple.cli.words import counted

    print(f"{counted(lines, 'record')} in {output}.", file=sys.stderr)
    return 0


async def _write(settings: "Settings", name: str, file: IO[str]) -> int:
    from maniple.cli.conversations import find_thread
    from maniple.cli.keeping import database_file, open_kept
    from maniple.store import export

    print(f"From {database_file(settings)}.", file=sys.stderr)
    lines = 0
    async with open_kept(settings) as store:
        thread_id = (await find_thread(store, name, None)).thread_id if name else None
        async for line in export(store, thread_id):
            file.write(line + "\n")
            lines += 1
    return lines
