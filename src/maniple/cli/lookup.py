"""Commands that look something up: search and crawl."""

from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.cli.render import Screens
    from maniple.config import Settings
    from maniple.crawler import Article
    from maniple.search import SearchAnswer

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
    from maniple.config.search_settings import BUILT_IN_PROVIDERS, provider_entry_points

    if provider not in BUILT_IN_PROVIDERS and provider not in (others := provider_entry_points()):
        known = ", ".join((*BUILT_IN_PROVIDERS, *sorted(others)))
        raise typer.BadParameter(f"choose one of {known}.", param_hint="--provider")
    chosen = settings.search.model_copy(update={"providers": (provider,)})
    return settings.model_copy(update={"search": chosen})


async def _look_up(settings: "Settings", query: str, limit: int | None, *, as_json: bool, color: bool) -> int:
    import logging

    from maniple.cli.exit_status import WrongUsage
    from maniple.search import SearchContext, Unavailable, open_chain
    from maniple.tools.web import open_folder

    # Who fails is told below; without a handler the log would tell it, too.
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    context = SearchContext(folder=open_folder(settings.search))
    async with open_chain(settings.search, context) as chain:
        if isinstance(chain, Unavailable):
            raise WrongUsage(str(chain))
        answer = await chain.ask(query, limit=limit or settings.search.max_results)
    _print_notes(answer, color=color)
    if as_json:
        _print_json(answer)
    else:
        _print_hits(answer, color=color)
    return 0


def _print_json(answer: "SearchAnswer") -> None:
    import json

    from maniple.search.provider import hit_to_dict

    print(json.dumps([hit_to_dict(hit) for hit in answer.hits], ensure_ascii=False, indent=2))


def _print_notes(answer: "SearchAnswer", *, color: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from maniple.cli.text import clean

    console = Console(stderr=True, no_color=not color or None)
    for name, reason in answer.failures.items():
        console.print(Text(clean(f"{name}: {reason}"), style="yellow"), soft_wrap=True)
    if not answer.hits:
        console.print("Nothing was found.")


def _print_hits(answer: "SearchAnswer", *, color: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from maniple.cli.text import clean

    console = Console(no_color=not color or None)
    for number, hit in enumerate(answer.hits, start=1):
        if number > 1:
            console.print()
        head = Text.assemble((f"{number}. ", "dim"), (clean(hit.title), "bold"), (f"  {hit.source}", "dim"))
        for line in (head, Text(clean(hit.url), style="cyan"), Text(clean(" ".join(hit.content.split())))):
            console.print(line, soft_wrap=not console.is_terminal)


def crawl(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The page; https:// may be left out. Or folder:NAME.")
    ],
    section: Annotated[
        str,
        typer.Option(
            "--section",
            metavar="NAME",
            help="Begin at this heading or number of the outline.",
            show_default=False,
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours. NO_COLOR does the same.")] = False,
    config: ConfigOption = None,
) -> None:
    """Read a page as the team does, and print what its crawl_tool would give.

    \b
    Examples:
      maniple crawl https://example.com/article
      maniple crawl example.com > page.md        only the Markdown
      maniple crawl --section 3 example.com      a long page has an outline to read on by
      maniple crawl --json example.com | jq -r .title
      maniple crawl folder:notes.md              a document that maniple search found

    \b
    Only public addresses are read, and nothing that the site's robots.txt forbids; a page that is
    empty without JavaScript is opened in the browser, if there is one. The keys of fetch in
    conf.yaml set limits and open networks; with JINA_API_KEY in .env Jina's reader fetches.

    \b
    Exit status: 0 read, 1 it cannot be read, 2 wrong usage or settings.
    """
    settings = read_settings(config)
    from maniple.cli.render import Screens

    screens = Screens.of_this_process(color=not no_color)
    finish(_read(url, section, settings, screens, as_json=json))


async def _read(url: str, section: str, settings: "Settings", screens: "Screens", *, as_json: bool) -> int:
    from maniple.browser import open_browser_if_any
    from maniple.crawler import Crawler
    from maniple.reading.fork_server import ForkServer
    from maniple.runtime.rendering import rendering
    from maniple.search.providers.folder import SCHEME
    from maniple.tools.web import open_folder, with_documents

    # As with `maniple search --provider folder`, whoever sits here may read it, searched by the team or not.
    fork_server = ForkServer()
    folder = open_folder(settings.search.model_copy(update={"providers": ("folder",)}), fork_server)
    address = url if "://" in url or (folder and url.startswith(SCHEME)) else f"https://{url}"
    async with AsyncExitStack() as stack:
        stack.callback(fork_server.close)
        if folder:
            await stack.enter_async_context(aclosing(folder))
        browser = await stack.enter_async_context(open_browser_if_any(settings.browser))
        crawler = Crawler(settings.fetch, rendering(browser), fork_server)
        article = await with_documents(settings, crawler, folder, fork_server).crawl(address, section)
    _print(article, screens, as_json=as_json)
    return 0


def _print(article: "Article", screens: "Screens", *, as_json: bool) -> None:
    from maniple.cli.text import clean

    if as_json:
        from dataclasses import asdict

        from maniple.cli.text import json_line

        # What is shown, without the rest of a long document and what only the outline wants to know.
        told = asdict(article)
        del told["whole"], told["was_named"]
        print(json_line(told))
        return
    text = clean(article.text)
    if screens.is_live:
        from maniple.cli.render.markdown import Prose

        screens.output.print(Prose(text))
    else:
        print(text)
