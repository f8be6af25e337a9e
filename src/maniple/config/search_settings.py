"""Settings of search: the providers, their order, and their keys."""

import pkgutil
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from maniple.config.section import Section
from maniple.config.values import ApiKey, EndpointUrl, UserPath

PROVIDER_GROUP = "maniple.search"
"""The entry point group in which other packages register search providers."""
# Names only: the modules belong to a higher layer, and importing them would load an HTTP client.
BUILT_IN_PROVIDERS: tuple[str, ...] = tuple(
    sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parents[1] / "search/providers")])
    )
)
"""The values of `search.providers` that need no other package."""

SearchEngine = Literal["duckduckgo", "brave", "mojeek", "startpage", "yahoo"]


def provider_entry_points() -> Mapping[str, EntryPoint]:
    """Return the search providers of other installed packages, by name. Blocks on disk."""
    return {point.name: point for point in entry_points(group=PROVIDER_GROUP)}


def _check_providers(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if unknown := [name for name in names or () if name not in BUILT_IN_PROVIDERS]:
        others = provider_entry_points()
        for name in unknown:
            if name not in others:
                known = ", ".join((*BUILT_IN_PROVIDERS, *sorted(others)))
                raise ValueError(f"there is no search provider {name!r}; known: {known}")
    return None if names is None else tuple(dict.fromkeys(names))


class SearchSettings(Section):
    """Search of the web and of a folder of documents."""

    providers: Annotated[tuple[str, ...] | None, AfterValidator(_check_providers)] = None
    """The providers, in the order in which they are asked; an empty list turns search off. Default: those
    whose key, address or folder is set, then `ddgs` and `wikipedia`, which need none."""
    mode: Literal["first", "merged"] = "first"
    """`first`: ask the next provider when one fails or finds nothing; `merged`: ask all concurrently."""
    max_results: int = Field(default=5, gt=0, le=20)
    timeout_seconds: float = Field(default=10, gt=0)
    """For one provider."""
    total_seconds: float = Field(default=30, gt=0)
    """For all providers together."""
    tavily_api_key: ApiKey = None
    tavily_base_url: str = "https://api.tavily.com"
    brave_api_key: ApiKey = None
    searxng_url: EndpointUrl = None
    engines: tuple[SearchEngine, ...] = ("duckduckgo", "brave", "mojeek")
    """The engines of `ddgs`, asked one after the other until one finds something."""
    folder: UserPath | None = None
    """A folder of documents to search: text, Markdown and every other format that the crawler reads."""
    language: str = Field(default="en", pattern=r"^[a-z]{2,12}(-[a-z]{2,8})?$")
    """The Wikipedia to ask when neither the query nor the conversation's locale determines a language."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of providers that declare some of their own, by the provider's name."""
