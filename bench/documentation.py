"""Token F1 of the pages of built documentation, against the text of their generator's content element.

`python -m bench.documentation FOLDER` measures the HTML pages below `FOLDER`, each of whose folders is a
corpus, such as a documentation package that `dpkg -x` unpacked. The generators' own templates say what the
content is (AsciiDoc, Sphinx, DocBook, rustdoc, RDoc, and those of Apache and SQLite), so that no extractor
judges itself. Pages of other generators and pages with fewer than 40 tokens, such as redirects, are left out
and counted.
"""

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lxml import html

from bench.extraction import own, split_tokens, token_f1
from maniple.reading.encoding import decode_text

PAGES = 80
"""The pages of a corpus that are measured; all of it if it has fewer."""
SEED = 20_260
MIN_TOKENS = 40
_DOCBOOK = (
    "sect1",
    "sect2",
    "chapter",
    "refentry",
    "section",
    "book",
    "part",
    "preface",
    "appendix",
    "index",
)
_CONTENT = (
    "//body[div[@id='footer']]/div[@id='content']",  # AsciiDoc
    "//div[@role='main']",  # Sphinx
    "//main",  # RDoc, mdBook, rustdoc
    "//div[@id='page-content']",  # Apache
    "|".join(f"/html/body/div[@class='{name}']" for name in _DOCBOOK),
    "/html/body[div[contains(@class, 'nosearch')]]",  # SQLite
)
_TITLES = "//body[div[@id='content']]/div[@id='header']"
"""AsciiDoc puts the title, and of a manual page the first section, before the content."""
_LEFT_OUT = (
    "//script|//style|//nav|//svg|//button|//select|//template|//noscript|//*[@hidden]|//*[@role='navigation']"
    "|//*[contains(@class, 'nosearch') or contains(@class, 'headerlink') or contains(@class, 'toplang')"
    " or contains(@class, 'permalink') or contains(@class, 'viewcode-link') or @id='copy-path'"
    " or @id='mobile-toc' or @class='anchor' or @class='ulink_more']"
    "|//div[@class='header'][.//a[@accesskey]]"  # makeinfo's links to other pages
    "|//*[contains(translate(@style, ' ', ''), 'display:none')]"
)
_INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "var", "wbr",
}  # fmt: skip


@dataclass(slots=True)
class CorpusResult:
    """What was measured of one corpus."""

    name: str
    skipped: int = 0
    scores: dict[str, float] = field(default_factory=dict[str, float])
    milliseconds: list[float] = field(default_factory=list[float])

    @property
    def line(self) -> str:
        """The figures of the corpus in one line."""
        if not self.scores:
            return f"{self.name:24} no page of a known generator"
        values = self.scores.values()
        worst = min(self.scores, key=lambda page: self.scores[page])
        return (
            f"{self.name:20} {len(values):3} pages ({self.skipped} left out)"
            f"  mean {statistics.mean(values):.3f}  median {statistics.median(values):.3f}"
            f"  lowest {self.scores[worst]:.3f} ({worst})"
            f"  {statistics.median(self.milliseconds):.0f} ms a page"
        )


def find_content_text(source: str) -> str | None:
    """Return the visible text of the content of a page; None if its generator is not known."""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)
    page = html.document_fromstring(f"<html>{source}".encode(), parser=parser)
    found = next((parts for path in _CONTENT if (parts := page.xpath(path))), None)
    if found is None:
        return None
    parts = [*page.xpath(_TITLES), *found]
    for element in page.xpath(_LEFT_OUT):
        if element not in parts:
            element.clear(keep_tail=True)
    return " ".join("".join(_texts(part)) for part in parts)


def _texts(element: html.HtmlElement) -> Iterator[str]:
    """Yield the texts of `element`, with a space on both sides of what is not inline."""
    for event, one in html.etree.iterwalk(element, events=("start", "end")):
        if one.tag not in _INLINE:
            yield " "
        text = one.text if event == "start" else one.tail if one is not element else ""
        yield text or ""


def measure_corpus(folder: Path, pages: int = PAGES, seed: int = SEED) -> CorpusResult:
    """Measure `pages` pages below `folder`, chosen by `seed`."""
    result = CorpusResult(folder.name)
    paths = sorted(path for path in folder.rglob("*.html*") if path.is_file() and path.suffix != ".gz")
    random.Random(seed).shuffle(paths)
    for path in paths:
        if len(result.scores) == pages:
            break
        source = decode_text(path.read_bytes(), None)
        expected = find_content_text(source)
        if expected is None or len(split_tokens(expected)) < MIN_TOKENS:
            result.skipped += 1
            continue
        started = time.perf_counter()
        found = own(source, f"http://site.test/{path.relative_to(folder)}")
        result.milliseconds.append(1_000 * (time.perf_counter() - started))
        result.scores[str(path.relative_to(folder))] = token_f1(found, expected)
    return result


def main() -> None:
    """Print the figures of each corpus, and with `--pages-below` the pages that score less."""
    parser = argparse.ArgumentParser(prog="python -m bench.documentation", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=PAGES, help="pages of a corpus")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--pages-below", type=float, default=0.0, metavar="F1")
    options = parser.parse_args()
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        result = measure_corpus(folder, options.pages, options.seed)
        print(result.line, flush=True)
        for name, score in sorted(result.scores.items(), key=lambda item: item[1]):
            if score < options.pages_below:
                print(f"    {score:.3f}  {name}")


if __name__ == "__main__":
    main()
