"""The command line of `maniple`: its root command, and `chat`, `browse`, `serve` and `doctor`.

A command imports what it needs when it runs, so that `--help` is printed without delay.
"""

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar
from urllib.parse import urlsplit

import typer

from maniple.cli.batch import batch
from maniple.cli.cluster import runs, work
from maniple.cli.completion import completion
from maniple.cli.judge_eval import evaluation
from maniple.cli.lookup import crawl, search
from maniple.cli.mcp import mcp
from maniple.cli.options import (
    SAVE_FORMATS,
    ConfigOption,
    HostOption,
    InsecureOption,
    JsonEventsOption,
    NoColorOption,
    PortOption,
    finish,
    finish_service,
    has_keyboard,
    parse_budget,
    parse_members,
    read_settings,
    refuse_options,
    served_at,
)
from maniple.cli.schedules import schedules
from maniple.cli.store_admin import database, keys
from maniple.cli.threads import threads
from maniple.cli.trust import trust
from maniple.cli.webhooks import webhooks
from maniple.types import GENERAL, Depth, Effort, ReportStyle

if TYPE_CHECKING:
    from maniple.cli.chat.session import ChatSession
    from maniple.cli.render import Consoles
    from maniple.config import Settings

Mode = Literal["navigate", "execute", "scrape", "research", "auto"]
ServeRole = Literal["all", "api"]
Parsed = TypeVar("Parsed")
Strategy = Literal["react", "react_plus", "cot", "tot"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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
    """A team of agents that you use in the terminal, over HTTP, or as an MCP server.

    \b
    Examples:
      maniple chat                   start a conversation
      maniple chat "1+3=?"           ask one question
      maniple browse "…"             do a task in a web browser
      maniple search "…"             search the web as the team does
      maniple crawl URL              print a web page as the team reads it
      maniple threads list           list the conversations; show and export print and save one
      maniple serve                  start the HTTP API and the web page
      maniple batch FILE.jsonl       do each line of a file as a task
      maniple schedule add …         have the server start runs at given times
      maniple webhook add URL        have the server report the ends of runs
      maniple keys add NAME          create an API key for the HTTP API
      maniple mcp list               list the configured MCP servers and their tools
      maniple mcp serve              offer the team as tools to an MCP host
      maniple acp                    offer the team as an agent to an editor
      maniple trust                  let all settings of this folder apply
      maniple eval judge --set DIR   measure how well a model judges claims
      maniple completion bash        print a script for the Tab key; also zsh and fish
      maniple doctor                 check the set-up and show how to fix it

    \b
    Model: without any settings, a small model runs inside this program. To use a better
    one, set BASIC_API_KEY and BASIC_MODEL in .env, and BASIC_BASE_URL if it is not OpenAI's.

    \b
    Settings are read from environment variables, then .env, then conf.yaml; both files are
    looked for in the current folder. Every key of conf.yaml is also an environment variable:
    server.port is MANIPLE_SERVER__PORT. Of a folder that is not trusted only harmless settings
    apply; see maniple trust --help.

    \b
    Documentation: README.md and the folder docs in the repository. `maniple COMMAND --help`
    shows examples and exit statuses of a command.
    """


@app.command()
def chat(  # noqa: PLR0913 - typer reads the options from the signature
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="Ask this and exit; - reads it from standard input."),
    ] = None,
    json: JsonEventsOption = False,
    deep: Annotated[bool, typer.Option("--deep", help="Plan with the reasoning model.")] = False,
    depth: Annotated[
        Depth | None,
        typer.Option(
            "--depth",
            help="How far to research: one step, as planned, or in rounds.  [default: standard]",
            show_default=False,
        ),
    ] = None,
    search_first: Annotated[
        bool, typer.Option("--search-first", help="Search the web before planning.")
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Show the plan and wait for your approval.")
    ] = False,
    team: Annotated[
        str,
        typer.Option(
            "--team",
            metavar="A,B",
            help="Agents that may work on the question.  [default: all]",
            show_default=False,
        ),
    ] = "",
    agent: Annotated[
        str,
        typer.Option("--agent", metavar="manus", help="Let this agent answer alone.", show_default=False),
    ] = "",
    style: Annotated[
        ReportStyle | None,
        typer.Option("--style", help="The style of the report.  [default: report.style]", show_default=False),
    ] = None,
    thread: Annotated[
        str, typer.Option("--thread", metavar="ID", help="Continue this conversation.", show_default=False)
    ] = "",
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            exists=True,
            readable=True,
            help="Give the team a copy of this file or folder; repeatable.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        list[Path] | None,
        typer.Option(
            "--save",
            metavar="PATH",
            dir_okay=False,
            help=f"Save the report ({SAVE_FORMATS}); repeatable; replaces a file.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write the report and the files that the team made into this folder; replaces nothing.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--continue", help="Continue the last run that was cut off, then exit.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="With --thread: do what its last run has not done, then exit.")
    ] = False,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Another model for this session: NAME, TYPE=NAME or ROLE=TYPE; repeatable. Types: "
            "basic, reasoning, vision; /model lists all.",
            show_default=False,
        ),
    ] = None,
    effort: Annotated[
        Effort | None,
        typer.Option(
            "--effort",
            help="How much the models are to reason.  [default: as they do by themselves]",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="NAME=N,…",
            help="Most tokens, seconds, model_calls, tool_calls or cost of each question.  "
            "[default: runs.budget]",
            show_default=False,
        ),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the errors themselves below the reasons of failed steps.")
    ] = False,
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """Ask the team one question, or start a conversation.

    \b
    Examples:
      maniple chat                                  start a conversation; /help lists commands
      maniple chat "1+3=?"                          ask one question and exit
      maniple chat --deep --search-first "Compare …"
      maniple chat --depth deep "…"                 sub-questions, then rounds on open ones
      maniple chat --team researcher,coder "…"      only these agents, and the reporter
      maniple chat --agent manus "…"                one agent with every tool, without a plan
      maniple chat --review "…"                     approve or edit the plan before it runs
      maniple chat -m gpt-4o-mini "…"               another model of the same endpoint
      maniple chat -m reasoning=o3 -m coder=reasoning "…"   by type, and by role
      maniple chat --effort low "…"                 shorter thoughts, where the models take it
      maniple chat --budget tokens=200k,seconds=600 "…"   then report what there is
      maniple chat --file sales.csv "Sum it up"     the team works on a copy of the file
      maniple chat --file letters "File by year"    and of a folder; hidden files are left out
      maniple chat --thread 1a2b3c4d "And 1+4?"     continue a conversation; /threads lists IDs
      maniple chat "…" --save report.docx           save the report with its figures, then exit
      maniple chat --thread 1a2b3c4d --save r.pdf   save the newest report of a conversation
      maniple chat "…" --out results                write the report and the files of the team
      maniple chat "…" > report.md                  only the report; progress goes to stderr
      git diff | maniple chat -                     read the question from standard input
      printf 'Who is …?\\n/sources\\n' | maniple chat  lines that are commands are run

    \b
    All lines of standard input are one question, also a text of several paragraphs. A line that
    is a command ends it: with /new between two questions, each is asked in its own conversation.
      maniple chat --json "…" | jq -r .event        one event a line

    \b
    Files that the team writes are listed after the answer. They stay in data_dir, a key of
    conf.yaml; --out DIR writes them into a folder of yours, beside report.md. To check models
    and tools, run: maniple doctor.

    \b
    Conversations are stored. If the program is killed during a run, the next conversation or
    --continue continues that run. Answer a run that waits for you with --thread ID "accept".
    Continue a run that failed, or left steps undone, with --thread ID --retry.

    \b
    Exit status: 0 completed, 1 failed, 2 wrong usage or settings, 3 the team waits for your
    answer, 4 the budget ran out and the report is partial, 130 cancelled, 128 + N ended by
    signal N.
    """
    _require_compatible(asks=bool(question), has_files=bool(files), thread=thread, resume=resume, retry=retry)
    exports = bool(save or out) and bool(thread) and not question and not (resume or retry)
    of_question: dict[str, object] = {
        **{"--deep": deep, "--depth": depth, "--search-first": search_first, "--review": review},
        **{"--team": team, "--agent": agent, "--style": style, "--file": files},
        **{"--budget": budget, "--effort": effort},
    }
    if resume or retry:
        refuse_options(of_question, "cannot be combined with --continue or --retry: a run keeps its own.")
    elif exports:
        refuse_options({**of_question, "--model": models}, "needs a question.")
    asks = not (resume or retry or exports)
    if (save or out) and asks and not question and has_keyboard():
        raise typer.BadParameter("needs a question or --thread ID.", param_hint="--save" if save else "--out")
    text = _read_question(question or [], json=json) if asks else None
    settings = read_settings(config, opens_team=True)
    _require_known_agent(agent)
    from maniple.cli.chat import ChatOptions
    from maniple.cli.render import Consoles

    members = _parse_option("--team", lambda: parse_members([team], settings.team.enabled))
    limits = _parse_option("--budget", lambda: parse_budget(budget, settings.models)) if budget else None
    from maniple.cli.chat import ask_once, converse, enter_lines, export_report

    is_conversation = asks and text is None
    options = ChatOptions(
        *(members, deep, search_first, review, json, thread),
        resume=is_conversation or resume,
        resume_only=resume,
        files=tuple(files or ()),
        agent=agent,
        style=style or "",
        save=tuple(save or ()),
        out=out,
        retry=retry,
        depth=depth,
        effort=effort,
        config=config,
        budget=limits,
        models=tuple(models or ()),
    )
    consoles = Consoles.of_this_process(color=not no_color, verbose=verbose)
    if exports:
        work = export_report(settings, options, consoles)
    elif is_conversation:
        work = converse(settings, options, consoles)
    elif text is not None and not question and "/" in {line[:1] for line in text.splitlines()}:
        work = enter_lines(text, settings, options, consoles)
    else:
        at_terminal = consoles.is_live and has_keyboard()
        work = ask_once(text, settings, options, consoles, at_terminal=at_terminal)
    finish(work)


