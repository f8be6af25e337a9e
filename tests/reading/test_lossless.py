import time

import pytest

from maniple.reading.formats import read_document
from maniple.reading.html import read_html

_TEXT = "<p>The table shows the sales of two regions in two years, as the companies reported them.</p>" * 6


def read(body: str) -> str:
    return read_html(
        f"<title>T</title><article><h1>Sales</h1>{_TEXT}{body}{_TEXT}</article>", "https://a.test/p"
    ).markdown


def rows(markdown: str) -> list[str]:
    return [line for line in markdown.splitlines() if line.startswith("|") and "---" not in line]


def test_each_cell_of_a_table_with_spans_is_under_its_head() -> None:
    table = (
        "<table><tr><th rowspan=2>Region</th><th colspan=2>Sales</th></tr><tr><th>2023</th><th>2024</th></tr>"
        "<tr><td rowspan=2>North</td><td>1<br>2</td><td>a|b</td></tr><tr><td>3</td><td>4</td></tr></table>"
    )
    assert rows(read(table)) == [
        "| Region | Sales / 2023 | Sales / 2024 |",
        "| North | 1 2 | a\\|b |",
        "| North | 3 | 4 |",
    ]


def test_a_table_of_a_fragment_is_expanded_too() -> None:
    feed = (
        b'<rss version="2.0"><channel><title>F</title><item><title>A</title><description>&lt;table&gt;'
        b"&lt;tr&gt;&lt;th&gt;a&lt;/th&gt;&lt;th&gt;b&lt;/th&gt;&lt;/tr&gt;&lt;tr&gt;&lt;td colspan=2&gt;x"
        b"&lt;/td&gt;&lt;/tr&gt;&lt;/table&gt;</description></item></channel></rss>"
    )
    assert rows(read_document("feed", feed, "https://a.test/f", None).markdown) == ["| a | b |", "| x | x |"]


def test_endless_spans_are_bounded() -> None:
    table = "<table>" + "<tr><td rowspan=99999 colspan=99999>x</td></tr>" * 400 + "</table>"
    begun = time.process_time()
    read(table)
    assert time.process_time() - begun < 30


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("10<sup>6</sup> m<sup>2</sup>", "10^6 m^2"),
        ("10<sup>−6</sup> H<sub>2</sub>O", "10^−6 H_2O"),
        ("x<sup>n + 1</sup>", "x^(n + 1)"),
        ("the 1<sup>st</sup> and the 2<sup>e</sup>", "the 1st and the 2e"),
        ("Brand<sup>TM</sup>", "BrandTM"),
        ("so it is<sup>[4]</sup>", "so it is[4]"),
    ],
)
def test_powers_and_indexes_stay_apart_from_the_number(html: str, text: str) -> None:
    assert text in read(f"<p>It measures {html} as they said.</p>")


@pytest.mark.parametrize(
    "html",
    [
        '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2</pre></div></td>'
        '<td class="code"><div class="highlight language-python"><pre>def f():\n    return 1</pre></div></td></tr></table>',
        '<div class="highlight-python"><div class="highlight"><pre><span class="linenos">1</span>def f():\n'
        '<span class="linenos">2</span>    return 1</pre></div></div>',
        '<div data-lang="python"><pre><code>def f():\n    return 1</code></pre></div>',
        '<table class="hljs-ln language-python"><tr><td class="hljs-ln-numbers" data-line-number="1"></td><td>def f():</td></tr>'
        '<tr><td class="hljs-ln-numbers" data-line-number="2"></td><td>    return 1</td></tr></table>',
    ],
)  # fmt: skip
def test_code_is_read_without_its_line_numbers_and_with_its_language(html: str) -> None:
    assert "```python\ndef f():\n    return 1\n```" in read(html)


@pytest.mark.parametrize(
    "html",
    [
        '<span class="katex"><span class="katex-mathml"><math><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation></math></span><span class="katex-html">x2</span></span>',
        '<span class="MathJax_Preview">x2</span><script type="math/tex">x^2</script>',
        '<span class="mwe-math-element"><span style="display:none"><math alttext="{\\displaystyle x^2}"><mi>x</mi></math></span><img src="/x.svg" alt="{\\displaystyle x^2}"></span>',
        '<math alttext="x^2"><msup><mi>x</mi><mn>2</mn></msup></math>',
    ],
)  # fmt: skip
def test_a_formula_is_read_once_as_it_was_written(html: str) -> None:
    markdown = read(f"<p>The area is {html} in all of these cases.</p>")
    assert "is $x^2$ in" in markdown


def test_a_formula_without_a_source_is_written_in_one_line() -> None:
    math = "<math><mfrac><mi>a</mi><msup><mi>b</mi><mn>2</mn></msup></mfrac></math>"
    assert "(a)/(b^2)" in read(f"<p>It is {math} here.</p>")


def test_check_boxes_of_a_list_are_read() -> None:
    markdown = read(
        "<ul><li><input type=checkbox checked disabled> Mill</li>"
        "<li><input type=checkbox disabled> Weir</li></ul>"
    )
    assert "- [x] Mill" in markdown
    assert "- [ ] Weir" in markdown


def test_a_page_that_is_mostly_a_table_keeps_its_head_and_its_next_page() -> None:
    body = "".join(f"<tr><td>{n}</td><td>Mill {n}</td></tr>" for n in range(60))
    page = (
        "<title>Mills</title><main><h1>Mills of the river</h1><table><caption>All mills</caption><thead><tr><th>No</th><th>Name</th></tr></thead>"
        f"<tbody>{body}</tbody></table><a rel=next href='/mills?page=2'>Next</a></main>"
    )  # fmt: skip
    reading = read_html(page, "https://a.test/mills")
    assert reading.title == "Mills"
    assert "| No | Name |" in reading.markdown
    assert "https://a.test/mills?page=2" in reading.markdown
