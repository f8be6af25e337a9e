"""The contract of a search provider, and what providers share: one HTTP client, one way to read results.

A provider is one module of `maniple.search.providers`, or of another package that registers it through the
entry point group `maniple.search`. It declares a `ProviderSpec` called `PROVIDER` with its name, the settings
that it needs and the class that searches.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import unescape
from importlib.metadata import version
from itertools import islice
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from maniple.config.values import Section
from maniple.config.web_settings import SearchSettings
from maniple.egress.bounded_responses import (
    ACCEPT_ENCODING,
    ResponseBounds,
    ResponseRefused,
    response_hook,
)
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.egress.upstream import UpstreamProxy
from maniple.errors import ConfigError, SearchError
from maniple.retry_after import retry_after_seconds
from maniple.text import fix_surrogates, shorten

DEFAULT_COOLDOWN_SECONDS = 60.0
"""How long a provider that failed is not asked again."""
MAX_COOLDOWN_SECONDS = 3_600.0
MAX_RESPONSE_BYTES = 2_000_000
_BOUNDS = ResponseBounds(max_bytes=MAX_RESPONSE_BYTES, max_stream_bytes=MAX_RESPONSE_BYTES, seconds=60)
TITLE_CHARACTERS = 300
CONTENT_CHARACTERS = 2_000
URL_CHARACTERS = 2_048
MAX_RESULTS = 100
"""Results of one response that are parsed. The settings allow at most 20 to be requested."""

_MISTAKE_CHARACTERS = 300
_PARSED_CHARACTERS = 10 * CONTENT_CHARACTERS
_HIGHLIGHT = re.compile("</?(?:b|strong|em|i|mark)>", re.IGNORECASE)
"""The tags with which engines highlight the words of the query."""
HitKind = Literal["paper", "encyclopaedia", "news", "forum", "code", "video"]
_DATE = re.compile(r"[12]\d{3}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")
_SCHEMES = ("http", "https")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result."""

    title: str
    url: str
    """Absolute, http or https; `folder:` for a document of the local folder."""
    content: str
    """An extract of the page, chosen by the engine."""
    score: float | None = None
    """Relevance from 0 to 1, where the engine reports it."""
    source: str = ""
    """The provider that found it, or all of them, separated by commas."""
    is_weak: bool = False
    """Whether it probably does not answer the query, so that others should be asked, too."""
    kind: HitKind | Literal[""] = ""
    """What it is, where the engine or the host tells."""
    published: str = ""
    """`YYYY-MM-DD`, or `YYYY-MM` or `YYYY` where no more is known."""
    author: str = ""
    """The names of its authors, separated by commas."""
    publisher: str = ""
    """The journal, the conference or the site."""
    doi: str = ""
    """In lower case, without `https://doi.org/`."""
    full_text_url: str = ""
    """Where everybody may read all of a paper: its PDF, where the engine knows it."""


class ProviderFailure(SearchError):
    """A provider could not answer."""

    def __init__(self, message: str, *, cooldown_seconds: float = DEFAULT_COOLDOWN_SECONDS) -> None:
        super().__init__(message)
        self.cooldown_seconds = cooldown_seconds
        """How long the provider is not asked again; 0 when only this query is at fault."""


class RateLimited(ProviderFailure):
    """A provider limits the rate of requests.

    It is not asked before its cooldown ends, even as the last one.
    """


class ProxyUnreachable(ProviderFailure):
    """The proxy that the environment names for a provider does not answer."""

    def __init__(self, name: str, proxy: str, reason: str) -> None:
        super().__init__(
            f"{name} could not be reached: the proxy that {proxy} names fails ({reason}). Is it running? "
            "Correct or unset the variable, or name the provider's host in NO_PROXY."
        )
        self.proxy = proxy
        """The variable and the host."""


class SearchProvider(Protocol):
    """A search engine."""

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """Return at most `limit` hits, best first; an empty list when nothing was found.

        Raises:
            SearchError: the engine could not be asked.
        """
        ...


