"""`maniple search` and `maniple crawl`: what the agents' search and page-reading tools return."""

from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, NoColorOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.cli.render import Consoles
    from maniple.config import Settings
    from maniple.crawler import Article
    from maniple.search import SearchAnswer

_MAX_RESULTS = 20


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Search terms.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print the tool's result: a JSON array.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=_MAX_RESULTS, help="Most results.  [default: search.max_results, 5]"),
    ] = None,
    provider: Annotated[
        str,
        typer.Option("--provider", metavar="NAME", help="Ask only this provider.", show_default=False),
    ] = "",
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """Search the web as the researcher does.

    \b
    Examples:
      maniple search "stone arch bridges"
      maniple search --json --limit 10 "stone arch bridges" | jq -r '.[].url'
      maniple search --provider arxiv "attention is all you need"
      maniple search --provider folder "travel expenses"

    \b
    Providers: folder, tavily, brave, searxng, ddgs, wikipedia, and for papers arxiv, crossref,
    openalex, pubmed, semantic_scholar. Choose them with search.providers in conf.yaml; by default
    those with a key in .env are asked, then ddgs and wikipedia. docs/search.md describes them.

    \b
    Exit status: 0 a provider answered, even without results, 1 none answered, 2 wrong usage or
    settings, for example a missing key.
    """
    settings = read_settings(config)
    if provider:
        settings = _with_provider(settings, provider)
    from maniple.cli.render import Consoles

    consoles = Consoles.of_this_process(color=not no_color)
    finish(_search(settings, " ".join(query), limit, consoles, as_json=json))


def _with_provider(settings: "Settings", provider: str) -> "Settings":
    from maniple.config.web_settings import BUILT_IN_PROVIDERS

    if provider not in BUILT_IN_PROVIDERS and provider not in (others := settings.search.other_providers()):
        known = ", ".join((*BUILT_IN_PROVIDERS, *sorted(others)))
        raise typer.BadParameter(f"choose one of {known}.", param_hint="--provider")
    chosen = settings.search.model_copy(update={"providers": (provider,)})
    return settings.model_copy(update={"search": chosen})


async def _search(
    settings: "Settings", query: str, limit: int | None, consoles: "Consoles", *, as_json: bool
) -> int:
    import asyncio
    import logging

    from maniple.capabilities.extensions import document_loaders
    from maniple.cli.process import WrongUsage
    from maniple.errors import Unavailable
    from maniple.reading.fork_server import ForkServer
    from maniple.search import SearchContext, open_chain
    from maniple.tools.web import open_document_folder

    # Failures are printed below; without a handler Python would print the log as well.
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    readers = ForkServer(await asyncio.to_thread(document_loaders, settings))
    context = SearchContext(folder=await asyncio.to_thread(open_document_folder, settings, readers))
    try:
        async with open_chain(settings.search, context) as chain:
            answer = await chain.ask(query, limit=limit or settings.search.max_results)
            gaps = await chain.find_gaps()
    except Unavailable as error:
        raise WrongUsage(str(error)) from error
    finally:
        readers.close()
    _print_failures(answer, consoles)
    if gaps.text:
        consoles.note(gaps.text, "yellow")
    if as_json:
        _print_json(answer)
    else:
        _print_hits(answer, consoles)
    return 0


def _print_json(answer: "SearchAnswer") -> None:
    import json

    from maniple.search.provider import hit_to_dict

    print(json.dumps([hit_to_dict(hit) for hit in answer.hits], ensure_ascii=False, indent=2))


def _print_failures(answer: "SearchAnswer", consoles: "Consoles") -> None:
    for name, reason in answer.failures.items():
        consoles.note(f"{name}: {reason}", "yellow")
    if not answer.hits:
        consoles.note("Nothing was found.")


