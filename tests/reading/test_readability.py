import random

import pytest

from bench.extraction import own, token_f1
from maniple.reading.html import read_html
from tests.reading.corpus import corpus
from tests.reading.pages import Page, prose


@pytest.mark.parametrize("page", corpus(), ids=lambda page: page.name)
def test_what_a_person_would_read_is_found_on_pages_of_every_shape(page: Page) -> None:
    assert token_f1(own(page.html), page.text) > 0.955


def read(html: str, path: str = "/page") -> str:
    return read_html(html, f"http://site.test{path}").markdown


def paragraphs(count: int) -> str:
    dice = random.Random(count)
    return "".join(f"<p>{prose(dice)}</p>" for _ in range(count))


def test_a_heading_that_repeats_the_title_is_left_out_and_others_stay() -> None:
    text = f"<h1>On bridges</h1>{paragraphs(4)}<h2>Steel</h2>{paragraphs(2)}"
    html = f"<title>On bridges - The Daily</title><article>{text}"
    markdown = read(html)
    assert "# On bridges" not in markdown
    assert "## Steel" in markdown


def test_who_wrote_it_and_what_shares_it_is_left_out() -> None:
    around = '<p class="byline">By Ann</p><div class="share">Share this</div>'
    html = f"<div class=post>{around}{paragraphs(5)}</div>"
    assert "Ann" not in read(html)
    assert "Share" not in read(html)


def test_the_front_of_a_site_is_read_with_all_its_links() -> None:
    teasers = "".join(f"<li><a href=/{n}>Teaser number {n} of the day</a>" for n in range(30))
    html = f"<nav>Menu</nav><ul>{teasers}</ul><div class=lead>{paragraphs(2)}</div>"
    assert "Teaser number 29" in read(html, "/")
    assert "Menu" not in read(html, "/")


def test_an_image_that_is_loaded_late_has_its_true_address_and_is_named_once() -> None:
    html = f"""<article>{paragraphs(4)}<p>
    <img src="data:image/gif;base64,R0" data-src="/true.jpg" alt="A span">
    <noscript><img src="/true.jpg"></noscript>
    <img srcset="/small.jpg 1x, /large.jpg 2x" alt="B"></p></article>"""
    markdown = read(html)
    assert markdown.count("http://site.test/true.jpg") == 1
    assert "![A span](http://site.test/true.jpg)" in markdown
    assert "![B](http://site.test/small.jpg)" in markdown


def test_noscript_texts_are_left_out() -> None:
    assert "JavaScript" not in read(
        f"<article><noscript><p>Turn on JavaScript.</p></noscript>{paragraphs(4)}</article>"
    )


def test_an_image_that_is_there_without_scripts_only_is_retained() -> None:
    assert "http://site.test/late.jpg" in read(
        f"<article>{paragraphs(4)}<p><noscript><img src=/late.jpg></noscript></p></article>"
    )


def test_a_table_that_lays_out_is_no_table_and_one_of_data_is() -> None:
    data = "<table><tr><th>Name<th>m</tr><tr><td>Akashi<td>1991</table>"
    html = f"<table><tr><td><table role=presentation><tr><td>{paragraphs(4)}<td>{data}</table></table>"
    markdown = read(html)
    assert "| Akashi | 1991 |" in markdown
    assert markdown.count("| --- |") == 1


def test_marks_to_link_to_a_heading_go_and_headings_in_links_become_links_in_headings() -> None:
    html = f"<article>{paragraphs(4)}<h2>Arch<a href='#arch'>¶</a></h2><a href=/more><h3>More</h3></a>"
    markdown = read(html)
    assert "## Arch\n" in markdown
    assert "### [More](http://site.test/more)" in markdown
    assert "¶" not in markdown


@pytest.mark.parametrize(
    "name", ["language-python", "lang-python", "brush: python", "highlight-source-python"]
)
def test_code_keeps_its_language(name: str) -> None:
    assert "```python\nx = 1" in read(f"<article>{paragraphs(4)}<pre class='{name}'><code>x = 1</code></pre>")


def test_a_division_of_one_paragraph_is_that_paragraph_with_any_class() -> None:
    one = '<div class="promo"><p>The arch, once more, is the longest of all.</p></div>'
    assert "once more" in read(f"<article>{paragraphs(6)}{one}{paragraphs(2)}</article>")


