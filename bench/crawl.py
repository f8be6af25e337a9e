"""What reading costs: twenty pages or PDFs at once beside the slowest, and the memory of large pages."""

import asyncio
import random
import re
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from maniple.reading.fork_server import ForkServer
from tests.crawler.web import Reply, Send, open_site
from tests.reading.files import pdf

PAGES = 20
ROUNDS = 3
# As pages of the web are: most are small, each takes its site a while.
CHARACTERS = [15_000 + 7_000 * number for number in range(PAGES)]
SECONDS = [0.2 + 0.02 * number for number in range(PAGES)]
LARGE_CHARACTERS = 4_990_000
SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), robots=False)
# Five megabytes of each: pages of tables, lists, highlighted code and bare data, at their worst.
PIECES = {
    "table": "<tr><td>1</td><td>2</td></tr>",
    "paragraphs": "<p>a, b</p>",
    "links": "<li><a href=/x>y</a></li>",
    "spans": "<b>x</b> ",
    "breaks": "word<br>",
    "images": "<img src=a.png alt=x>",
    "data": '{"a": 1}, ',
}
_WORDS = [
    "market",
    "price",
    "winter",
    "council",
    "because",
    "people",
    "coffee",
    "report",
    "harbour",
    "government",
    "morning",
]


async def measure() -> dict[str, float]:
    """Read twenty pages one after the other and then at once; and pages of 5 MB in a process of its own."""
    pages = {f"/{number}": _late(_page(CHARACTERS[number]), SECONDS[number]) for number in range(PAGES)}
    large = {f"/large/{name}": _monotonous(name) for name in PIECES}
    large["/large"] = Reply(_page(LARGE_CHARACTERS))
    pdfs = {f"/{number}.pdf": _late(_pdf(), SECONDS[number], "application/pdf") for number in range(PAGES)}
    async with open_site(pages | pdfs | large) as site:
        crawler = Crawler(SETTINGS)
        urls = [f"{site.url}/{number}" for number in range(PAGES)]
        await crawler.crawl(urls[0])
        ratios = [await _ratio(crawler, urls) for _ in range(ROUNDS)]
        documents = [f"{site.url}{path}" for path in pdfs]
        await crawler.crawl(documents[0])
        pdf_ratios = [await _ratio(crawler, documents) for _ in range(ROUNDS)]
        memory, reader = await _memory_of_another_process(urls[0], *(f"{site.url}{path}" for path in large))
    return {
        "crawl_20_ratio": round(statistics.median(ratios), 2),
        "crawl_20_pdf_ratio": round(statistics.median(pdf_ratios), 2),
        "crawl_5mb_mb": memory,
        "crawl_5mb_reader_mb": reader,
    }


async def _ratio(crawler: Crawler, urls: list[str]) -> float:
    alone = [await _timed(crawler.crawl, url) for url in urls]
    begun = time.perf_counter()
    await asyncio.gather(*map(crawler.crawl, urls))
    return (time.perf_counter() - begun) / max(alone)


async def _timed(work: Callable[[str], Awaitable[object]], url: str) -> float:
    begun = time.perf_counter()
    await work(url)
    return time.perf_counter() - begun


def _page(characters: int) -> str:
    """An article in the midst of what stands around articles, always the same."""
    chance = random.Random(characters)
    parts = [
        "<title>Report</title><nav>",
        *(f"<a href=/{n}>Menu {n}</a> " for n in range(60)),
        "</nav><main>",
    ]
    while sum(map(len, parts)) < characters:
        piece = [_paragraph(chance) for _ in range(max(characters // 5_000, 1))]
        parts.append(f"<h2>{chance.choice(_WORDS)}</h2>" + "".join(piece))
    return "".join([*parts, "</main>"])[:characters]


def _paragraph(chance: random.Random) -> str:
    words = " ".join(chance.choices(_WORDS, k=60))
    return f'<p class="text">{words}, <a href="/{chance.choice(_WORDS)}">more</a> and <b>no less</b>.</p>'


def _monotonous(name: str) -> Reply:
    text = PIECES[name] * (LARGE_CHARACTERS // len(PIECES[name]))
    if name == "data":
        return Reply(f"[{text}0]", "application/json")
    return Reply(f"<table>{text}</table>" if name == "table" else text)


def _pdf() -> bytes:
    chance = random.Random(PAGES)
    return pdf(*(" ".join(chance.choices(_WORDS, k=60)) for _ in range(8)))


def _late(page: str | bytes, seconds: float, media_type: str = "text/html") -> Reply:
    body = page.encode() if isinstance(page, str) else page

    async def send(data: Send) -> None:
        await asyncio.sleep(seconds)
        await data(body)

    return Reply(stream=send, content_type=media_type)


async def _memory_of_another_process(small: str, *large: str) -> list[float]:
    """By how many megabytes the peak of a process rises with pages of 5 MB; and its readers' peak."""
    command = (sys.executable, "-m", "bench.crawl", small, *large)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return [round(float(figure), 1) for figure in output.split()]


async def _rise(small: str, *large: str) -> tuple[float, float]:
    fork_server = ForkServer()
    crawler = Crawler(SETTINGS, fork_server=fork_server)
    await crawler.crawl(small)
    _forget_peak()
    before = _peak_kilobytes()
    for url in large:
        with suppress(FetchError):  # some hold too little to be read as a page
            await crawler.crawl(url)
    fork_server.close()  # whose end the readers' figures wait for
    readers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (_peak_kilobytes() - before) / 1_000, readers / 1_000


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_kilobytes() -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1])


if __name__ == "__main__":
    print(*asyncio.run(_rise(*sys.argv[1:])))