def _print_hits(answer: "SearchAnswer", consoles: "Consoles") -> None:
    from rich.text import Text

    from maniple.cli.render.links import link_addresses
    from maniple.cli.text import clean

    console = consoles.output
    for number, hit in enumerate(answer.hits, start=1):
        if number > 1:
            console.print()
        head = Text.assemble((f"{number}. ", "dim"), (clean(hit.title), "bold"), (f"  {hit.source}", "dim"))
        about = clean("; ".join(filter(None, (hit.kind, hit.author, hit.publisher, hit.published))))
        url = Text.assemble((clean(hit.url), "cyan"), (f"  {about}" if about else "", "dim"))
        url = link_addresses(url) if consoles.links else url
        for line in (head, url, Text(clean(" ".join(hit.content.split())))):
            console.print(line, soft_wrap=not console.is_terminal)


def crawl(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the page, or folder:NAME. https:// is optional.")
    ],
    section: Annotated[
        str,
        typer.Option(
            "--section",
            metavar="NAME",
            help="Start at this heading, or number in the outline.",
            show_default=False,
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the page as one JSON object.")] = False,
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """Print a web page as the agents read it with their crawl_tool.

    \b
    Examples:
      maniple crawl https://example.com/article
      maniple crawl example.com > page.md        only the Markdown
      maniple crawl --section 3 example.com      continue a long page by its outline
      maniple crawl --json example.com | jq -r .title
      maniple crawl folder:notes.md              a document that maniple search found

    \b
    Only public addresses are read, and only what robots.txt allows. A page that is empty without
    JavaScript is opened in a browser, if one is installed. Limits and private networks are set
    with fetch in conf.yaml; with JINA_API_KEY in .env, Jina's reader fetches the page.
    docs/crawling.md describes this.

    \b
    Exit status: 0 printed, 1 the page cannot be read, 2 wrong usage or settings.
    """
    settings = read_settings(config)
    from maniple.cli.render import Consoles

    consoles = Consoles.of_this_process(color=not no_color)
    finish(_crawl(url, section, settings, consoles, as_json=json))


async def _crawl(url: str, section: str, settings: "Settings", consoles: "Consoles", *, as_json: bool) -> int:
    import asyncio

    from maniple.browser import open_browser
    from maniple.capabilities.extensions import document_loaders
    from maniple.capabilities.research import rendering
    from maniple.crawler import Crawler
    from maniple.errors import Unavailable
    from maniple.reading.fork_server import ForkServer
    from maniple.sandbox import find_chromium_isolation
    from maniple.search.providers.folder import SCHEME
    from maniple.tools.web import add_documents, open_document_folder

    # The user may read the folder even if the team does not search it, as with `search --provider folder`.
    fork_server = ForkServer(await asyncio.to_thread(document_loaders, settings))
    own = settings.search.model_copy(update={"providers": ("folder",)})
    own_settings = settings.model_copy(update={"search": own})
    folder = await asyncio.to_thread(open_document_folder, own_settings, fork_server)
    address = url if "://" in url or (folder and url.startswith(SCHEME)) else f"https://{url}"
    async with AsyncExitStack() as stack:
        stack.callback(fork_server.close)
        if folder:
            await stack.enter_async_context(aclosing(folder))
        opening = open_browser(settings.browser, isolation=find_chromium_isolation(settings.sandbox))
        try:
            render = rendering(await stack.enter_async_context(opening))
        except Unavailable:  # pages that are whole without JavaScript can still be read
            render = None
        crawler = Crawler(settings.fetch, render, fork_server)
        article = await add_documents(settings, crawler, folder, fork_server).crawl(address, section)
    _print_article(article, consoles, as_json=as_json)
    return 0


def _print_article(article: "Article", consoles: "Consoles", *, as_json: bool) -> None:
    from maniple.cli.text import clean

    if as_json:
        from dataclasses import asdict

        from maniple.cli.text import json_line

        data = asdict(article)
        # The rest of a long document, state of the outline, and the bytes of a picture.
        del data["whole"], data["was_named"], data["picture"]
        print(json_line(data))
        return
    text = clean(article.text)
    if consoles.is_live:
        from maniple.cli.render.document_text import SafeMarkdown

        consoles.output.print(SafeMarkdown(text, links=consoles.links))
    else:
        print(text)