class ClosableProvider(SearchProvider, Protocol):
    """A search engine that holds connections or threads."""

    async def aclose(self) -> None:
        """Release connections and threads."""
        ...


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What a search provider can learn about the run that it works for."""

    run_key: Callable[[], str] = str
    """Returns the name of the current run; "" outside of a run."""
    locale: Callable[[], str] = str
    """Returns the conversation's locale, such as `de-DE`; "" when it is not known."""
    folder: ClosableProvider | None = None
    """Searches the documents below `search.folder`."""
    options: Any = None
    """The validated `search.options.<name>` of the provider that is created: a `ProviderSpec.options`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """Declares one search provider. A built-in provider has the name of its module."""

    name: str
    create: Callable[[SearchSettings, SearchContext], ClosableProvider]
    """Returns the provider; called once, when search opens. It connects on first use."""
    requires: Mapping[str, str] = field(default_factory=dict)
    """The settings below `search` without which the provider cannot work, such as `brave_api_key`, each with
    the name to show: the environment variable, or the path of the setting."""
    options: type[Section] | None = None
    """The schema of `search.options.<name>`, where a provider has settings of its own."""
    reads_options: bool = False
    """Whether `create` reads `search.options.<name>` itself, without a schema."""
    is_scholarly: bool = False
    """Whether it finds scholarly papers only."""
    rank: int | None = None
    """The position among the providers that are asked without `search.providers`; None: only when named."""
    servers: Callable[[SearchSettings], Sequence[str]] = lambda settings: ()
    """Returns the addresses of the servers that it asks, to plan without it when no connection to any of them
    is possible. A provider without addresses is assumed to answer."""


class HttpEndpoint:
    """The HTTP API of one engine. Bounds time and size, and turns every failure into a `ProviderFailure`.

    `remedies` map a status code to a sentence about what to do; 200 means a malformed body. A `Retry-After`
    of at most `patience_seconds` is waited for once, within the timeout.
    """

    def __init__(
        self,
        name: str,
        timeout_seconds: float,
        remedies: Mapping[int, str] | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> None:
        self.name = name
        self._timeout_seconds = timeout_seconds
        self._remedies = remedies or {}
        self._patience_seconds = patience_seconds
        self._client: httpx.AsyncClient | None = None

    async def get_json(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Any:
        """GET a JSON object; raises `ProviderFailure`."""
        body = await self.get(url, params, headers)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self.malformed_response() from error
        if not isinstance(value, dict):
            raise self.malformed_response()
        return value

    async def get(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> bytes:
        """GET a body of at most `MAX_RESPONSE_BYTES`; raises `ProviderFailure`."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                try:
                    return await self._request(url, params, headers)
                except RateLimited as limited:
                    if self._patience_seconds is None or limited.cooldown_seconds > self._patience_seconds:
                        raise
                    await asyncio.sleep(limited.cooldown_seconds)
                return await self._request(url, params, headers)
        except TimeoutError as error:
            raise ProviderFailure(f"{self.name} did not answer in {self._timeout_seconds:g} s.") from error
        except ResponseRefused as error:
            raise ProviderFailure(f"{self.name} {error}.") from error
        except ConfigError as error:
            raise ProviderFailure(f"{self.name} could not be reached: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ProviderFailure(f"{self.name} could not be reached: {reason}") from error

    async def _request(self, url: str, params: Mapping[str, str], headers: Mapping[str, str] | None) -> bytes:
        client = await self._get_client()
        async with client.stream("GET", url, params=params, headers=headers) as response:
            self._raise_for_status(response)
            return await self._read_body(response)

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def malformed_response(self) -> ProviderFailure:
        """Return the failure for a body that does not follow the engine's documentation."""
        return ProviderFailure(
            f"{self.name} sent a malformed response. {self._remedies.get(200, '')}".strip()
        )

    async def _get_client(self) -> httpx.AsyncClient:
        if self._client is None:
            client = await asyncio.to_thread(new_http_client, timeout=self._timeout_seconds)
            self._client = self._client or client  # a concurrent request may have been faster
        return self._client

    def _raise_for_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        if status in (429, 503) and (seconds := cooldown_from_headers(response.headers)) is not None:
            raise rate_limited(self.name, status, seconds)
        if status == 429:
            raise RateLimited(f"{self.name} returned 429 (rate limit).")
        remedy = self._remedies.get(status, "")
        raise ProviderFailure(
            f"{self.name} returned HTTP {status}. {remedy}".strip(),
            cooldown_seconds=0 if status in (400, 414, 422) and not remedy else DEFAULT_COOLDOWN_SECONDS,
        )

    async def _read_body(self, response: httpx.Response) -> bytes:
        return await response.aread()


async def check_reachable(name: str, servers: Iterable[str]) -> None:
    """Raise `ProviderFailure` if no connection to any of the `servers` is possible; nothing is sent.

    Behind a proxy the connection is one to the proxy; what is beyond is not known without a request.
    """
    proxies = await asyncio.to_thread(EnvironmentProxies.read)
    failures = await asyncio.gather(*(_find_failure(name, server, proxies) for server in servers))
    if failures and all(failures):
        raise next(failure for failure in failures if failure)


async def _find_failure(name: str, server: str, proxies: EnvironmentProxies) -> ProviderFailure | None:
    """Return why no connection to a server, or to its proxy, is possible; None if one is."""
    scheme, host = urlsplit(server).scheme, urlsplit(server).hostname or ""
    proxy = proxies.find(scheme, host, urlsplit(server).port)
    try:
        if proxy is None:
            host, port = host, urlsplit(server).port or _PORTS.get(scheme, 80)
        else:
            upstream = UpstreamProxy.parse(proxy, proxies.variables[scheme])
            host, port = upstream.host, upstream.port
        _, writer = await asyncio.open_connection(host, port)
    except ConfigError as error:
        return ProviderFailure(f"{name} could not be reached: {error}")
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        if proxy is not None:
            return ProxyUnreachable(name, proxies.describe(scheme), reason)
        return ProviderFailure(f"{name} could not be reached: {reason}")
    writer.close()
    return None


def new_http_client(*hooks: Callable[[httpx.Response], Awaitable[None]], **options: Any) -> httpx.AsyncClient:
    """Return a client with maniple's User-Agent, whose responses are bounded before `hooks` see them.

    Blocks: certificates are read from disk. Raises `ConfigError` if the environment names a proxy or
    certificates that cannot be used.
    """
    # https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy requires one, and so does arXiv.
    agent = f"maniple/{version('maniple')} (team of agents; httpx)"
    headers = {"User-Agent": agent, "Accept-Encoding": ACCEPT_ENCODING}
    bound = response_hook(httpx.AsyncByteStream, _BOUNDS)
    return httpx.AsyncClient(
        transport=EnvironmentTransport(httpx),  # pyright: ignore[reportArgumentType] - it has its methods
        headers=headers,
        event_hooks={"response": [bound, *hooks]},
        **options,
    )


def rate_limited(name: str, status: int, seconds: float) -> RateLimited:
    """Return the failure of an engine that named the `seconds` after which it may be asked again."""
    message = f"{name} returned {status} (rate limit). It is not asked for {seconds:.0f} s."
    return RateLimited(message, cooldown_seconds=seconds)


def cooldown_from_headers(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, at most `MAX_COOLDOWN_SECONDS`; None without that header."""
    seconds = retry_after_seconds(headers)
    return None if seconds is None else min(seconds, MAX_COOLDOWN_SECONDS)


def normalize_query(query: str, max_characters: int) -> str:
    """Return the query on one line, cut between words to `max_characters`.

    Raises `SearchError` when empty.
    """
    text = " ".join(query.split())
    if not text:
        raise SearchError("The search query is empty; say what to look for.")
    return (
        text
        if len(text) <= max_characters
        else text[:max_characters].rpartition(" ")[0] or text[:max_characters]
    )


def parse_hits(
    results: Iterable[Any],
    *,
    content: str,
    title: str = "title",
    url: str = "url",
    score: str = "",
    published: str = "",
) -> list[SearchHit]:
    """Read JSON objects, whose keys are given by name. Results without a web address are left out.

    `published` names a time in the form of ISO 8601, of which the day is taken.
    """
    hits: list[SearchHit] = []
    for result in islice(results, MAX_RESULTS):
        address = result.get(url) if isinstance(result, dict) else None
        if not isinstance(address, str) or not is_web_address(address):
            continue
        points = result.get(score)
        hit = make_hit(
            _plain_text(result.get(title)),
            address,
            _plain_text(result.get(content)),
            points if isinstance(points, int | float) else None,
        )
        hits.append(replace(hit, published=read_iso_date(result.get(published))))
    return hits


def read_iso_date(value: Any) -> str:
    """Return the day of a time in the form of ISO 8601, or as much as there is of it; "" for any other value.

    A year may be a number.
    """
    text = str(value)[:10] if isinstance(value, str | int) else ""
    return text if _DATE.fullmatch(text) else ""


def _plain_text(value: Any) -> Any:
    """Return an engine's HTML as text. Code that a page shows is escaped there, and so it is preserved."""
    return unescape(_HIGHLIGHT.sub("", value[:_PARSED_CHARACTERS])) if isinstance(value, str) else value


def make_hit(title: Any, url: str, content: Any, score: float | None = None) -> SearchHit:
    """Return a result of bounded size without lone surrogates."""
    name = " ".join(title.split()) if isinstance(title, str) else ""
    extract = content.strip() if isinstance(content, str) else ""
    return SearchHit(
        fix_surrogates(_truncate(name or url, TITLE_CHARACTERS)),
        url,
        fix_surrogates(_truncate(extract, CONTENT_CHARACTERS)),
        score,
    )


def is_web_address(url: str) -> bool:
    """Return whether a browser can open `url`."""
    if len(url) > URL_CHARACTERS or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in _SCHEMES and bool(parts.hostname)
    except ValueError:
        return False


def hit_to_dict(hit: SearchHit) -> dict[str, Any]:
    """Return the hit as the tool's JSON: fields without a value are left out, except `content`."""
    values = asdict(hit)
    del values["is_weak"]  # for the choice of providers only
    return {name: value for name, value in values.items() if name == "content" or value not in (None, "")}


def describe_mistakes(setting: str, error: ValidationError) -> str:
    """Return the mistakes in the options at `setting`, a line for each, without the given values."""
    lines = (
        f"  {'.'.join([setting, *map(str, one['loc'])])}: {shorten(one['msg'], _MISTAKE_CHARACTERS)}"
        for one in error.errors(include_input=False, include_url=False)
    )
    return "\n".join(("The settings have mistakes:", *lines))


def _truncate(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"
