"""The registry of search providers: which are asked, and how other packages add theirs."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from maniple.config import SearchSettings, load_settings
from maniple.config.secrets import redactor_of
from maniple.config.web_settings import BUILT_IN_PROVIDERS
from maniple.errors import ConfigError, Unavailable
from maniple.search import (
    FolderSearch,
    SearchContext,
    missing_settings,
    open_chain,
    open_search,
    select_providers,
)
from maniple.search.providers import load_provider
from tests.crawler.web import open_site
from tests.search.responses import SEARXNG, as_json

pytestmark = pytest.mark.anyio

KEY = SecretStr("k")


async def unread(name: str, body: bytes) -> tuple[str, str, str]:
    return name, "", ""


def names(settings: SearchSettings) -> list[str]:
    return [spec.name for spec in select_providers(settings)]


async def asked(settings: SearchSettings, context: SearchContext | None = None) -> tuple[str, ...]:
    async with open_chain(settings, context) as chain:
        return tuple(chain.names)


async def test_without_keys_the_keyless_providers_are_used() -> None:
    specs = [load_provider(name) for name in BUILT_IN_PROVIDERS]
    settings = SearchSettings()
    keyless = {
        spec.name
        for spec in specs
        if spec.rank is not None and all(getattr(settings, key) for key in spec.requires)
    }
    used = await asked(settings)
    assert {"ddgs", "wikipedia"} <= keyless
    assert (set(used), len(used)) == (keyless, len(keyless))


@pytest.mark.parametrize(
    "given",
    [
        {"tavily_api_key": KEY},
        {"brave_api_key": KEY, "searxng_url": "http://10.0.0.1"},
        {"tavily_api_key": KEY, "brave_api_key": KEY, "searxng_url": "http://10.0.0.1", "folder": "."},
    ],
)
async def test_configured_providers_come_first(tmp_path: Path, given: dict[str, Any]) -> None:
    if "folder" in given:
        given = {**given, "folder": tmp_path}
    folder = FolderSearch(tmp_path, unread) if "folder" in given else None
    used = await asked(SearchSettings(**given), SearchContext(folder=folder))
    configured = [name for name in used if load_provider(name).requires.keys() & given.keys()]
    assert len(configured) == len(given)
    assert used == (*configured, *await asked(SearchSettings()))
    ranks = [load_provider(name).rank or 0 for name in used]
    assert ranks == sorted(set(ranks))


async def test_the_order_that_is_named_holds_and_each_name_once() -> None:
    settings = SearchSettings(providers=("arxiv", "wikipedia", "arxiv"), tavily_api_key=KEY)
    assert await asked(settings) == ("arxiv", "wikipedia")


async def test_a_provider_without_its_key_is_left_out_and_named() -> None:
    settings = SearchSettings(providers=("brave", "wikipedia", "searxng", "folder"))
    assert await asked(settings) == ("wikipedia",)
    wants = {"folder": "search.folder", "brave": "BRAVE_API_KEY", "searxng": "SEARXNG_URL"}
    assert missing_settings(settings) == wants
    assert missing_settings(SearchSettings()) == {}


@pytest.mark.parametrize(
    ("settings", "reason", "remedy"),
    [
        ({"providers": ()}, "turned off", "search.providers"),
        ({"providers": ("brave", "tavily")}, "brave, tavily", "BRAVE_API_KEY or TAVILY_API_KEY"),
        ({"providers": ("ddgs",), "engines": ()}, "ddgs", "search.engines"),
    ],
)
async def test_without_any_provider_the_reason_names_the_setting(
    settings: dict[str, Any], reason: str, remedy: str
) -> None:
    with pytest.raises(Unavailable) as refused:
        await open_search(SearchSettings(**settings)).__aenter__()
    found = refused.value
    assert (reason in found.reason, remedy in found.remedy) == (True, True), found


async def test_every_provider_can_be_opened(tmp_path: Path) -> None:
    settings = SearchSettings(
        providers=BUILT_IN_PROVIDERS,
        tavily_api_key=KEY,
        brave_api_key=KEY,
        searxng_url="http://x",
        folder=tmp_path,
    )
    folder = FolderSearch(tmp_path, unread)
    assert await asked(settings, SearchContext(folder=folder)) == BUILT_IN_PROVIDERS


async def test_two_configured_providers_are_queried_concurrently_and_merged() -> None:
    async with open_site({"/search": as_json(SEARXNG)}) as site:
        # The same fake answers Tavily's request, too: its shape is a part of SearXNG's.
        settings = SearchSettings(
            providers=("searxng", "tavily"),
            mode="merged",
            searxng_url=site.url,
            tavily_api_key=KEY,
            tavily_base_url=site.url,
        )
        async with open_search(settings) as search:
            hits = await search.search("bridges", limit=5)
    assert [(hit.title, hit.source, hit.score) for hit in hits] == [
        ("Arch", "searxng, tavily", 1.0),
        ("Beam", "searxng, tavily", 0.9839),
    ]
    assert sorted(method for method, _, _ in site.requests) == ["GET", "POST"]


def test_variables_name_keys_and_providers_and_empty_brackets_turn_search_off(tmp_path: Path) -> None:
    def read(**environment: str) -> SearchSettings:
        nothing = {"env_file": tmp_path / "none"}
        return load_settings(tmp_path / "none.yaml", **nothing, environment=environment).search

    settings = read(BRAVE_API_KEY="b", SEARXNG_URL="http://10.0.0.1:8080", MANIPLE_SEARCH__MODE="merged")
    assert (names(settings)[:2], settings.mode) == (["brave", "searxng"], "merged")
    assert names(settings)[2:] == names(SearchSettings())
    assert names(read(MANIPLE_SEARCH__PROVIDERS="arxiv, wikipedia")) == ["arxiv", "wikipedia"]
    assert names(read(MANIPLE_SEARCH__PROVIDERS="[]")) == []
    assert read(MANIPLE_SEARCH__ENGINES="mojeek").engines == ("mojeek",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"providers": ("google",)},
        {"mode": "both"},
        {"language": "../x"},
        {"searxng_url": "searx.lan"},
        {"engines": ("google",)},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchSettings(**wrong)


KAGI = """
from maniple.config.values import Section
from maniple.config.values import ApiKey
from maniple.search import ProviderSpec, SearchHit

