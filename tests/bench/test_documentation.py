"""The benchmark of built documentation takes the content of known generators only."""

from pathlib import Path

from bench.documentation import find_content_text, measure_corpus

PROSE = "The command writes the tree of the index to the object store and prints its name. " * 5
SPHINX = f"""<html><head><title>write-tree</title></head><body>
<div class="related" role="navigation">Index</div>
<div class="document"><div class="body" role="main"><h1>write-tree<a class="headerlink" href="#a">¶</a></h1>
<p>{PROSE}</p>
<pre><span>git</span><span>_dir</span></pre></div></div>
<div class="footer">Legal</div></body></html>"""


def test_the_content_is_that_of_the_generators_own_container():
    text = find_content_text(SPHINX) or ""

    assert PROSE.strip() in text
    assert "git_dir" in text
    assert not {"Index", "Legal", "¶"} & set(text.split())


def test_a_page_of_an_unknown_generator_has_no_known_content():
    assert find_content_text("<html><body><div><p>Some text.</p></div></body></html>") is None


def test_a_corpus_counts_the_pages_that_it_leaves_out(tmp_path: Path):
    (tmp_path / "page.html").write_text(SPHINX)
    (tmp_path / "moved.html").write_text("<html><body><main>Moved.</main></body></html>")

    result = measure_corpus(tmp_path)

    assert list(result.scores) == ["page.html"]
    assert result.scores["page.html"] > 0.9
    assert result.skipped == 1
    assert "1 pages (1 left out)" in result.line
