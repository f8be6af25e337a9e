"""How much of what a person would read each extractor finds, and how much else: token F1.

`python -m bench.extraction` measures pages of the tests' own making; with the name of a folder, those in it:
`NAME.html` beside `NAME.expected.html` or `NAME.txt`, or folders of `source.html` and `expected.html`.
Extractors that are not installed are left out. `python -m bench.documentation` measures built documentation.
"""

import asyncio
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from lxml import html

from maniple.crawler.article import read_article
from maniple.crawler.document import FetchedDocument
from maniple.reading.fork_server import ForkServer
from tests.reading.corpus import corpus
from tests.reading.pages import Page

# In scripts without spaces every letter is a token.
_LETTERS = "\u0e00-\u0e7f\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(f"[{_LETTERS}]|[^\\W{_LETTERS}]+")
_TARGET = r"\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"
_ADDRESSES = re.compile(rf"!\[[^\]]*\]{_TARGET}|\]{_TARGET}|<https?://[^>]*>")


def token_f1(found: str, expected: str) -> float:
    """0 to 1: the harmonic mean of precision and recall over the multisets of tokens."""
    ours, theirs = (Counter(split_tokens(text)) for text in (found, expected))
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def split_tokens(text: str) -> list[str]:
    """Return the words of `text` in lower case; of a script without spaces, its letters."""
    return _TOKEN.findall(text.lower())


def own(page: str, url: str = "http://site.test/a/b") -> str:
    """The text of maniple's Markdown, without the addresses of its links and images."""
    document = FetchedDocument(url, "text/html", "utf-8", page.encode())
    return _ADDRESSES.sub("]", asyncio.run(read_article(document, 10**9, ForkServer())).markdown)


def measure() -> dict[str, float]:
    """The figure of `bench`: the median of our own on the tests' pages."""
    return {
        "extraction_f1": round(statistics.median(token_f1(own(page.html), page.text) for page in corpus()), 3)
    }


def main() -> None:
    """Print median, lowest and time for each extractor."""
    measured = _load(Path(sys.argv[1])) if sys.argv[1:] else corpus()
    for name, extract in _extractors().items():
        started = time.perf_counter()
        scores = {page.name: token_f1(extract(page.html), page.text) for page in measured}
        took = time.perf_counter() - started
        worst = min(scores, key=lambda page: scores[page])
        median = statistics.median(scores.values())
        lowest = f"{scores[worst]:.3f} ({worst})"
        print(f"{name:18} median {median:.3f}  lowest {lowest}  {took:.1f} s for {len(scores)}")


def _extractors() -> dict[str, Callable[[str], str]]:
    found: dict[str, Callable[[str], str]] = {"maniple": own}
    if trafilatura := _installed("trafilatura"):
        found["trafilatura"] = lambda page: trafilatura.extract(page, include_comments=False) or ""
    if readability := _installed("readability"):
        found["readability-lxml"] = lambda page: _text(readability.Document(page).summary())
    if readabilipy := _installed("readabilipy"):
        read = readabilipy.simple_json_from_html_string
        found["readabilipy"] = lambda page: _text(read(page, use_readability=False)["plain_content"] or "")
    return found


def _installed(module: str):
    try:
        return import_module(module)
    except ImportError:
        return None


def _load(folder: Path) -> list[Page]:
    found = []
    for source in sorted({*folder.glob("*/source.html"), *folder.glob("*.html")}):
        name = source.parent.name if source.name == "source.html" else source.stem
        expected = source.with_name(
            "expected.html" if source.name == "source.html" else f"{name}.expected.html"
        )
        text = source.with_suffix(".txt")
        if expected.exists():
            found.append(Page(name, source.read_text("utf-8", "replace"), _text(expected.read_text())))
        elif text.exists():
            found.append(Page(name, source.read_text("utf-8", "replace"), text.read_text()))
    return found


def _text(source: str) -> str:
    if not source.strip():
        return ""
    root = html.document_fromstring(source.encode(), parser=html.HTMLParser(encoding="utf-8"))
    return " ".join(root.itertext())


if __name__ == "__main__":
    main()