def _require_compatible(*, asks: bool, has_files: bool, thread: str, resume: bool, retry: bool) -> None:
    if resume and (asks or has_files):
        raise typer.BadParameter(
            "cannot be combined with a question or --file. Continue the run first, then ask.",
            param_hint="--continue",
        )
    if retry and (asks or resume or not thread):
        raise typer.BadParameter(
            "needs --thread ID, and cannot be combined with a question or --continue.", param_hint="--retry"
        )


def _parse_option(hint: str, parse: Callable[[], Parsed]) -> Parsed:
    """Return what `parse` returns; its `ValueError` is reported as the error of an option."""
    try:
        return parse()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error


def _require_known_agent(agent: str) -> None:
    if agent not in ("", GENERAL):
        raise typer.BadParameter(f"{agent!r} cannot answer alone; only {GENERAL} can.", param_hint="--agent")


def _read_question(words: list[str], *, json: bool) -> str | None:
    """Return the question from the arguments or standard input; None starts a conversation."""
    if words and words != ["-"]:
        # Bytes that are not valid text arrive as surrogates, which no model endpoint accepts.
        text = " ".join(words).encode("utf-8", "replace").decode()
    elif words or not has_keyboard():
        text = sys.stdin.read() if sys.stdin else ""
    elif json or not sys.stdout.isatty():
        raise typer.BadParameter("a conversation needs a terminal; give a question.", param_hint="QUESTION")
    else:
        return None
    if not text.strip():
        raise typer.BadParameter("the question is empty; give one here or piped.", param_hint="QUESTION")
    return text.strip()


