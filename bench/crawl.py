"""What reading pages costs: twenty at once beside the slowest of them, and the memory of a large one."""

import asyncio
import random
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from tests.crawler.web import Reply, Send, open_site

PAGES = 20
ROUNDS = 3
# As pages of the web are: most are small, each takes its site a while.
CHARACTERS = [15_000 + 7_000 * number for number in range(PAGES)]
SECONDS = [0.2 + 0.02 * number for number in range(PAGES)]
LARGE_CHARACTERS = 4_990_000
SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), robots=False)
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
    """Read twenty pages one after the other and then at once; and a page of 5 MB in a process of its own."""
    pages = {f"/{number}": _late(_page(CHARACTERS[number]), SECONDS[number]) for number in range(PAGES)}
    async with open_site(pages | {"/large": Reply(_page(LARGE_CHARACTERS))}) as site:
        crawler = Crawler(SETTINGS)
        urls = [f"{site.url}/{number}" for number in range(PAGES)]
        await crawler.crawl(urls[0])
        ratios = [await _ratio(crawler, urls) for _ in range(ROUNDS)]
        memory = await _memory_of_another_process(urls[0], f"{site.url}/large")
    return {"crawl_20_ratio": round(statistics.median(ratios), 2), "crawl_5mb_mb": memory}


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


def _late(page: str, seconds: float) -> Reply:
    async def send(data: Send) -> None:
        await asyncio.sleep(seconds)
        await data(page.encode())

    return Reply(stream=send)


async def _memory_of_another_process(small: str, large: str) -> float:
    """The megabytes by which the most that a process has held rises with a page of 5 MB."""
    command = (sys.executable, "-m", "bench.crawl", small, large)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return round(float(output), 1)


async def _rise(small: str, large: str) -> float:
    crawler = Crawler(SETTINGS)
    await crawler.crawl(small)
    _forget_peak()
    before = _peak_kilobytes()
    await crawler.crawl(large)
    return (_peak_kilobytes() - before) / 1_000


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_kilobytes() -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1])


if __name__ == "__main__":
    print(asyncio.run(_rise(*sys.argv[1:])))
