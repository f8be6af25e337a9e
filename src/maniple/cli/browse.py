"""`maniple browse`: a task done in the browser, by the browser's agent alone."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.cli.screens import Screens
    from maniple.cli.session import Session
    from maniple.config import Settings

Mode = Literal["navigate", "execute", "scrape", "research", "auto"]
Strategy = Literal["react", "react_plus", "cot", "tot"]


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
    settings = _set(read_settings(config), mode, strategy, headed=headed)
    from maniple.cli.chat import ask_once
    from maniple.cli.opening import Choices
    from maniple.cli.screens import Screens

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


def _set(settings: "Settings", mode: Mode | None, strategy: Strategy | None, *, headed: bool) -> "Settings":
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
    from maniple.cli.run_pages import open_page, write_page
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
