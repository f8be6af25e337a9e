"""Documentation is read whole: its lists, signatures and tables are content, its frame is not."""

import pytest

from maniple.reading.html import read_html

PROSE = "The tool writes the tree of the index to the object store, and prints its name to the output. " * 6
TOC = "".join(
    f"<li><a href='chapter{n}.html'>Chapter {n}: the {word} store</a></li>"
    for n, word in enumerate(("object", "reference", "index", "remote", "shallow", "packed"))
)
FOOTER = (
    "<div class='footer'><p>"
    + "Copyright of the foundation, all rights reserved, licensed freely. " * 10
    + "</p></div>"
)


def page(body: str, generator: str = "") -> str:
    meta = f"<meta name='generator' content='{generator}'>" if generator else ""
    return f"<html><head><title>Manual</title>{meta}</head><body>{body}</body></html>"


@pytest.mark.parametrize(
    "generator", ["AsciiDoc 10.2.0", "DocBook XSL Stylesheets V1.79", "Docutils 0.19", "rustdoc"]
)
def test_documentation_keeps_its_lists_and_loses_its_frame(generator: str):
    body = f"""<div class="navheader"><a href="a.html">Backwards</a></div><div id="content"><h1>Commands</h1>
<div class="sect1"><p>{PROSE}</p></div><ul class="extra">{TOC}</ul>
<div class="related-options"><dl><dt>--depth</dt><dd>A number.</dd></dl></div></div>{FOOTER}"""

    text = read_html(page(body, generator), "http://site.test/manual/commands.html").markdown

    assert "Chapter 5" in text
    assert "--depth" in text
    assert "Backwards" not in text
    assert "Copyright" not in text


def test_the_footer_of_a_table_of_contents_is_not_taken_for_its_content():
    body = f"<div class='document'><div role='main'><h1>Manual</h1><ul>{TOC}</ul></div></div>{FOOTER}"

    document = read_html(page(body, "Docutils 0.19"), "http://site.test/manual/index.html")

    assert document.kind == "documentation"
    assert "Chapter 3" in document.markdown
    assert "Copyright" not in document.markdown


def test_an_undated_page_is_read_whole_where_the_article_misses_most_of_it():
    methods = "".join(
        f"<div class='method-extra'><div class='heading-tags'><code>store_{n}(key)</code></div>"
        f"<div class='meta'>Returns the object number {n} without its header or its checksum.</div></div>"
        for n in range(30)
    )

    text = read_html(
        page(f"<main><h1>Store</h1><p>{PROSE}</p>{methods}</main>{FOOTER}"), "http://site.test/s"
    ).markdown

    assert "store_29(key)" in text
    assert "Copyright" not in text


def test_comments_longer_than_an_undated_story_are_still_left_out():
    comments = "".join(
        f"<div class='comment'><p>I disagree with point {n}, as I said before. </p></div>" for n in range(60)
    )

    text = read_html(
        page(f"<div class='story'><p>{PROSE}</p></div><div id='comments'>{comments}</div>"),
        "http://site.test/s",
    )

    assert "disagree" not in text.markdown


def test_a_comment_in_highlighted_code_is_code():
    code = "<pre><span class='ruby-comment'># opens it</span>\nopen()</pre>"
    body = f"<article><h1>Store</h1><p>{PROSE}</p>{code}</article>"

    assert "# opens it" in read_html(page(body), "http://site.test/store").markdown


def test_an_index_by_sphinx_is_documentation_without_naming_its_generator():
    script = "<script id='documentation_options' data-url_root='./' src='_static/o.js'></script>"
    table = f"<table class='indextable'><tr><td><ul>{TOC}</ul></td></tr></table>"
    body = f"{script}<div class='body' role='main'><h1>Index</h1>{table}</div>{FOOTER}"

    document = read_html(page(body), "http://site.test/genindex.html")

    assert document.kind == "documentation"
    assert "Chapter 0" in document.markdown
    assert "Copyright" not in document.markdown


def test_a_bar_of_links_to_the_next_page_is_no_content_whatever_its_name():
    link = "<a accesskey='p' href='a.html'><img src='p.png' alt='Backwards'></a>"
    bar = f"<table class='x'><tr><td>{link}</td></tr></table>"
    body = f"{bar}<div class='refentry'><h2>Store</h2><p>{PROSE}</p></div>{bar}"

    text = read_html(page(body, "DocBook XSL Stylesheets V1.79"), "http://site.test/store.html").markdown

    assert "Backwards" not in text
    assert "object store" in text
