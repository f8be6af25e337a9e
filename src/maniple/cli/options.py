"""What the commands have in common: which settings count."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from maniple.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        exists=True,
        dir_okay=False,
        help="Settings file; the .env beside it is read too.  [default: conf.yaml]",
    ),
]


def read_settings(config: Path | None) -> "Settings":
    """Return the settings, or end the program with words and status 2."""
    from maniple.config import load_settings
    from maniple.errors import ConfigError

    try:
        file = config or Path("conf.yaml")
        return load_settings(file, env_file=file.with_name(".env"))
    except ConfigError as error:
        from maniple.cli.untrusted import clean

        typer.secho(clean(str(error)), err=True, fg="red")
        raise typer.Exit(2) from error
