from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.crawler.document import FetchedDocument
from maniple.crawler.page_frames import find_document_frames
from tests.crawler.web import Reply, Site, open_site

pytestmark = pytest.mark.anyio
TEXT = "".join(f"<p>The valve number {n} closes, and the pump then stops by itself.</p>" for n in range(20))
GUIDE = Reply(f"<title>Guide</title><h1>Guide</h1>{TEXT}")
MENU = "<nav><a href=/1>One</a><a href=/2>Two</a></nav>"


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/guide": GUIDE, "/menu": Reply(MENU * 40)}) as site:
        yield site


def crawler() -> Crawler:
    return Crawler(FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10))


@pytest.mark.parametrize(
    "page",
    [
        f"{MENU}<iframe src=guide></iframe>",
        f"{MENU}<h1>Help</h1><iframe name=content width=100% height=900 src=/guide>No frames?</iframe>",
        "<iframe src=/menu></iframe><iframe src=/guide></iframe>",
        "<iframe data-src=/guide></iframe>",
        "<base href=/x/><iframe src=../guide#top></iframe>",
    ],
)
async def test_a_page_whose_text_is_in_a_frame_is_read_there(page: str, site: Site) -> None:
    site.pages["/help"] = Reply(page)
    article = await crawler().crawl(f"{site.url}/help")
    assert article.url.partition("#")[0] == f"{site.url}/guide"
    assert "valve number 19" in article.markdown
    assert f"{site.url}/help" in article.note


async def test_a_frame_within_a_frame_is_read(site: Site) -> None:
    site.pages |= {
        "/help": Reply("<iframe src=/outer></iframe>"),
        "/outer": Reply("<iframe src=/guide></iframe>"),
    }
    assert (await crawler().crawl(f"{site.url}/help")).url == f"{site.url}/guide"


async def test_several_documents_in_frames_are_read_together(site: Site) -> None:
    site.pages |= {
        "/other": Reply(TEXT.replace("valve", "hose")),
        "/help": Reply("<title>Help</title><iframe src=/guide></iframe><iframe src=/other></iframe>"),
    }
    article = await crawler().crawl(f"{site.url}/help")
    assert article.url == f"{site.url}/help"
    assert "valve number 3" in article.markdown
    assert "hose number 3" in article.markdown


async def test_a_document_within_the_markup_is_read(site: Site) -> None:
    inner = TEXT.replace("<", "&lt;")
    site.pages["/help"] = Reply(f"<title>Help</title><iframe srcdoc='{inner}'></iframe>")
    article = await crawler().crawl(f"{site.url}/help")
    assert "valve number 19" in article.markdown
    assert article.url == f"{site.url}/help"


@pytest.mark.parametrize(
    "frame",
    [
        "<iframe src=http://127.0.0.2:1/guide></iframe>",
        "<iframe src=/guide width=1 height=1></iframe>",
        "<iframe src=/guide style='display: none'></iframe>",
        "<iframe src=/guide hidden></iframe>",
        "<iframe src=/guide title='Cookie consent'></iframe>",
        "<iframe src='javascript:0'></iframe>",
        "<iframe src=''></iframe>",
        "<iframe></iframe>",
        f"{TEXT}<iframe src=/guide></iframe>",
        "<iframe src=/menu></iframe>",
    ],
)
async def test_other_frames_are_not_taken_for_the_page(frame: str, site: Site) -> None:
    site.pages["/page"] = Reply(f"<p>A note of the page.</p>{frame}")
    article = await crawler().crawl(f"{site.url}/page")
    assert article.url == f"{site.url}/page"
    assert "note of the page" in article.markdown
    assert not article.note


async def test_a_frame_that_cannot_be_read_is_reported(site: Site) -> None:
    site.pages["/page"] = Reply("<p>A note of the page.</p><iframe src=/gone></iframe>")
    article = await crawler().crawl(f"{site.url}/page")
    assert "note of the page" in article.markdown
    assert "/gone" in article.note


@pytest.mark.parametrize(
    ("url", "frame", "same"),
    [
        ("http://www.pump.test/a", "http://static.pump.test/b", True),
        ("http://docs.pump.co.uk/a", "http://pump.co.uk/b", True),
        ("http://pump.co.uk/a", "http://hose.co.uk/b", False),
        ("http://10.0.0.1/a", "http://10.0.0.2/b", False),
        ("http://pump.test/a", "http://video.test/b", False),
    ],
)
def test_only_frames_of_the_same_site_are_candidates(url: str, frame: str, same: bool) -> None:
    body = f"<iframe src='{frame}'></iframe>".encode()
    assert (find_document_frames(FetchedDocument(url, "text/html", "utf-8", body)) is not None) is same
