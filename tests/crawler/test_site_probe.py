import asyncio

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from tests.crawler.wall_sites import HONEST_SITES, WALL_SITES, SitePages, SmallSite
from tests.crawler.web import Reply, Site, open_site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1"])]
_SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10, jina="never")
_WALL = "<title>Lumo</title><main><h1>Samahani</h1><p>Ukurasa huu haupo tena.</p></main>"
_NOTE = "<title>Ice</title><main><h1>Ice report</h1><p>Bay ice is 42 cm thick.</p></main>"


def _probes(site: Site) -> list[str]:
    return [path for _, path, _ in site.requests if path not in ("/item/7", "/item/8", "/robots.txt")]


@pytest.mark.parametrize("name", WALL_SITES)
async def test_a_wall_in_any_language_is_never_a_source(name: str) -> None:
    async with open_site(SitePages(WALL_SITES[name])) as site:
        try:
            assert not (await Crawler(_SETTINGS).crawl(f"{site.url}/item/7")).is_source
        except FetchError as error:
            assert "no readable text" in str(error)


@pytest.mark.parametrize("name", HONEST_SITES)
async def test_a_short_page_of_a_site_with_walls_is_a_source(name: str) -> None:
    async with open_site(SitePages(HONEST_SITES[name])) as site:
        article = await Crawler(_SETTINGS).crawl(f"{site.url}/item/7")
    assert article.is_source, article.kind


async def test_a_site_is_asked_once_for_all_of_its_pages_of_a_kind() -> None:
    async with open_site(SitePages(SmallSite(_NOTE, _WALL))) as site:
        crawler = Crawler(_SETTINGS)
        articles = await asyncio.gather(*(crawler.crawl(f"{site.url}/item/{one}") for one in (7, 8, 8)))
        assert len(_probes(site)) == 1
    assert [one.is_source for one in articles] == [True, False, False]


async def test_a_catch_all_page_says_what_it_is() -> None:
    async with open_site(SitePages(SmallSite(_WALL, _WALL))) as site:
        article = await Crawler(_SETTINGS).crawl(f"{site.url}/item/7")
    assert article.kind == "catch-all page"
    assert "(catch-all page)" in article.note
    assert "Samahani" in article.markdown


@pytest.mark.parametrize("path", ["/", "/en/", "/index.html"])
async def test_the_front_page_may_be_shown_for_any_address(path: str) -> None:
    async with open_site(SitePages(SmallSite(_WALL, _WALL))) as site:
        assert (await Crawler(_SETTINGS).crawl(f"{site.url}{path}")).is_source
        assert not [one for one in _probes(site) if one != path]


async def test_the_page_to_which_a_site_sends_lost_readers_stays_a_source() -> None:
    class Lost(dict[str, Reply]):
        def get(self, path: str, default: Reply | None = None) -> Reply:  # type: ignore[override]
            return super().get(path) or redirect("/docs/start-here")

    async with open_site(Lost({"/docs/start-here": Reply(_NOTE), "/robots.txt": Reply("")})) as site:
        crawler = Crawler(_SETTINGS)
        assert (await crawler.crawl(f"{site.url}/docs/start-here")).is_source
        assert not (await crawler.crawl(f"{site.url}/docs/removed")).is_source


async def test_an_address_that_robots_txt_forbids_is_not_asked_for() -> None:
    rules = "User-agent: *\nDisallow: /item/\nAllow: /item/7\n"
    pages = SitePages(SmallSite(_WALL, _WALL))
    async with open_site(pages) as site:
        pages.robots = rules
        assert (await Crawler(_SETTINGS).crawl(f"{site.url}/item/7")).is_source
        assert not _probes(site)


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        (_WALL, _SETTINGS.model_copy(update={"probe_sites": False})),
        (_WALL.replace("<main>", '<main><meta itemprop="datePublished" content="2024-05-01">'), _SETTINGS),
        (f"<title>Mill</title><main><p>{'The mill ground corn for villages. ' * 60}</p></main>", _SETTINGS),
    ],
)
async def test_a_site_is_not_asked_about_its_articles_or_against_the_settings(
    page: str, settings: FetchSettings
) -> None:
    async with open_site(SitePages(SmallSite(page, page))) as site:
        assert (await Crawler(settings).crawl(f"{site.url}/item/7")).is_source
        assert not _probes(site)