def test_the_first_byline_goes_where_the_page_does_not_name_its_author_elsewhere() -> None:
    lines = "<p class=byline>By Ann Author</p>", "<p class=author>Ann writes about bridges.</p>"
    page = f"<div class=story>{lines[0]}{paragraphs(6)}{lines[1]}</div>"
    assert "By Ann Author" not in read(page)
    assert "Ann writes about bridges." in read(page)
    for named in (
        "<meta name=author content='Ann Author'>",
        """<script type="application/ld+json">{"author": {"name": "Ann Author"}}</script>""",
    ):
        assert "By Ann Author" in read(f"<html><head>{named}</head><body>{page}")


def test_a_form_around_words_goes_and_one_around_the_whole_page_stays() -> None:
    form = "<form><p>Tell us, please, what you think.</p><input type=text></form>"
    assert "Tell us" not in read(f"<article>{paragraphs(6)}{form}</article>")
    assert "longest" in read(f"<form><input type=hidden>{paragraphs(20)}</form>")


def test_an_element_with_a_data_table_stays_with_any_class() -> None:
    table = "<table><tr><th>Year</th><th>Length</th></tr><tr><td>1901</td><td>100 m</td></tr></table>"
    assert "1901" in read(f"<article>{paragraphs(6)}<div class=meta>{table}</div></article>")


def test_a_table_of_links_goes_though_it_is_in_a_figure() -> None:
    table = "<table><tr><td></td></tr><tr><td><a href=/buy>Buy a bridge of your own</a></td></tr></table>"
    assert "Buy a bridge" not in read(f"<article>{paragraphs(6)}<figure>{table}</figure></article>")


def test_links_that_are_buttons_count_as_links() -> None:
    stars = "".join(f'<a href="#">Give {n} stars</a> ' for n in range(1, 6))
    rating = f"<div>Rate this story with as many stars as you want to give it: {stars}<hr></div>"
    assert "Give 3 stars" not in read(f"<article>{paragraphs(6)}{rating}</article>")


@pytest.mark.parametrize("around", ['{"@type": "NewsArticle", %s}', "[{}, {%s}]", '{"@graph": [{%s}]}'])
def test_an_article_that_is_in_the_data_for_search_engines_alone_is_read_there(around: str) -> None:
    body = "The bridge opened, as the mayor said, on a cold day in May. " * 20
    data = around % f'"articleBody": "{body}"'
    sidebar = "<div id=app></div><ul>" + "<li><a href=/1>Most read</a>" * 20 + "</ul>"
    page = f"{sidebar}<script type=application/ld+json>{data}</script>"
    assert read(page) == body.strip()
    assert "Most read" in read(page.replace("articleBody", "other"))


def test_an_article_is_read_as_it_is_on_the_page_where_it_does() -> None:
    data = '<script type=application/ld+json>{"articleBody": "' + "Some other words. " * 20 + '"}</script>'
    assert "Some other words" not in read(f"<article>{paragraphs(4)}</article>{data}")


BESIDE = "<div class=sidebar><h3>Most read</h3><ul>" + "<li><a href=/1>Another story</a>" * 8 + "</ul></div>"


@pytest.mark.parametrize("path", ["/", "/page"])
def test_of_a_short_page_that_is_read_whole_the_links_beside_it_go(path: str) -> None:
    page = f"<main><h1>Note</h1><p>Only one short line.</p></main>{BESIDE}"
    assert read(page, path) == "# Note\n\nOnly one short line."
    assert "Another story" in read(f"<h1>Stories</h1>{BESIDE}", path)


@pytest.mark.parametrize(
    "name", ["id=cookie-banner class='consent modal'", "class=gdpr", "id=onetrust-consent-sdk"]
)
@pytest.mark.parametrize("path", ["/", "/page"])
def test_a_cookie_banner_is_removed_from_pages_of_any_length(name: str, path: str) -> None:
    ask = "We use cookies, and similar things, to measure and to sell, so please agree to all of them. " * 4
    box = f"<div {name}><p>{ask}</p></div>"
    for count in (0, 1, 3, 8):
        text = read(f"{box}<article><p>The bridge is open.</p>{paragraphs(count)}</article>{BESIDE}", path)
        assert "bridge is open" in text
        assert "cookies" not in text
    assert "cookies" in read(box, path)
