"""What the commands have in common: which settings count, and how they end."""

import difflib
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from maniple.types import Worker

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

HostOption = Annotated[str | None, typer.Option(help="Address.  [default: server.host, 127.0.0.1]")]
PortOption = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port; 0: a free one.  [default: server.port, 8000]")
]
InsecureOption = Annotated[
    bool, typer.Option("--insecure", help="Serve beyond this machine without any API key.")
]


def settings_files(config: Path | None) -> tuple[Path, Path]:
    """Return the settings file and the `.env` that is read with it, whether they exist or not."""
    file = config or Path("conf.yaml")
    return file, file.with_name(".env")


def read_settings(config: Path | None) -> "Settings":
    """Return the settings, or end the program with words and status 2."""
    from maniple.config import load_settings
    from maniple.errors import ConfigError

    try:
        yaml_file, env_file = settings_files(config)
        return load_settings(yaml_file, env_file=env_file)
    except ConfigError as error:
        from maniple.cli.text import clean

        typer.secho(clean(str(error)), err=True, fg="red")
        raise typer.Exit(2) from error


def served_at(settings: "Settings", host: str | None, port: int | None, insecure: bool) -> "Settings":
    """Return the settings with what was given of the address in place of theirs."""
    options = {"host": host, "port": port, "insecure": insecure or None}
    given = {name: value for name, value in options.items() if value is not None}
    return settings.model_copy(update={"server": settings.server.model_copy(update=given)})


def finish(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `work`, and end the program with the status that it comes to."""
    from maniple.cli.exit_status import run_to_status

    raise typer.Exit(run_to_status(work))


class UnknownMember(ValueError):
    """A name that is nobody's on this team; the message names those who are."""


def parse_members(names: Iterable[str], available: Sequence[Worker]) -> tuple[Worker, ...]:
    """Return the named members in the team's order; raises `UnknownMember` with the nearest name."""
    wanted = {part.strip().casefold().replace("-", "_") for name in names for part in name.split(",")} - {""}
    for name in sorted(wanted - set(available)):
        close = difflib.get_close_matches(name, available, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UnknownMember(f"There is no {name!r} on the team.{guess} Members: {', '.join(available)}.")
    return tuple(member for member in available if member in wanted)
