"""What can be set of searching: who is asked, in which order, and with which keys."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from maniple.config.section import Section
from maniple.config.values import ApiKey, EndpointUrl, UserPath

ProviderName = Literal["folder", "tavily", "brave", "searxng", "ddgs", "wikipedia", "arxiv"]
PROVIDERS: tuple[ProviderName, ...] = get_args(ProviderName)
"""Every value of `search.providers`; what is configured is asked in this order when nothing is said."""

Engine = Literal["duckduckgo", "brave", "mojeek", "startpage", "yahoo"]


def _without_repeats(names: tuple[ProviderName, ...] | None) -> tuple[ProviderName, ...] | None:
    return None if names is None else tuple(dict.fromkeys(names))


class SearchSettings(Section):
    """Searching the web and a folder of documents."""

    providers: Annotated[tuple[ProviderName, ...] | None, AfterValidator(_without_repeats)] = None
    """Whom to ask, in this order; none at all turns search off. Without it: what has a key, an address or a
    folder, then `ddgs` and `wikipedia`, which need none."""
    mode: Literal["first", "merged"] = "first"
    """`first`: the next one is asked when one fails or finds nothing; `merged`: all at once."""
    max_results: int = Field(default=5, gt=0, le=20)
    timeout_seconds: float = Field(default=10, gt=0)
    """For one provider."""
    total_seconds: float = Field(default=30, gt=0)
    """For all of them together."""
    tavily_api_key: ApiKey = None
    tavily_base_url: str = "https://api.tavily.com"
    brave_api_key: ApiKey = None
    searxng_url: EndpointUrl = None
    engines: tuple[Engine, ...] = ("duckduckgo", "brave", "mojeek")
    """Whom `ddgs` asks, one after the other until one finds something."""
    folder: UserPath | None = None
    """Documents that are searched, too: text, Markdown and whatever the crawler can read."""
    language: str = Field(default="en", pattern=r"^[a-z]{2,12}(-[a-z]{2,8})?$")
    """Whose Wikipedia is asked when neither the query nor the conversation tells a language."""

    @property
    def order(self) -> tuple[ProviderName, ...]:
        """Whom to ask, in which order, whether they are configured or not."""
        if self.providers is not None:
            return self.providers
        configured = {"ddgs", "wikipedia"}
        if self.tavily_api_key is not None:
            configured.add("tavily")
        if self.brave_api_key is not None:
            configured.add("brave")
        if self.searxng_url is not None:
            configured.add("searxng")
        if self.folder is not None:
            configured.add("folder")
        return tuple(name for name in PROVIDERS if name in configured)
