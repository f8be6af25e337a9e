"""The folder's index beside a plain BM25: what is found again, how fast, and how fast it is built.

`python -m bench.folder_search [FOLDER]` measures 5,000 documents of FOLDER, else of the installed packages:
real texts, each asked for with four of its words, and with one of its sentences of which a third is missing.
500 more texts are not indexed: how often a hit for a question about them is weak, so that the web is asked.

With EMBEDDING_MODEL and EMBEDDING_BASE_URL (and EMBEDDING_API_KEY) the same is asked by meaning, too. These
questions share words with their documents: the figures show that meaning takes nothing away.
"""

import asyncio
import math
import os
import random
import re
import statistics
import sys
import sysconfig
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path

from maniple.config.load import load_settings
from maniple.config.model_settings import EmbeddingSettings
from maniple.llms.embeddings import EndpointEmbedder
from maniple.search import FolderSearch
from maniple.search.folder_index import FolderIndex
from maniple.search.languages import FUNCTION_WORDS
from maniple.search.providers.folder import WEAK_COVERAGE

DOCUMENTS = 5_000
QUERIES = 300
_MIN_CHARACTERS, _MAX_CHARACTERS = 1_500, 60_000
_SUFFIXES = (".md", ".rst", ".txt", ".py")
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[A-Z][^.!?\n]*(?:\n[^.!?\n]+)*[.!?]")
_SEED = 7

_ABSENT = 500
OUTSIDE = (
    "who won the football world cup in 2022",
    "best pasta recipe with mushrooms",
    "current interest rate of the European Central Bank",
    "symptoms of vitamin D deficiency in adults",
    "how tall is the Eiffel tower",
    "history of the Ottoman empire trade routes",
    "price of a train ticket from Paris to Lyon",
    "effects of climate change on coral reefs",
    "population of Nairobi 2024",
    "Chopin nocturne opus 9 analysis",
    "how to train a puppy",
    "causes of the French revolution",
    "electric car battery range comparison 2026",
    "mortgage rates in Germany",
    "hiking trails in Patagonia",
)
"""Questions about something else."""

Rank = Callable[[str], Sequence[str]]


class PlainBM25:
    """BM25 over whole documents as in rank_bm25 (`BM25Okapi`): lower case, no stemming."""

    K1, B = 1.5, 0.75

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for name, text in texts.items():
            words = Counter(_WORD.findall(text.lower()))
            self._lengths[name] = words.total()
            for word, count in words.items():
                self._postings[word].append((name, count))
        self._mean = statistics.mean(self._lengths.values())

    def documents_with(self, word: str) -> int:
        """The number of documents that have a word."""
        return len(self._postings.get(word, ()))

    def rank(self, query: str, limit: int = 10) -> list[str]:
        """The names of the best documents, best first."""
        scores: dict[str, float] = defaultdict(float)
        for word in _WORD.findall(query.lower()):
            found = self._postings.get(word, ())
            weight = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for name, count in found:
                norm = self.K1 * (1 - self.B + self.B * self._lengths[name] / self._mean)
                scores[name] += weight * count * (self.K1 + 1) / (count + norm)
        return sorted(scores, key=lambda name: -scores[name])[:limit]


def real_texts(folder: Path, most: int = DOCUMENTS) -> dict[str, str]:
    """Texts below a folder by name, each content once."""
    texts: dict[str, str] = {}
    seen = set[int]()
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES or path.name == "METADATA")
    random.Random(_SEED).shuffle(paths)
    for path in paths:
        if len(texts) == most:
            break
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError):
            continue
        if _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS and hash(text) not in seen:
            seen.add(hash(text))
            texts[f"{path.relative_to(folder).as_posix().replace('/', '__')}.txt"] = text
    return texts


def keyword_queries(texts: Mapping[str, str], plain: PlainBM25, most: int) -> Iterator[tuple[str, str]]:
    """Names of documents, each with four words of one of its passages that few documents have."""
    dice = random.Random(_SEED)
    names = sorted(texts)
    dice.shuffle(names)
    for name in names:
        start = dice.randrange(max(1, len(texts[name]) - 1_000))
        words = {word.lower() for word in re.findall(r"[A-Za-z]{4,}", texts[name][start : start + 1_000])}
        rare = sorted(word for word in words if 2 <= plain.documents_with(word) < len(texts) / 10)
        if len(rare) >= 4 and most:
            most -= 1
            yield name, " ".join(dice.sample(rare, 4))


def sentence_queries(texts: Mapping[str, str], plain: PlainBM25, most: int) -> Iterator[tuple[str, str]]:
    """Names of documents, each with a question made of one of its sentences, a third of whose words lack."""
    dice = random.Random(_SEED + 1)
    names = sorted(texts)
    dice.shuffle(names)
    for name in names:
        sentences = [_WORD.findall(one) for one in _SENTENCE.findall(texts[name])]
        prose = [
            one
            for one in sentences
            if 14 <= len(one) <= 35
            and sum(word.lower() in FUNCTION_WORDS["english"] for word in one) > len(one) / 4
        ]
        if prose and most:
            most -= 1
            words = [word for word in dice.choice(prose) if dice.random() > 1 / 3]
            yield name, f"What do the documents say about this: {' '.join(words)}?"


def hit_share(queries: Sequence[tuple[str, str]], rank: Rank) -> float:
    """The share of the queries whose document is found first."""
    return sum(list(rank(query))[:1] == [name] for name, query in queries) / len(queries)


def weak_share(index: FolderIndex, queries: Sequence[tuple[str, str]], *, are_right: bool = False) -> float:
    """The share of the queries whose best hit is weak; `are_right` counts those that find their document."""
    found = [(name, (index.find(query, 1) or [None])[0]) for name, query in queries]
    counted = [hit for name, hit in found if not are_right or (hit is not None and hit.name == name)]
    return sum(hit is None or hit.coverage < WEAK_COVERAGE for hit in counted) / max(1, len(counted))


