"""Search of the web and of a folder of documents."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from maniple.config.web_settings import SearchSettings
from maniple.errors import Unavailable
from maniple.search.chain import (
    RunSearchCache,
    SearchAnswer,
    SearchChain,
    SearchGaps,
    find_gaps,
    find_outage,
)
from maniple.search.papers import PaperSearch
from maniple.search.provider import ProviderSpec, SearchContext, SearchHit, SearchProvider
from maniple.search.providers import missing_settings, parse_options, select_papers, select_providers
from maniple.search.providers.folder import FolderSearch

__all__ = [
    "FolderSearch",
    "OpenSearch",
    "PaperSearch",
    "ProviderSpec",
    "SearchAnswer",
    "SearchChain",
    "SearchContext",
    "SearchGaps",
    "SearchHit",
    "SearchProvider",
    "find_gaps",
    "find_outage",
    "missing_settings",
    "open_chain",
    "open_search",
    "open_searches",
    "select_papers",
    "select_providers",
]


@dataclass(frozen=True, slots=True)
class OpenSearch:
    """The searches of a team. Their providers are shared, and so are the pauses that these must make."""

    web: SearchChain
    papers: PaperSearch | None
    """None where no provider of papers is selected."""


@asynccontextmanager
async def open_search(
    settings: SearchSettings, context: SearchContext | None = None
) -> AsyncIterator[SearchProvider]:
    """Open search with a cache for each run, as `open_chain` does. Connects on first use."""
    context = context or SearchContext()
    async with open_chain(settings, context) as chain:
        yield RunSearchCache(chain, context.run_key)


@asynccontextmanager
async def open_chain(
    settings: SearchSettings, context: SearchContext | None = None
) -> AsyncIterator[SearchChain]:
    """Open the search of `search.providers`; raises what `open_searches` does."""
    async with open_searches(settings, context) as searches:
        yield searches.web


@asynccontextmanager
async def open_searches(
    settings: SearchSettings, context: SearchContext | None = None
) -> AsyncIterator[OpenSearch]:
    """Open the selected providers that have their settings; raises `Unavailable` where there is none.

    Raises `ConfigError` where a provider of another package cannot be imported or its options are wrong.
    """
    context = context or SearchContext()
    # Packages of others are imported, and their providers made, which may block.
    missing = await asyncio.to_thread(missing_settings, settings)
    specs = [spec for spec in await asyncio.to_thread(select_providers, settings) if spec.name not in missing]
    if not specs and not missing:
        reason = "Search is turned off: search.providers is empty."
        raise Unavailable(reason, "set search.providers in conf.yaml.")
    if not specs:
        reason = f"Search lacks the settings of {', '.join(missing)}."
        raise Unavailable(reason, f"set {' or '.join(missing.values())}.")
    papers = [spec for spec in await asyncio.to_thread(select_papers, settings) if spec.name not in missing]
    async with AsyncExitStack() as stack:
        providers: dict[str, SearchProvider] = {}
        for spec in {spec.name: spec for spec in (*specs, *papers)}.values():
            own_context = replace(context, options=parse_options(spec, settings))
            provider = await asyncio.to_thread(spec.create, settings, own_context)
            providers[spec.name] = await stack.enter_async_context(aclosing(provider))
        web = _chain(specs, providers, settings, merges=settings.mode == "merged")
        of_papers = PaperSearch(_chain(papers, providers, settings, merges=True)) if papers else None
        yield OpenSearch(web, of_papers)


def _chain(
    specs: Sequence[ProviderSpec],
    providers: Mapping[str, SearchProvider],
    settings: SearchSettings,
    *,
    merges: bool,
) -> SearchChain:
    return SearchChain(
        {spec.name: providers[spec.name] for spec in specs},
        merges=merges,
        timeout_seconds=settings.timeout_seconds,
        total_seconds=settings.total_seconds,
        servers={spec.name: spec.servers(settings) for spec in specs},
    )
