"""Search of the web and of a folder of documents."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace

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
from maniple.search.provider import ProviderSpec, SearchContext, SearchHit, SearchProvider
from maniple.search.providers import missing_settings, parse_options, select_providers
from maniple.search.providers.folder import FolderSearch

__all__ = [
    "FolderSearch",
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
    "select_providers",
]


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
    async with AsyncExitStack() as stack:
        providers: dict[str, SearchProvider] = {}
        for spec in specs:
            own_context = replace(context, options=parse_options(spec, settings))
            provider = await asyncio.to_thread(spec.create, settings, own_context)
            providers[spec.name] = await stack.enter_async_context(aclosing(provider))
        yield SearchChain(
            providers,
            merges=settings.mode == "merged",
            timeout_seconds=settings.timeout_seconds,
            total_seconds=settings.total_seconds,
            servers={spec.name: spec.servers(settings) for spec in specs},
        )
