"""`maniple trust`: which folders may set everything by their `conf.yaml` and `.env`."""

from pathlib import Path
from typing import Annotated

import typer

from maniple.cli.options import settings_files


def trust(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="The folder to trust.")
    ] = Path(),
    remove: Annotated[bool, typer.Option("--remove", help="Do not trust the folder any longer.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the trusted folders.")] = False,
) -> None:
    """Trust the settings files of a folder, so that all of their settings apply.

    \b
    Examples:
      maniple trust                  trust conf.yaml and .env of this folder
      maniple trust ~/team           of another folder
      maniple trust --remove         no longer trust this folder
      maniple trust --list           print the trusted folders

    \b
    Settings can run programs, send your keys to other addresses and turn protections off. Of a
    folder that is not trusted, such as a download, only harmless settings apply; a command names
    the others. A file given by --config is trusted, and so is the source tree that maniple runs
    from. For images: MANIPLE_TRUSTED_FOLDERS=/app, an environment variable.

    \b
    Exit status: 0 done, 1 the folder was not trusted, 2 it cannot be stored.
    """
    from maniple.cli.text import clean
    from maniple.config.trust import list_trusted_folders, revoke_trust, trust_folder
    from maniple.errors import ConfigError

    if listed:
        for one in list_trusted_folders():
            typer.echo(clean(str(one)))
        return
    where = clean(str(folder.resolve()))
    try:
        if remove and not revoke_trust(folder):
            typer.echo(f"{where} was not trusted by maniple trust.", err=True)
            raise typer.Exit(1)
        if not remove:
            trust_folder(folder)
    except ConfigError as error:
        typer.secho(clean(str(error)), err=True, fg="red")
        raise typer.Exit(2) from error
    if remove:
        typer.echo(f"{where} is no longer trusted.")
        return
    files = [file.name for file in settings_files(folder / "conf.yaml") if file.is_file()]
    typer.echo(f"{where} is trusted. All settings apply of: {', '.join(files) or 'conf.yaml and .env'}.")
