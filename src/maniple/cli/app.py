"""The commands `maniple chat`, `maniple serve` and `maniple doctor`.

Nothing heavy is imported before a command runs, so that `--help` comes at once.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from maniple.config import Settings

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", exists=True, dir_okay=False, help="Settings file.  [default: conf.yaml]"),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maniple {version('maniple')}")
        raise typer.Exit


@app.callback()
def _root(
    wants_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A team of agents: ask it in the terminal, or serve it over HTTP.

    \b
    Begin with:
      maniple doctor                 is everything here that the team needs?
      maniple chat                   talk to the team
      maniple chat "1+3=?"           ask once
      maniple serve                  the HTTP API, documented at /docs

    \b
    Without any settings a small model that runs in this program answers. A better
    one is two lines in .env: BASIC_API_KEY=… and BASIC_MODEL=…, with
    BASIC_BASE_URL=… when it is not OpenAI's.
    """


@app.command()
def chat(  # noqa: PLR0913 - typer reads the options from the signature
    question: Annotated[
        list[str] | None, typer.Argument(metavar="QUESTION", help="Ask once; - reads it from the input.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as one line of JSON.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Plan with the reasoning model.")] = False,
    search_first: Annotated[bool, typer.Option("--search-first", help="Search before planning.")] = False,
    review: Annotated[bool, typer.Option("--review", help="Show the plan and wait for your word.")] = False,
    team: Annotated[
        str, typer.Option("--team", metavar="A,B", help="Who works.  [default: everyone]", show_default=False)
    ] = "",
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours. NO_COLOR does the same.")] = False,
    config: ConfigOption = None,
) -> None:
    """Ask the team: a question once, or in a conversation.

    \b
    Examples:
      maniple chat                                  a conversation; /help says more
      maniple chat "1+3=?"                          one question, then exit
      maniple chat --deep --search-first "Compare …"
      maniple chat --team researcher,coder "…"      only these, and the reporter
      maniple chat --review "…"                     look at the plan before it is followed
      maniple chat "…" > report.md                  only the report; progress on stderr
      git diff | maniple chat -                     the question from the input
      maniple chat --json "…" | jq -r .event        every event a line

    \b
    Exit status: 0 completed, 1 failed, 2 wrong usage or settings,
    3 the plan waits for a review, 130 cancelled.
    """
    text = _question(question or [], json=json)
    settings = _settings(config)
    from maniple.cli.ending import run_to_status
    from maniple.cli.members import UnknownMember, parse_members
    from maniple.cli.opening import Choices
    from maniple.cli.screens import Screens

    try:
        members = parse_members([team], settings.team.members)
    except UnknownMember as error:
        raise typer.BadParameter(str(error), param_hint="--team") from error
    from maniple.cli.chat import ask_once, converse

    choices = Choices(members, deep, search_first, review, json)
    screens = Screens.of_this_process(color=not no_color)
    if text is None:
        work = converse(settings, choices, screens)
    else:
        at_terminal = screens.is_live and _has_keyboard()
        work = ask_once(text, settings, choices, screens, at_terminal=at_terminal)
    raise typer.Exit(run_to_status(work))


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address.  [default: server.host, 127.0.0.1]")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 0: a free one.  [default: server.port, 8000]"),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve beyond this machine although there is no login.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Serve the team over HTTP.

    POST /api/chat/stream and the rest are documented at /docs.

    \b
    Examples:
      maniple serve
      maniple serve --port 9000
      curl -N localhost:8000/api/chat/stream -H 'content-type: application/json' \\
           -d '{"messages": [{"role": "user", "content": "1+3=?"}]}'
    """
    settings = _settings(config)
    from maniple.cli.ending import run_to_status
    from maniple.cli.serve import serve as serve_until_stopped

    options = {"host": host, "port": port, "insecure": insecure or None}
    given = {name: value for name, value in options.items() if value is not None}
    settings = settings.model_copy(update={"server": settings.server.model_copy(update=given)})
    raise typer.Exit(run_to_status(serve_until_stopped(settings)))


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask the models what they can do: five short calls each.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check what the team needs, and say how to get the rest.

    Exit status: 0 when the team can answer, else 1.
    """
    from maniple.cli.doctor import examine
    from maniple.cli.ending import run_to_status

    raise typer.Exit(run_to_status(examine(config, as_json=json, probe=probe)))


def _question(words: list[str], *, json: bool) -> str | None:
    """Return the question from the arguments or the input, or None when there is to be a conversation."""
    if words and words != ["-"]:
        # Bytes that are no text come as halves of surrogate pairs, which no model's endpoint takes.
        text = " ".join(words).encode("utf-8", "replace").decode()
    elif words or not _has_keyboard():
        text = sys.stdin.read() if sys.stdin else ""
    elif json or not sys.stdout.isatty():
        raise typer.BadParameter("a conversation needs a terminal; give a question.", param_hint="QUESTION")
    else:
        return None
    if not text.strip():
        raise typer.BadParameter("the question is empty.", param_hint="QUESTION")
    return text.strip()


def _has_keyboard() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _settings(config: Path | None) -> "Settings":
    from maniple.config import load_settings
    from maniple.errors import ConfigError

    try:
        return load_settings(config or "conf.yaml")
    except ConfigError as error:
        from maniple.cli.untrusted import clean

        typer.secho(clean(str(error)), err=True, fg="red")
        raise typer.Exit(2) from error
