import time

import pytest

from maniple.crawler.document import FetchedDocument
from maniple.crawler.fetcher import MarkupRedirects, find_markup_redirects

LARGE = 5_000_000


def page(source: str, url: str = "http://a.test/b/c", media_type: str = "text/html") -> FetchedDocument:
    return FetchedDocument(url, media_type, "utf-8", source.encode())


@pytest.mark.parametrize(
    ("source", "leads"),
    [
        ("<META HTTP-EQUIV=Refresh CONTENT='0; URL=d'>", MarkupRedirects("http://a.test/b/d")),
        ("<base href=/x/><meta http-equiv=refresh content='1;d'>", MarkupRedirects("http://a.test/x/d")),
        (
            "<base href='http://[x'><meta http-equiv=refresh content='1;d'>",
            MarkupRedirects("http://a.test/b/d"),
        ),
        ("<meta http-equiv=refresh content='0; url=http://[x'>", MarkupRedirects()),
        ("<meta http-equiv=content-type content='0; url=d'>", MarkupRedirects()),
        ("<frameset><frame src=d><frame></frameset>", MarkupRedirects(frames=("http://a.test/b/d",))),
        ("<iframe src=d></iframe><p>Text.", MarkupRedirects()),
        ("", MarkupRedirects()),
    ],
)
def test_the_leads_of_a_page_are_found(source: str, leads: MarkupRedirects) -> None:
    found = find_markup_redirects(page(source))
    assert (found.refresh, tuple(found.frames)) == (leads.refresh, tuple(leads.frames))


def test_what_is_no_html_has_none() -> None:
    assert (
        find_markup_redirects(page("<meta http-equiv=refresh content='0;d'>", media_type="text/plain"))
        == MarkupRedirects()
    )


HOSTILE = {
    "blanks": "<meta http-equiv=" + " " * LARGE,
    "refreshes": "<meta http-equiv=refresh content='0" + " " * LARGE + "'>",
    "metas": "<meta http-equiv=x>" * (LARGE // 19),
    "frames": "<frameset>" + "<frame src=x>" * (LARGE // 13),
    "depth": "<meta http-equiv=x>" + "<frameset>" * (LARGE // 10),
    "titles": "<frameset>" + "<title>x</title>" * (LARGE // 16),
    "letters": "<meta http-equiv=x>" + "桥" * (LARGE // 3),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_page_of_many_redirect_hints_is_read_fast(kind: str) -> None:
    hostile = page(HOSTILE[kind])
    find_markup_redirects(page("<meta http-equiv=x>"))  # imports what it needs
    begun = time.thread_time()
    find_markup_redirects(hostile)
    assert time.thread_time() - begun < 0.05, "for so long the event loop may have to wait"
