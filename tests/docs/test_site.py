"""The manual's site builds without a warning, and its links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from manual.site import ManualError, build_site, find_broken_links, site_settings
from tests.serving import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual") / "site"
    build_site(folder)
    return folder


@pytest.mark.slow
def test_every_page_of_the_manual_is_a_page_of_the_site(site: Path):
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / ("" if path.name == "index" else path) / "index.html").is_file(), path


@pytest.mark.slow
def test_a_page_of_the_site_requests_nothing_from_other_hosts(site: Path):
    loaded = r"""<(?:script|img|iframe)[^>]*\ssrc="?https?:|<link[^>]*rel="?stylesheet[^>]*href="?https?:"""
    for page in site.rglob("*.html"):
        assert not re.search(loaded, page.read_text(encoding="utf-8")), page
    assert (site / "javascripts/mermaid.js").stat().st_size > 1_000_000


@pytest.mark.parametrize("url", ["https://docs.example.org/maniple", "https://docs.example.org/maniple/"])
def test_the_site_has_the_address_where_it_is_published(url: str):
    settings = tomllib.loads(site_settings(url))["project"]
    assert settings["site_url"] == "https://docs.example.org/maniple/"


def test_without_an_address_the_site_has_that_of_this_machine():
    assert tomllib.loads(site_settings())["project"]["site_url"].startswith("http://localhost:")


@pytest.mark.parametrize(
    "url", ["docs.example.org", "ftp://docs.example.org/", "https:///x", "https://a.b/?c=d"]
)
def test_what_is_no_address_of_a_site_is_refused(url: str):
    with pytest.raises(ManualError):
        site_settings(url)


def test_a_link_to_a_missing_file_or_anchor_or_out_of_the_site_is_found(tmp_path: Path):
    (tmp_path / "outside.html").write_text("<p>")
    folder = tmp_path / "site"
    (folder / "other").mkdir(parents=True)
    (folder / "other/index.html").write_text('<h1 id="here">')
    links = ("other/", "other/#here", "https://example.org/x", "no.html", "other/#gone", "../outside.html")
    (folder / "index.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    assert find_broken_links(folder) == [f"index.html: {link}" for link in links[3:]]


@pytest.mark.slow
def test_llms_txt_lists_every_page_of_the_navigation_as_markdown(site: Path):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        if path.name != "index" and path.parts[0] != "decisions":
            assert f"/{path}/index.md>)" in text
            assert (site / path / "index.md").is_file()


@pytest.mark.slow
def test_each_code_block_is_one_on_the_site_and_public_names_have_their_docstrings(site: Path):
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        html = (site / ("" if path.name == "index" else path) / "index.html").read_text(encoding="utf-8")
        assert "```" not in html, path
    python = (site / "reference/python/index.html").read_text(encoding="utf-8")
    assert "as a compiled graph" in python