class KagiOptions(Section):
    api_key: ApiKey
    region: str = "de"

class KagiSearch:
    def __init__(self, options):
        self.options = options

    async def search(self, query, *, limit):
        return [SearchHit(query, "https://kagi.test/", self.options.region)]

    async def aclose(self):
        pass

PROVIDER = ProviderSpec(
    name="kagi",
    create=lambda settings, context: KagiSearch(context.options),
    options=KagiOptions,
)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package that consists of one module with a search provider; return the module's name."""
    name = f"kagi_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(KAGI)
    metadata = tmp_path / "maniple_kagi-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: maniple-kagi\nVersion: 1.0\n")
    points = f"[maniple.search]\nkagi = {name}:PROVIDER\nbroken = {name}:ABSENT\nrenamed = {name}:PROVIDER\n"
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    return name


async def test_another_package_adds_a_provider_with_one_file(package: str) -> None:
    options = {"kagi": {"api_key": "k-secret"}}
    settings = SearchSettings(providers=("kagi", "wikipedia"), options=options)
    async with open_chain(settings) as chain:
        answer = await chain.ask("bridges", limit=5)
    assert [(hit.title, hit.content, hit.source) for hit in answer.hits] == [("bridges", "de", "kagi")]


async def test_an_installed_provider_is_imported_only_if_named(package: str) -> None:
    assert "kagi" not in await asked(SearchSettings())
    assert package not in sys.modules


async def test_a_provider_without_its_required_option_is_reported(package: str) -> None:
    settings = SearchSettings(providers=("kagi", "wikipedia"))
    assert await asked(settings) == ("wikipedia",)
    assert missing_settings(settings) == {"kagi": "search.options.kagi.api_key"}


@pytest.mark.parametrize(
    ("name", "options", "path"),
    [
        ("kagi", {"api_key": "k-secret", "color": 1}, "search.options.kagi.color"),
        ("broken", {}, "ABSENT"),
        ("wikipedia", {"language": "de"}, "search.options.wikipedia"),
        ("renamed", {}, "renamed"),
    ],
)
async def test_a_provider_of_another_package_that_cannot_be_used_is_a_mistake(
    package: str, name: str, options: dict[str, Any], path: str
) -> None:
    settings = SearchSettings(providers=(name,), options={name: options})
    with pytest.raises(ConfigError, match=path) as caught:
        await asked(settings)
    assert "k-secret" not in str(caught.value)


async def test_an_option_is_set_by_a_variable_and_its_key_is_a_secret(package: str, tmp_path: Path) -> None:
    variables = {"MANIPLE_SEARCH__PROVIDERS": "kagi", "MANIPLE_SEARCH__OPTIONS__KAGI__API_KEY": "k-secret"}
    files = {"env_file": tmp_path / "none"}
    settings = load_settings(tmp_path / "none.yaml", **files, environment=variables)
    assert await asked(settings.search) == ("kagi",)
    assert redactor_of(settings).text("a k-secret") == "a ***"
