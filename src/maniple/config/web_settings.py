"""Settings of web access: search, reading pages, and the browser."""

import pkgutil
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo, model_validator

from maniple.config.values import (
    HARMLESS,
    ApiKey,
    EndpointUrl,
    OptionalSecret,
    OptionalText,
    Reference,
    Section,
    UserPath,
)

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


def _entry_points(retrievers: Mapping[str, str]) -> Mapping[str, EntryPoint]:
    """Return the providers of other packages; a line of `search.retrievers` is like an entry point of one."""
    named = [EntryPoint(name, use, PROVIDER_GROUP) for name, use in retrievers.items()]
    return {point.name: point for point in (*entry_points(group=PROVIDER_GROUP), *named)}


def _check_retrievers(retrievers: dict[str, str]) -> dict[str, str]:
    if taken := [name for name in retrievers if name in BUILT_IN_PROVIDERS]:
        raise ValueError(f"{taken[0]} is a provider of maniple; choose another name")
    return retrievers


def _check_providers(names: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
    if unknown := [name for name in names or () if name not in BUILT_IN_PROVIDERS]:
        others = _entry_points(info.data.get("retrievers", {}))
        for name in unknown:
            if name not in others:
                known = ", ".join((*BUILT_IN_PROVIDERS, *sorted(others)))
                raise ValueError(f"there is no search provider {name!r}; known: {known}")
    return None if names is None else tuple(dict.fromkeys(names))


class SearchSettings(Section):
    """Search of the web and of a folder of documents."""

    # Before `providers`, whose names may be from here.
    retrievers: Annotated[dict[str, Reference], AfterValidator(_check_retrievers)] = Field(
        default_factory=dict
    )
    """Retrievers of LangChain as providers, each name with its `module:attribute`: a `BaseRetriever`, its
    class, or a function that returns one. The arguments are `options.<name>`."""
    providers: Annotated[tuple[str, ...] | None, AfterValidator(_check_providers)] = None
    """The providers, in the order in which they are asked; an empty list turns search off. Default: those
    whose key, address or folder is set, then `ddgs` and `wikipedia`, which need none."""
    papers: Annotated[tuple[str, ...] | None, AfterValidator(_check_providers)] = None
    """The providers of `search_papers`, all asked concurrently; an empty list turns that tool off. Default:
    the scholarly ones of `providers`; where that is not set, all scholarly ones, which need no key."""
    mode: Literal["first", "merged"] = "first"
    """`first`: ask the next provider when one fails or finds nothing; `merged`: ask all concurrently."""
    max_results: Annotated[int, HARMLESS] = Field(default=5, gt=0, le=20)
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
    language: Annotated[str, HARMLESS] = Field(default="en", pattern=r"^[a-z]{2,12}(-[a-z]{2,8})?$")
    """The Wikipedia to ask when neither the query nor the conversation's locale determines a language."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of providers that declare some of their own, by the provider's name."""

    @model_validator(mode="after")
    def _check_papers(self) -> Self:
        if self.papers and self.providers == ():
            raise ValueError("papers needs a search: providers is empty; name some, or remove papers")
        return self

    def other_providers(self) -> Mapping[str, EntryPoint]:
        """Return the providers that are not built in, by name. Blocks on disk."""
        return _entry_points(self.retrievers)


def _is_contact(contact: str | None) -> str | None:
    if contact is not None and not (contact.isascii() and contact.isprintable() and len(contact) <= 200):
        raise ValueError("this goes into a header of every request: plain ASCII, at most 200 characters")
    return contact


READER_GROUP = "maniple.readers"
"""The entry point group in which other packages register loaders of documents."""
_SUFFIX_OR_TYPE = r"^(\.[a-z0-9]{1,20}|[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,100})$"
SuffixOrType = Annotated[str, Field(pattern=_SUFFIX_OR_TYPE)]
"""A file's last suffix or its media type, in lower case."""


class ReaderSettings(Section):
    """What reads the files of one type. A text alone is its `use`."""

    use: Annotated[str, Field(min_length=1, max_length=200)]
    """`module:Class` of a loader of LangChain that takes a path, or the name of an entry point for one."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """The arguments of the class beside the path."""

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value


class FetchSettings(Section):
    """Reading pages for the researcher."""

    allow_private: tuple[str, ...] = ()
    """Networks in CIDR form that may be fetched although they are private, such as `127.0.0.0/8`."""
    timeout_seconds: float = Field(default=30, gt=0)
    """Of a page with its redirects, its frames and its site's robots.txt; of reading it; of rendering it."""
    max_bytes: int = Field(default=5_000_000, gt=0)
    max_document_bytes: int = Field(default=50_000_000, gt=0, le=50_000_000)
    """Of a PDF, an Office document or an archive, by the type that its site names, else by its suffix."""
    max_redirects: int = Field(default=5, ge=0)
    max_characters: int = Field(default=12_000, gt=0)
    robots: bool = True
    """Skip pages that a site's robots.txt forbids: the agent chooses pages without supervision."""
    probe_sites: bool = True
    """Compare a short page with what its site shows for an address that cannot exist: one more request."""
    images: Annotated[bool, HARMLESS] = True
    """Show a model that sees the pictures of pages it reads: three of a page, four in a request."""
    contact: Annotated[OptionalText, AfterValidator(_is_contact)] = None
    """The operator's address for owners of sites; part of the user agent."""
    cache_bytes: int = Field(default=20_000_000, ge=0)
    """The size of the page cache in memory; each use needs a conditional request (ETag, Last-Modified)."""
    jina: Literal["auto", "always", "fallback", "never"] = "auto"
    """When Jina's reader fetches instead: `auto` first if there is a key, `fallback` when fetching failed."""
    jina_api_key: ApiKey = None
    jina_base_url: str = "https://r.jina.ai"


BrowserMode = Literal["navigate", "execute", "scrape", "research", "auto"]
BrowserStrategy = Literal["react", "react_plus", "cot", "tot"]


class BrowsingSettings(Section):
    """How an agent works in the browser."""

    mode: BrowserMode = "auto"
    """What is planned, seen and offered: `navigate`, `execute`, `scrape`, `research`, or all of it."""
    strategy: BrowserStrategy = "react"
    max_iterations: int = Field(default=50, gt=0)
    max_seconds: float = Field(default=1_800, gt=0)
    max_failures: int = Field(default=3, gt=0)
    """Actions that fail one after another, before the plan is adapted or the work ends."""
    max_adaptations: int = Field(default=2, ge=0)
    """How often a plan is adapted after a phase failed."""
    vision: Literal["auto", "always", "never"] = "auto"
    """Show screenshots: `auto` when the model sees and the mode wants it."""
    shown_turns: int = Field(default=3, ge=0)
    """For so many turns after a call of the browser an agent with other tools is shown its state, too."""
    recording: Literal["watched", "always", "never"] = "watched"
    """Make a GIF of the steps: `watched` when somebody follows the run."""


class BrowserSettings(Section):
    """The browser that the team works in."""

    enabled: bool = True
    backend: Literal["local", "cdp", "sandbox", "browser-use"] = "local"
    browser_use_dir: UserPath | None = None
    """The folder of browser-use's own environment; default: `browser-use` in `cache_dir`."""
    executable: UserPath | None = None
    headless: bool = True
    cdp_url: OptionalText = None
    """The address of a running Chromium's DevTools, for `cdp`."""
    sandbox_url: OptionalText = None
    """The address of the browser's API inside a sandbox, for `sandbox`."""
    sandbox_token: OptionalSecret = None
    proxy_server: OptionalText = None
    proxy_username: OptionalText = None
    proxy_password: OptionalSecret = None
    allow_private: tuple[str, ...] | None = None
    """Networks in CIDR form that may be opened although they are private; default: `fetch.allow_private`."""
    timeout_seconds: float = Field(default=30, gt=0)
    """Of loading a page."""
    action_seconds: float = Field(default=2, gt=0)
    """Of a click or an input until the element takes it."""
    max_wait_seconds: float = Field(default=60, gt=0)
    """The longest wait that a model may ask for."""
    viewport_width: Annotated[int, HARMLESS] = Field(default=1280, ge=200, le=4096)
    viewport_height: Annotated[int, HARMLESS] = Field(default=800, ge=200, le=4096)
    state_tokens: int = Field(default=4_000, ge=500)
    """About how long the elements of a page, as a model is shown them, may be."""
    dialogs: Literal["dismiss", "accept"] = "dismiss"
    """The answer to `confirm` and to a page that asks before it is left; the model is notified."""
    obstacles: bool = True
    """Clear away banners and windows that cover a page."""
    keep_storage: bool = False
    """Whether a thread's cookies and local storage are stored across restarts."""
    process_per_thread: bool = False
    """A Chromium for each thread instead of one for all."""
    max_contexts: int = Field(default=32, gt=0)
    """The limit of threads with an open browser; the least recently used one is closed."""
    idle_seconds: float = Field(default=600, gt=0)
    """After so long without use a thread's tabs are closed."""
    max_download_bytes: int = Field(default=50_000_000, gt=0)
    browsing: BrowsingSettings = BrowsingSettings()