@app.command()
def browse(  # noqa: PLR0913 - typer reads the options from the signature
    task: Annotated[list[str], typer.Argument(metavar="TASK", help="What to do or to find out.")],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Start at this page.", show_default=False)
    ] = "",
    mode: Annotated[
        Mode | None,
        typer.Option("--mode", help="Kind of task; see above.  [default: auto]", show_default=False),
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="How the agent reasons.  [default: react]", show_default=False),
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser while it works.")] = False,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page of the run.  [default: only with --headed]",
            show_default=False,
        ),
    ] = None,
    json: JsonEventsOption = False,
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """Do a task in a web browser and record every step.

    \b
    Examples:
      maniple browse --url shop.example "What does the blue hat cost?"
      maniple browse --mode scrape --url news.example "All headlines as JSON" > headlines.json
      maniple browse --mode execute --headed "Fill in the form at https://…"
      maniple browse --json "…" | jq -r 'select(.event == "browser_step")'

    \b
    Modes: navigate opens pages, execute acts on them, scrape extracts data, research explores;
    auto decides for itself. Strategies: react, react_plus (checks each step before the next),
    cot (reasons step by step), tot (compares several next steps; makes the most model calls).
    Set the defaults with browser.browsing.mode and browser.browsing.strategy in conf.yaml.

    \b
    When the run ends, its page is written to data_dir: the question, the result, each step with
    its screenshot, and the recording. The page is opened, or its path is printed.
    docs/browser.md describes the browser and its settings.

    \b
    Exit status: as for maniple chat; 1 also if no Chromium is installed.
    """
    text = " ".join(task).encode("utf-8", "replace").decode().strip()
    if not text:
        raise typer.BadParameter("the task is empty.", param_hint="TASK")
    settings = _browsing_settings(read_settings(config, opens_team=True), mode, strategy, headed=headed)
    from maniple.cli.chat import ChatOptions, ask_once
    from maniple.cli.render import Consoles

    consoles = Consoles.of_this_process(color=not no_color)
    opens_page = headed if opens is None else opens

    async def show_page(session: "ChatSession") -> None:
        await _show_run_page(session, consoles, opens=opens_page)

    at_terminal = consoles.is_live and has_keyboard()
    address = parse_start_page(url)
    options = ChatOptions(json=json, agent="browser", start_page=address, config=config)
    # The first line is the title of the run.
    question = f"{text}\nBegin at {address}" if address else text
    finish(ask_once(question, settings, options, consoles, at_terminal=at_terminal, afterwards=show_page))


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


