"""The commands of `maniple`.

Nothing heavy is imported before a command runs, so that `--help` comes at once.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from maniple.cli.lookup import crawl, search
from maniple.cli.mcp import mcp
from maniple.cli.options import (
    ConfigOption,
    HostOption,
    InsecureOption,
    PortOption,
    finish,
    read_settings,
    served_at,
)
from maniple.cli.store_admin import database, keys
from maniple.types import GENERAL

if TYPE_CHECKING:
    from maniple.cli.chat.session import Session
    from maniple.cli.render import Screens
    from maniple.config import Settings

Mode = Literal["navigate", "execute", "scrape", "research", "auto"]


Strategy = Literal["react", "react_plus", "cot", "tot"]


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.add_typer(keys)
app.add_typer(database)
app.add_typer(mcp)
app.command("search")(search)


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
      maniple crawl URL              read a page as the team does
      maniple browse "…"             do a task in the browser, and show how
      maniple serve                  the HTTP API, documented at /docs
      maniple keys add NAME          a key for its clients
      maniple search "…"             what the team would find
      maniple mcp list               the MCP servers and their tools
      maniple mcp serve              the team as tools of an MCP host

    \b
    Without any settings a small model that runs in this program answers. A better
    one is two lines in .env: BASIC_API_KEY=… and BASIC_MODEL=…, with
    BASIC_BASE_URL=… when it is not OpenAI's.

    \b
    Settings come from the environment, then .env, then conf.yaml, both in this folder.
    Any key of conf.yaml is also a variable: server.port is MANIPLE_SERVER__PORT.
    `maniple COMMAND --help` has examples and the exit status of each command.
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
    agent: Annotated[
        str, typer.Option("--agent", metavar="manus", help="One agent answers alone.", show_default=False)
    ] = "",
    thread: Annotated[
        str, typer.Option("--thread", metavar="ID", help="Go on with this conversation.", show_default=False)
    ] = "",
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            exists=True,
            dir_okay=False,
            readable=True,
            help="Give the team a copy of this file; may be repeated.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--continue", help="Only go on with the run that was cut off last.")
    ] = False,
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
      maniple chat --agent manus "…"                one agent with every tool, and no plan
      maniple chat --review "…"                     look at the plan before it is followed
      maniple chat --file sales.csv "Sum it up"     the team works on a copy of it
      maniple chat --thread 1a2b3c4d "And 1+4?"     go on with a conversation; /threads lists them
      maniple chat "…" > report.md                  only the report; progress on stderr
      git diff | maniple chat -                     the question from the input
      maniple chat --json "…" | jq -r .event        every event a line

    \b
    Files that the team wrote are listed after the answer and stay where they are:
    below data_dir, a key of conf.yaml. What the team needs: maniple doctor.

    \b
    Conversations are kept. A run whose program was killed goes on at the next prompt, or
    with --continue; one that waits for a word is answered with --thread ID "accept".

    \b
    Exit status: 0 completed, 1 failed, 2 wrong usage or settings, 3 the team waits for
    an answer, 4 the budget ran out (the report is partial), 130 cancelled,
    128 + N ended by signal N.
    """
    if resume and (question or files):
        raise typer.BadParameter(
            "goes on with an earlier question; ask yours afterwards.", param_hint="--continue"
        )
    text = None if resume else _question(question or [], json=json)
    settings = read_settings(config)
    _refuse_agent(agent)
    from maniple.cli.chat import Choices
    from maniple.cli.options import UnknownMember, parse_members
    from maniple.cli.render import Screens

    try:
        members = parse_members([team], settings.team.enabled)
    except UnknownMember as error:
        raise typer.BadParameter(str(error), param_hint="--team") from error
    from maniple.cli.chat import ask_once, converse

    talks = text is None and not resume
    choices = Choices(
        *(members, deep, search_first, review, json, thread),
        resumes=talks or resume,
        demands=resume,
        files=tuple(files or ()),
        agent=agent,
    )
    screens = Screens.of_this_process(color=not no_color)
    if talks:
        work = converse(settings, choices, screens)
    else:
        at_terminal = screens.is_live and _has_keyboard()
        work = ask_once(text, settings, choices, screens, at_terminal=at_terminal)
    finish(work)


