"""Options that several commands share, the settings that they read, and how a command ends."""

import difflib
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from maniple.media_types import REPORT_SUFFIXES
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.config.model_settings import ModelsSettings
    from maniple.scope.budget import Budget

_WHOLE_LIMITS = ("tokens", "model_calls", "tool_calls")
_FACTORS = {"k": 1_000, "m": 1_000_000}
_LARGEST_LIMIT = 10**15
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        exists=True,
        dir_okay=False,
        help="Settings file; the .env beside it is read too.  [default: conf.yaml]",
    ),
]
HostOption = Annotated[
    str | None, typer.Option(help="Address to listen on.  [default: server.host, 127.0.0.1]")
]
PortOption = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port; 0: any free one.  [default: server.port, 8000]")
]
InsecureOption = Annotated[bool, typer.Option("--insecure", help="Serve other machines without an API key.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="Print without colours, like NO_COLOR=1.")]
JsonEventsOption = Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON.")]
_NEEDS_POSTGRES = (
    "Only runs in PostgreSQL are driven by several processes. Set store.backend to postgres and store.url, "
    "and run maniple db migrate; or run maniple serve, which does all in one process."
)


class InvalidBudget(ValueError):
    """The text is no budget, or a limit could never be reached; the message says what is."""


def parse_budget(text: str, models: "ModelsSettings") -> "Budget":
    """Return the budget in a text like `tokens=200k,seconds=600`; `k` and `m` stand for 1,000 and 1,000,000.

    Raises:
        InvalidBudget: a name is unknown, an amount is no positive number, or the cost is limited although
            some model has no price.
    """
    from maniple.scope.budget import Budget

    limits: dict[str, float] = {}
    names = [field.name for field in fields(Budget)]
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, amount = part.partition("=")
        name = name.strip().casefold().replace("-", "_")
        if name not in names:
            raise InvalidBudget(f"{name!r} is no limit. Use {', '.join(names)}: for example tokens=200k.")
        limits[name] = _parse_amount(name, amount.strip())
    if not limits:
        raise InvalidBudget("Give at least one limit, for example tokens=200k.")
    if "cost" in limits and (models.basic is None or models.unpriced):
        without = ", ".join(models.unpriced) or "the model that is used"
        raise InvalidBudget(
            f"The cost cannot be limited: no price is set for {without}. Set price_input and price_output "
            "beside the model in conf.yaml, or limit tokens."
        )
    return Budget(**{name: int(one) if name in _WHOLE_LIMITS else one for name, one in limits.items()})  # type: ignore[arg-type]


def _parse_amount(name: str, text: str) -> float:
    factor = _FACTORS.get(text[-1:].casefold(), 1)
    try:
        amount = float(text[:-1] if factor > 1 else text) * factor
    except ValueError:
        amount = 0
    is_whole = name not in _WHOLE_LIMITS or amount == int(amount) if isfinite(amount) else False
    if not 0 < amount <= _LARGEST_LIMIT or not is_whole:
        kind = "whole number" if name in _WHOLE_LIMITS else "number"
        raise InvalidBudget(f"{name}={text}: the amount is a {kind} above 0, such as {name}=200k.")
    return amount


def describe_budget(budget: "Budget") -> str:
    """Return the limits of a budget like `tokens 200,000, seconds 600`; "" for none."""
    limits = ((one.name, getattr(budget, one.name)) for one in fields(budget))
    return ", ".join(f"{name.replace('_', ' ')} {limit:,}" for name, limit in limits if limit is not None)


class UnknownMember(ValueError):
    """No agent of the team has this name; the message lists those that exist."""


def parse_members(names: Iterable[str], available: Sequence[Worker]) -> tuple[Worker, ...]:
    """Return the named agents in the team's order; `names` may hold commas.

    Raises:
        UnknownMember: a name is not in `available`; the message suggests the closest one.
    """
    wanted = {part.strip().casefold().replace("-", "_") for name in names for part in name.split(",")} - {""}
    for name in sorted(wanted - set(available)):
        close = difflib.get_close_matches(name, available, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UnknownMember(f"There is no agent {name!r}.{guess} Available: {', '.join(available)}.")
    return tuple(member for member in available if member in wanted)


def has_keyboard() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def settings_files(config: Path | None) -> tuple[Path, Path]:
    """Return the paths of the settings file and of the `.env` beside it; neither has to exist."""
    file = config or Path("conf.yaml")
    return file, file.with_name(".env")


def load_configured(config: Path | None) -> "Settings":
    """Return the settings of `config` and the `.env` beside it, both trusted, or of the working directory."""
    from maniple.config import load_settings

    if config is None:
        return load_settings()
    yaml_file, env_file = settings_files(config)
    return load_settings(yaml_file, env_file=env_file)


def read_settings(config: Path | None, *, opens_team: bool = False) -> "Settings":
    """Return the settings, or print what is wrong with them and exit with status 2.

    What an untrusted folder sets without effect is printed here, before the team opens without it. For
    commands that open the team, `runs.approval` is checked too, which imports all tools.
    """
    from maniple.cli.text import clean
    from maniple.errors import ConfigError

    try:
        settings = load_configured(config)
        for notice in settings.origin.skipped:
            typer.secho(clean(notice), err=True, fg="yellow")
        if opens_team and settings.runs.approval:
            from maniple.tools.registry import check_approval

            check_approval(settings)
    except ConfigError as error:
        typer.secho(clean(str(error)), err=True, fg="red")
        raise typer.Exit(2) from error
    return settings.without_skipped_notices()


def refuse_options(given: Mapping[str, object], reason: str) -> None:
    """Refuse the first option that has a value, for a reason."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter(reason, param_hint=option)


def served_at(settings: "Settings", host: str | None, port: int | None, insecure: bool) -> "Settings":
    """Return the settings with the given parts of the server's address replaced."""
    options = {"host": host, "port": port, "insecure": insecure or None}
    given = {name: value for name, value in options.items() if value is not None}
    return settings.model_copy(update={"server": settings.server.model_copy(update=given)})


def require_queue(settings: "Settings") -> None:
    """Raise `ConfigError` unless several processes may drive the runs of the settings."""
    from maniple.errors import ConfigError

    if settings.store.backend != "postgres":
        raise ConfigError(_NEEDS_POSTGRES)


def finish(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `work` and exit with the status that it returns."""
    from maniple.cli.process import run_to_status

    raise typer.Exit(run_to_status(work))


def finish_service(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `work` as `finish` does, on the event loop of services."""
    from maniple.cli.process import new_service_loop, run_to_status

    raise typer.Exit(run_to_status(work, new_service_loop))


SAVE_FORMATS = ", ".join(suffix[1:] for suffix in REPORT_SUFFIXES)