def parse_start_page(url: str) -> str:
    """Return the full address of the page to start at; raises `BadParameter` if `url` is no web address."""
    if not url:
        return ""
    from maniple.browser.arguments import complete_url

    address = complete_url(url)
    if not _is_web_address(address):
        raise typer.BadParameter("is not the address of a web page.", param_hint="--url")
    return address


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_host and not any(character.isspace() for character in address)


async def _show_run_page(session: "ChatSession", consoles: "Consoles", *, opens: bool) -> None:
    from maniple.cli.chat.saved_files import open_page, write_page
    from maniple.errors import ManipleError

    try:
        path = await write_page(session)
    except ManipleError as error:
        consoles.note(str(error), "yellow")
        return
    if path is None:
        return
    consoles.note(f"Page of the run: {path}", "dim")
    if opens and not await open_page(path):
        consoles.note("The page was not opened: no web browser was found on this machine.", "yellow")


app.command("batch")(batch)
app.command("search")(search)
app.command("crawl")(crawl)


@app.command()
def serve(
    host: HostOption = None,
    port: PortOption = None,
    insecure: InsecureOption = False,
    opens_page: Annotated[
        bool, typer.Option("--open", help="Open the web page in a browser when it is served.")
    ] = False,
    role: Annotated[
        ServeRole, typer.Option(help="With PostgreSQL: all, or api, which leaves runs to maniple work.")
    ] = "all",
    config: ConfigOption = None,
) -> None:
    """Serve the web page and the HTTP API.

    \b
    Examples:
      maniple serve
      maniple serve --open
      maniple serve --port 9000
      curl -N localhost:8000/api/chat/stream -H 'content-type: application/json' \\
           -d '{"messages": [{"role": "user", "content": "1+3=?"}]}'

    \b
    Open http://127.0.0.1:8000/ in a browser for the web page; /docs documents the API, and
    docs/http.md shows each route with a command to try.

    \b
    Ctrl-C or SIGTERM stops the service; runs in progress continue at the next start. To serve
    other machines, first create an API key: maniple keys add NAME. Address and port are also
    server.host and server.port in conf.yaml, or MANIPLE_SERVER__PORT in .env.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings, for
    example a port that is in use.
    """
    settings = read_settings(config, opens_team=True)
    from maniple.cli.process import pause_garbage_collection

    with pause_garbage_collection():
        from maniple.cli.services import serve as serve_until_stopped

    served = served_at(settings, host, port, insecure)
    finish_service(serve_until_stopped(served, opens_page=opens_page, role=role))