@app.command()
def browse(  # noqa: PLR0913 - typer reads the options from the signature
    task: Annotated[list[str], typer.Argument(metavar="TASK", help="What is to be done or found out.")],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Begin at this page.", show_default=False)
    ] = "",
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode", help="What is planned, seen and offered.  [default: auto]", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="How the agent reasons.  [default: react]", show_default=False),
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser while it works.")] = False,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the run's page.  [default: with --headed]", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as one line of JSON.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours. NO_COLOR does the same.")] = False,
    config: ConfigOption = None,
) -> None:
    """Do a task in the browser, and show how.

    \b
    Examples:
      maniple browse --url shop.example "What does the blue hat cost?"
      maniple browse --mode scrape --url news.example "All headlines as JSON" > headlines.json
      maniple browse --mode execute --headed "Fill in the form at https://…"
      maniple browse --json "…" | jq -r 'select(.event == "browser_step")'

    \b
    Modes: navigate goes somewhere, execute acts, scrape takes data out, research looks
    around; auto plans as it needs. Strategies: react, react_plus (looks back before it
    goes on), cot (step by step), tot (weighs several next steps; the most calls).
    Defaults are keys of conf.yaml: browser.browsing.mode and browser.browsing.strategy.

    \b
    Afterwards the run's page is written below data_dir: question, result, every step
    with its screenshot, and the recording. It is opened, or its path is printed.

    \b
    Exit status: as of maniple chat; 1 also when there is no Chromium.
    """
    text = " ".join(task).encode("utf-8", "replace").decode().strip()
    if not text:
        raise typer.BadParameter("the task is empty.", param_hint="TASK")
    settings = _browsing_settings(read_settings(config), mode, strategy, headed=headed)
    from maniple.cli.chat import Choices, ask_once
    from maniple.cli.render import Screens

    screens = Screens.of_this_process(color=not no_color)
    wants_open = headed if opens is None else opens

    async def show(session: "Session") -> None:
        await _show_page(session, screens, opens=wants_open)

    at_terminal = screens.is_live and sys.stdin is not None and sys.stdin.isatty()
    choices = Choices(json=json, agent="browser")
    finish(
        ask_once(
            beginning_at(url, text), settings, choices, screens, at_terminal=at_terminal, afterwards=show
        )
    )


app.command()(crawl)


@app.command()
def serve(
    host: HostOption = None,
    port: PortOption = None,
    insecure: InsecureOption = False,
    config: ConfigOption = None,
) -> None:
    """Serve the team over HTTP.

    People open http://127.0.0.1:8000/ in a browser. POST /api/chat/stream and the rest are
    documented at /docs.

    \b
    Examples:
      maniple serve
      maniple serve --port 9000
      curl -N localhost:8000/api/chat/stream -H 'content-type: application/json' \\
           -d '{"messages": [{"role": "user", "content": "1+3=?"}]}'

    \b
    Ctrl-C or SIGTERM stops the service; runs under way go on when it is started again.
    Beyond this machine it needs an API key: maniple keys add NAME. Address and port are also the
    keys server.host and server.port of conf.yaml, or MANIPLE_SERVER__PORT.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings,
    such as a port that is taken.
    """
    settings = read_settings(config)
    from maniple.cli.services import serve as serve_until_stopped

    finish(serve_until_stopped(served_at(settings, host, port, insecure)))


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask the models what they can do: five short calls each.")
    ] = False,
    build: Annotated[
        bool, typer.Option(help="Install the packages that code in the sandbox is to have: a minute, once.")
    ] = True,
    packages: Annotated[
        bool, typer.Option("--packages", help="Do only that, and try them; the status is 0 if all work.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check what the team needs, and say how to get the rest.

    \b
    Examples:
      maniple doctor                          the settings of this folder
      maniple doctor --config team/conf.yaml  others
      maniple doctor --probe                  what can the models do?
      maniple doctor --json | jq .ok          for programs

    \b
    Each line is ✔ in order, ! absent and done without, or ✘ in the way of any answer;
    → says what to do. A model is configured in .env: BASIC_API_KEY, BASIC_MODEL and
    BASIC_BASE_URL; better web search by TAVILY_API_KEY or BRAVE_API_KEY.

    \b
    Exit status: 0 the team can answer, 1 it cannot, 2 wrong usage.
    """
    from maniple.cli.doctor import examine, prepare

    finish(prepare(config) if packages else examine(config, as_json=json, probe=probe, build=build))


def _refuse_agent(agent: str) -> None:
    if agent not in ("", GENERAL):
        words = f"there is no agent {agent!r} that answers alone; there is {GENERAL}."
        raise typer.BadParameter(words, param_hint="--agent")


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


def _browsing_settings(
    settings: "Settings", mode: Mode | None, strategy: Strategy | None, *, headed: bool
) -> "Settings":
    given = {"mode": mode, "strategy": strategy}
    chosen = {name: value for name, value in given.items() if value is not None}
    browser = settings.browser
    update = {
        "browsing": browser.browsing.model_copy(update=chosen),
        "headless": browser.headless and not headed,
    }
    return settings.model_copy(update={"browser": browser.model_copy(update=update)})


def beginning_at(url: str, task: str) -> str:
    """Return the task with the page to begin at; raises `BadParameter` for what is no web address."""
    if not url:
        return task
    from maniple.browser.addresses import completed

    address = completed(url)
    if not _is_web_address(address):
        raise typer.BadParameter("is no address of a web page.", param_hint="--url")
    return f"{task}\nBegin at {address}"  # the first line is what the run is called


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and not any(sign.isspace() for sign in address)


async def _show_page(session: "Session", screens: "Screens", *, opens: bool) -> None:
    from maniple.cli.chat.session import open_page, write_page
    from maniple.errors import FileError

    try:
        path = await write_page(session)
    except FileError as error:
        screens.note(str(error), "yellow")
        return
    if path is None:
        return
    screens.note(f"The run's page: {path}", "dim")
    if opens and not await open_page(path):
        screens.note("There is no web browser here to open it in.", "yellow")
