"""Who answers a search, by the settings."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from maniple.config.search_settings import PROVIDERS, ProviderName, SearchSettings
from maniple.search.arxiv import ArxivSearch
from maniple.search.brave import BraveSearch
from maniple.search.cache import RunCache
from maniple.search.chain import SearchChain
from maniple.search.folder import FolderSearch
from maniple.search.metasearch import Metasearch
from maniple.search.provider import SearchProvider
from maniple.search.searxng import SearxngSearch
from maniple.search.tavily import TavilySearch
from maniple.search.wikipedia import WikipediaSearch
from maniple.types import Unavailable

_OFF = Unavailable("Search is turned off: search.providers is empty.", "set search.providers in conf.yaml.")


class _Closing(SearchProvider, Protocol):
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What searching knows of the place it is used in."""

    run_key: Callable[[], str] = str
    """Names the run that is being worked for; "" outside of one."""
    locale: Callable[[], str] = str
    """The conversation's language, such as `de-DE`; "" when it is not known."""
    folder: FolderSearch | None = None
    """The documents at `search.folder`."""


@asynccontextmanager
async def open_search(
    settings: SearchSettings, surroundings: Surroundings | None = None
) -> AsyncIterator[SearchProvider | Unavailable]:
    """Search with a memory for each run, or why there is none. Nothing is connected before it is used."""
    surroundings = surroundings or Surroundings()
    async with open_chain(settings, surroundings) as chain:
        yield chain if isinstance(chain, Unavailable) else RunCache(chain, surroundings.run_key)


@asynccontextmanager
async def open_chain(
    settings: SearchSettings, surroundings: Surroundings | None = None
) -> AsyncIterator[SearchChain | Unavailable]:
    """The providers that the settings name and equip, or why there is none."""
    missing = lacking(settings)
    names: list[ProviderName] = [name for name in settings.order if name not in missing]
    if not names:
        remedies = " or ".join(missing.values())
        reason = f"Search lacks what it needs for {', '.join(missing)}."
        yield Unavailable(reason, f"set {remedies}.") if missing else _OFF
        return
    async with AsyncExitStack() as stack:
        providers: dict[str, SearchProvider] = {}
        for name in names:
            made = _made(name, settings, surroundings or Surroundings())
            providers[name] = await stack.enter_async_context(aclosing(made))
        yield SearchChain(
            providers,
            merges=settings.mode == "merged",
            timeout_seconds=settings.timeout_seconds,
            total_seconds=settings.total_seconds,
        )


def lacking(settings: SearchSettings) -> Mapping[ProviderName, str]:
    """Return which of the named providers cannot be asked, each with the setting that it wants."""
    wants: Mapping[ProviderName, str] = {
        "folder": "" if settings.folder else "search.folder",
        "tavily": "" if settings.tavily_api_key else "TAVILY_API_KEY",
        "brave": "" if settings.brave_api_key else "BRAVE_API_KEY",
        "searxng": "" if settings.searxng_url else "SEARXNG_URL",
        "ddgs": "" if settings.engines else "search.engines",
    }
    return {name: wants[name] for name in PROVIDERS if name in settings.order and wants.get(name)}


def _made(name: ProviderName, settings: SearchSettings, surroundings: Surroundings) -> _Closing:
    match name:
        case "folder":
            assert surroundings.folder is not None, "who opens search makes its folder, too"
            return surroundings.folder
        case "tavily":
            return TavilySearch(settings)
        case "brave":
            return BraveSearch(settings)
        case "searxng":
            return SearxngSearch(settings)
        case "ddgs":
            return Metasearch(settings, surroundings.locale)
        case "wikipedia":
            return WikipediaSearch(settings, surroundings.locale)
        case "arxiv":
            return ArxivSearch(settings)