@app.command()
def doctor(  # noqa: PLR0913 - typer reads the options from the signature
    json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Test what each model can do, with five short calls.")
    ] = False,
    build: Annotated[
        bool,
        typer.Option(help="Install the Python packages of the sandbox if missing: a minute, once."),
    ] = True,
    packages: Annotated[
        bool, typer.Option("--packages", help="Only install and test these packages; 0 if all work.")
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Install what is missing, each part after your consent.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Consent to all that --fix installs.")] = False,
    config: ConfigOption = None,
) -> None:
    """Check models, tools and folders, and show fixes.

    \b
    Examples:
      maniple doctor                          check the settings of this folder
      maniple doctor --config team/conf.yaml  check other settings
      maniple doctor --fix                    install what is missing, after asking
      maniple doctor --probe                  test what the models can do
      maniple doctor --json | jq .ok          output for programs

    \b
    Each line begins with ✔ (works), ! (missing, but the team can work without it) or
    ✘ (prevents every answer); a line with → shows the fix. Configure a model in .env with
    BASIC_API_KEY, BASIC_MODEL and BASIC_BASE_URL; for better web search, add TAVILY_API_KEY or
    BRAVE_API_KEY.

    \b
    Exit status: 0 the team can answer, 1 it cannot, 2 wrong usage.
    """
    from maniple.cli.doctor import examine, prepare
    from maniple.cli.doctor import fix as install_missing

    if yes and not fix:
        raise typer.BadParameter("is for --fix.", param_hint="--yes")
    if fix:
        finish(install_missing(config, consents=yes, can_ask=has_keyboard()))
    finish(prepare(config) if packages else examine(config, as_json=json, probe=probe, build=build))


@app.command()
def acp(config: ConfigOption = None) -> None:
    """Offer the team to an editor that speaks the Agent Client Protocol, such as Zed.

    \b
    Example:
      maniple acp     started by an editor; docs/protocols.md has its settings

    \b
    Sessions are conversations like those of maniple serve and maniple chat: a run in progress
    when this program ends continues at the next start, and the editor can load the session.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings.
    """
    settings = read_settings(config, opens_team=True)
    from maniple.cli.services import serve_acp_stdio

    finish_service(serve_acp_stdio(settings))


app.command("trust")(trust)
app.command("completion")(completion)
app.command("work")(work)
app.command("runs")(runs)
app.add_typer(evaluation)
app.add_typer(threads)
app.add_typer(schedules)
app.add_typer(webhooks)
app.add_typer(keys)
app.add_typer(database)
app.add_typer(mcp)