async def read_text(name: str, body: bytes) -> tuple[str, str, str]:
    """The reader of the index: text as it is."""
    return name, body.decode("utf-8"), ""


async def build(folder: Path, databases: Path) -> float:
    """Index the folder; return the seconds."""
    started = time.perf_counter()
    async with aclosing(FolderSearch(folder, read_text, databases)) as search:
        await search.search("anything", limit=1)
        while (await search.state()).pending:
            await search.search("anything", limit=1)
    return time.perf_counter() - started


async def embed(
    folder: Path, databases: Path, settings: EmbeddingSettings, queries: Sequence[str]
) -> tuple[str, float, dict[str, list[float]]]:
    """Embed the folder and the queries; return the model's name, the seconds and the queries' vectors."""
    embedder = EndpointEmbedder(settings)
    started = time.perf_counter()
    async with aclosing(FolderSearch(folder, read_text, databases, embedder=embedder)) as search:
        await search.search("anything", limit=1)
        while (state := await search.state()).vectors.missing:
            if state.notices:
                raise RuntimeError(" ".join(state.notices))
            await search.search("anything", limit=1)
        seconds = time.perf_counter() - started
        vectors = {query: await embedder.embed_query(query) for query in queries}
    return embedder.name, seconds, vectors


def measure_meaning(
    folder: Path, path: Path, settings: EmbeddingSettings, kinds: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, float]:
    """The shares found first and the milliseconds a query, by words and meaning."""
    queries = [query for asked in kinds.values() for _, query in asked]
    name, seconds, vectors = asyncio.run(embed(folder, path.parent, settings, queries))
    figures = {"embedding_seconds": seconds}
    index = FolderIndex(path, folder)
    try:
        stored = index.vectors(name)
        figures["passages"] = stored.counts().passages
        stored.rank(vectors[queries[0]])  # it reads all vectors
        for kind, asked in kinds.items():
            times = list[float]()

            def rank(query: str, times: list[float] = times) -> list[str]:
                started = time.perf_counter()
                near = stored.rank(vectors[query])
                times.append(time.perf_counter() - started)
                return [one.name for one in index.find(query, 10, near)]

            figures[f"{kind}_hit1_meaning"] = hit_share(asked, rank)
            figures[f"{kind}_meaning_ms_p50"] = statistics.median(times) * 1_000
    finally:
        index.close()
    return figures


def measure(folder: Path | None = None) -> dict[str, float]:
    """The figures of `bench`, for the installed packages or another folder."""
    texts = real_texts(folder or Path(sysconfig.get_paths()["purelib"]), DOCUMENTS + _ABSENT)
    return {f"folder_{name}": round(value, 3) for name, value in measure_texts(texts).items()}


def measure_texts(all_texts: Mapping[str, str], queries: int = QUERIES) -> dict[str, float]:
    """Files a second, milliseconds a query, and the shares found first, beside those of a plain BM25.

    The last tenth of the texts, at most 500, is not indexed.
    """
    held_out = min(_ABSENT, len(all_texts) // 10)
    texts = dict(islice(all_texts.items(), len(all_texts) - held_out))
    absent = dict(islice(all_texts.items(), len(texts), None))
    plain = PlainBM25(texts)
    absent_plain = PlainBM25(absent)
    kinds = {
        "keyword": list(keyword_queries(texts, plain, queries)),
        "sentence": list(sentence_queries(texts, plain, queries)),
    }
    figures: dict[str, float] = {"documents": len(texts)}
    with tempfile.TemporaryDirectory() as place:
        folder, databases = Path(place, "documents"), Path(place, "index")
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
        figures["files_per_second"] = len(texts) / asyncio.run(build(folder, databases))
        figures["restart_seconds"] = asyncio.run(build(folder, databases))
        [path] = databases.glob("*.db")
        figures["index_over_text"] = path.stat().st_size / sum(len(text) for text in texts.values())
        index = FolderIndex(path, folder)
        try:
            for kind, asked in kinds.items():
                times = list[float]()

                def rank(query: str, times: list[float] = times) -> list[str]:
                    started = time.perf_counter()
                    found = [one.name for one in index.find(query, 10)]
                    times.append(time.perf_counter() - started)
                    return found

                figures[f"{kind}_queries"] = len(asked)
                figures[f"{kind}_hit1"] = hit_share(asked, rank)
                figures[f"{kind}_hit1_plain"] = hit_share(asked, plain.rank)
                figures[f"{kind}_lead"] = figures[f"{kind}_hit1"] - figures[f"{kind}_hit1_plain"]
                figures[f"{kind}_ms_p50"] = statistics.median(times) * 1_000
                figures[f"{kind}_right_weak"] = weak_share(index, asked, are_right=True)
                figures[f"{kind}_ms_p95"] = sorted(times)[int(0.95 * len(times))] * 1_000
            asked = [
                *keyword_queries(absent, absent_plain, queries // 2),
                *sentence_queries(absent, absent_plain, queries // 2),
            ]
            figures["absent_weak"] = weak_share(index, asked)
            figures["outside_weak"] = weak_share(index, [("", query) for query in OUTSIDE])
        finally:
            index.close()
        settings = load_settings(Path(place, "conf.yaml"), environment=os.environ).models.embedding
        if settings is not None:
            figures |= measure_meaning(folder, path, settings, kinds)
    return figures


def main() -> None:
    """Print the figures."""
    for name, value in measure(Path(sys.argv[1]) if sys.argv[1:] else None).items():
        print(f"{name:26} {value:10.3f}")


if __name__ == "__main__":
    main()
