"""`maniple search`: what the team's search tool would give, for a person or a program."""

from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.search import Answer

_MOST = 20


def search(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What to look for.", show_default=False)
    ],
    json: Annotated[bool, typer.Option("--json", help="Print what the tool gives: a JSON array.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST, help="Results at most.  [default: search.max_results, 5]"),
    ] = None,
    provider: Annotated[
        str,
        typer.Option("--provider", metavar="NAME", help="Ask only this one.", show_default=False),
    ] = "",
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours. NO_COLOR does the same.")] = False,
    config: ConfigOption = None,
) -> None:
    """Search as the researcher does, and say who answered.

    \b
    Examples:
      maniple search "stone arch bridges"
      maniple search --json --limit 10 "stone arch bridges" | jq -r '.[].url'
      maniple search --provider arxiv "attention is all you need"
      maniple search --provider folder "travel expenses"

    \b
    Who is asked: search.providers of conf.yaml, without it those with a key, then ddgs and
    wikipedia. Names: folder, tavily, brave, searxng, ddgs, wikipedia, arxiv.

    \b
    Exit status: 0 somebody answered, even if nothing was found, 1 nobody did, 2 wrong usage or
    settings, such as a missing key.
    """
    settings = read_settings(config)
    if provider:
        settings = _only(settings, provider)
    finish(_look_up(settings, " ".join(query), limit, as_json=json, color=not no_color))


def _only(settings: "Settings", provider: str) -> "Settings":
    from maniple.config.search_settings import PROVIDERS

    if provider not in PROVIDERS:
        raise typer.BadParameter(f"there are {', '.join(PROVIDERS)}.", param_hint="--provider")
    chosen = settings.search.model_copy(update={"providers": (provider,)})
    return settings.model_copy(update={"search": chosen})


async def _look_up(settings: "Settings", query: str, limit: int | None, *, as_json: bool, color: bool) -> int:
    import logging

    from maniple.cli.ending import WrongUsage
    from maniple.search import Surroundings, Unavailable, open_chain
    from maniple.tools.documents import open_folder

    # Who fails is told below; without a handler the log would tell it, too.
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    surroundings = Surroundings(folder=open_folder(settings.search))
    async with open_chain(settings.search, surroundings) as chain:
        if isinstance(chain, Unavailable):
            raise WrongUsage(str(chain))
        answer = await chain.ask(query, limit=limit or settings.search.max_results)
    _print_notes(answer, color=color)
    if as_json:
        _print_json(answer)
    else:
        _print_hits(answer, color=color)
    return 0


def _print_json(answer: "Answer") -> None:
    import json

    from maniple.search.hits import as_told

    print(json.dumps([as_told(hit) for hit in answer.hits], ensure_ascii=False, indent=2))


def _print_notes(answer: "Answer", *, color: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from maniple.cli.untrusted import clean

    console = Console(stderr=True, no_color=not color or None)
    for name, reason in answer.failures.items():
        console.print(Text(clean(f"{name}: {reason}"), style="yellow"), soft_wrap=True)
    if not answer.hits:
        console.print("Nothing was found.")


def _print_hits(answer: "Answer", *, color: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from maniple.cli.untrusted import clean

    console = Console(no_color=not color or None)
    for number, hit in enumerate(answer.hits, start=1):
        if number > 1:
            console.print()
        head = Text.assemble((f"{number}. ", "dim"), (clean(hit.title), "bold"), (f"  {hit.source}", "dim"))
        for line in (head, Text(clean(hit.url), style="cyan"), Text(clean(" ".join(hit.content.split())))):
            console.print(line, soft_wrap=not console.is_terminal)
