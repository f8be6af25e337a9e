"""`maniple crawl`: a page as the team would read it."""

from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.cli.screens import Screens
    from maniple.config import Settings
    from maniple.crawler import Article


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
    from maniple.cli.screens import Screens

    screens = Screens.of_this_process(color=not no_color)
    finish(_read(url, section, settings, screens, as_json=json))


async def _read(url: str, section: str, settings: "Settings", screens: "Screens", *, as_json: bool) -> int:
    from maniple.browser import open_browser_if_any
    from maniple.crawler import Crawler
    from maniple.reading.isolated import Nursery
    from maniple.runtime.rendering import rendering
    from maniple.search.folder import SCHEME
    from maniple.tools.documents import open_folder, with_documents

    # As with `maniple search --provider folder`, whoever sits here may read it, searched by the team or not.
    nursery = Nursery()
    folder = open_folder(settings.search.model_copy(update={"providers": ("folder",)}), nursery)
    address = url if "://" in url or (folder and url.startswith(SCHEME)) else f"https://{url}"
    async with AsyncExitStack() as stack:
        stack.callback(nursery.close)
        if folder:
            await stack.enter_async_context(aclosing(folder))
        browser = await stack.enter_async_context(open_browser_if_any(settings.browser))
        crawler = Crawler(settings.fetch, rendering(browser), nursery)
        article = await with_documents(settings, crawler, folder, nursery).crawl(address, section)
    _print(article, screens, as_json=as_json)
    return 0


def _print(article: "Article", screens: "Screens", *, as_json: bool) -> None:
    from maniple.cli.untrusted import clean

    if as_json:
        from dataclasses import asdict

        from maniple.cli.view import json_line

        # What is shown, without the rest of a long document and what only the outline wants to know.
        told = asdict(article)
        del told["whole"], told["was_named"]
        print(json_line(told))
        return
    text = clean(article.text)
    if screens.is_live:
        from maniple.cli.prose import Prose

        screens.output.print(Prose(text))
    else:
        print(text)
