"""Retrievers of LangChain as search providers."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ValidationError

from maniple.cli.doctor.checks import check_search
from maniple.config import SearchSettings, Settings
from maniple.errors import ConfigError, SearchError
from maniple.search import SearchHit, open_chain
from maniple.search.provider import CONTENT_CHARACTERS, ProviderFailure, RateLimited
from maniple.search.retrievers import RetrieverSearch

pytestmark = pytest.mark.anyio


class Shelf(BaseRetriever):
    """Finds its documents, or raises its error."""

    documents: Any = ()
    error: Any = None
    threads: Any = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if self.threads is not None:
            self.threads.append(threading.get_ident())
        if self.error is not None:
            raise self.error
        return self.documents


class TooMany(Exception):
    """As `requests` and `httpx` raise them."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("429 Client Error")
        self.response = SimpleNamespace(status_code=429, headers=headers)


def document(text: str = "About arches.", **metadata: Any) -> Document:
    return Document(text, metadata=metadata)


async def found(*documents: Document, limit: int = 5) -> list[SearchHit]:
    return await RetrieverSearch("shelf", Shelf(documents=list(documents))).search("arches", limit=limit)


@pytest.mark.parametrize(
    ("metadata", "title", "url", "score"),
    [
        ({"title": " An arch ", "source": "https://a.test/"}, "An arch", "https://a.test/", None),
        ({"Title": "An arch", "Entry ID": "http://a.test/1"}, "An arch", "http://a.test/1", None),
        ({"source": "notes.pdf", "url": "https://a.test/", "score": 0.5}, None, "https://a.test/", 0.5),
        ({"url": 3, "link": "https://a.test/", "score": 17.0, "title": 4}, None, "https://a.test/", None),
    ],
)
async def test_a_documents_metadata_become_a_result(
    metadata: dict[str, Any], title: str | None, url: str, score: float | None
) -> None:
    assert await found(document(**metadata)) == [SearchHit(title or url, url, "About arches.", score)]


async def test_results_are_bounded_and_in_the_retrievers_order() -> None:
    many = [document("x" * 100_000, source=f"https://a.test/{number}") for number in range(300)]
    hits = await found(*many, limit=3)
    assert [hit.url[-1] for hit in hits] == ["0", "1", "2"]
    assert {len(hit.content) for hit in hits} == {CONTENT_CHARACTERS}


async def test_documents_without_an_address_are_left_out_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="maniple.search"):
        hits = await found(document(source="file:///a"), document(source="https://a.test/"))
    assert [hit.url for hit in hits] == ["https://a.test/"]
    assert "1 of 2" in caplog.text


async def test_an_answer_without_any_address_is_a_failure_that_quotes_it() -> None:
    with pytest.raises(ProviderFailure, match="quota") as caught:
        await found(document("The quota\nis used up"))
    assert caught.value.cooldown_seconds == 0
    assert await found() == []


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error",
    [
        *(KeyError("TAVILY_API_KEY"), ValueError("a\nb" * 10_000), SystemExit(3), StopIteration()),
        *(Unreadable(), asyncio.CancelledError(), ExceptionGroup("all", [ValueError("one")])),
    ],
)
async def test_whatever_a_retriever_raises_is_a_short_failure_of_the_provider(error: BaseException) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await RetrieverSearch("shelf", Shelf(error=error)).search("arches", limit=5)
    text = str(caught.value)
    assert ("shelf" in text, len(text) < 300, "\n" in text) == (True, True, False)


async def test_endless_documents_are_read_outside_of_the_event_loops_thread_and_cut() -> None:
    readers = set[int]()

    def endless() -> Iterator[Document]:
        while True:
            readers.add(threading.get_ident())
            yield document(url="https://a.test/")

    hits = await RetrieverSearch("shelf", Shelf(documents=endless())).search("arches", limit=5)
    assert len(hits) == 5
    assert readers.isdisjoint({threading.get_ident()})


@pytest.mark.parametrize(("headers", "seconds"), [({"retry-after": "7"}, 7), ({}, 60)])
async def test_a_rate_limit_pauses_for_the_time_that_it_names(headers: dict[str, str], seconds: int) -> None:
    retriever = Shelf(error=TooMany(headers))
    with pytest.raises(RateLimited) as caught:
        await RetrieverSearch("shelf", retriever).search("arches", limit=5)
    assert caught.value.cooldown_seconds == seconds


async def test_a_search_runs_outside_of_the_event_loops_thread() -> None:
    shelf = Shelf(documents=[document(url="https://a.test/")], threads=[])
    await RetrieverSearch("shelf", shelf).search("arches", limit=5)
    assert len(shelf.threads) == 1
    assert threading.get_ident() not in shelf.threads


MODULE = """
import asyncio
import threading

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

class Shelf(BaseRetriever):
    shelf: str
    rows: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(query, metadata={"url": f"https://{self.shelf}.test/"})] * self.rows

class Hung(Shelf):
    def _get_relevant_documents(self, query, *, run_manager):
        OVER.wait(20)

class Unusable(Shelf):
    def __init__(self, **given):
        raise ImportError("pip install missing-thing")

OVER = threading.Event()
READY = Shelf(shelf="ready")
NUMBER = 3

def make(shelf="made"):
    return Shelf(shelf=shelf)

def wrong():
    return "no retriever"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"shelves_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    metadata = tmp_path / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[maniple.search]\npackaged = {name}:Shelf\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def set_up(module: str, attribute: str, **options: Any) -> SearchSettings:
    return SearchSettings(
        retrievers={"books": f"{module}:{attribute}"}, providers=("books",), options={"books": options}
    )


@pytest.mark.parametrize(
    ("attribute", "options", "host"),
    [
        ("Shelf", {"shelf": "given"}, "given"),
        ("make", {}, "made"),
        ("make", {"shelf": "told"}, "told"),
        ("READY", {}, "ready"),
    ],
)
async def test_the_settings_name_a_class_a_function_or_a_retriever(
    module: str, attribute: str, options: dict[str, Any], host: str
) -> None:
    async with open_chain(set_up(module, attribute, **options)) as chain:
        hits = await chain.search("arches", limit=5)
    assert [(hit.url, hit.content, hit.source) for hit in hits] == [
        (f"https://{host}.test/", "arches", "books")
    ]


async def test_a_package_registers_a_retriever_as_an_entry_point(module: str) -> None:
    settings = SearchSettings(providers=("packaged",), options={"packaged": {"shelf": "a", "rows": 3}})
    async with open_chain(settings) as chain:
        hits = await chain.search("arches", limit=5)
    assert [hit.source for hit in hits] == ["packaged"]


MISTAKES = [
    ("Shelf", {}, "search.options.books.shelf"),
    ("Shelf", {"shelf": "a", "rows": "secret"}, "search.options.books.rows"),
    ("Unusable", {}, "missing-thing"),
    ("Absent", {}, "Absent"),
    ("NUMBER", {}, "books"),
    ("wrong", {}, "BaseRetriever"),
    ("make", {"rows": 1}, "search.options.books"),
    ("READY", {"rows": 1}, "search.options.books"),
]


@pytest.mark.parametrize(("attribute", "options", "named"), MISTAKES)
async def test_what_cannot_be_used_is_an_error_that_names_it_and_a_finding(
    module: str, attribute: str, options: dict[str, Any], named: str
) -> None:
    settings = set_up(module, attribute, **options)
    with pytest.raises(ConfigError, match=named) as caught:
        async with open_chain(settings):
            pass
    assert "secret" not in str(caught.value)
    finding = await check_search(Settings(search=settings))
    assert (finding.status, named in finding.detail) == ("problem", True)


async def test_a_missing_package_is_a_finding() -> None:
    finding = await check_search(Settings(search=set_up("no_such_package_here", "Shelf")))
    assert (finding.status, "no_such_package_here" in finding.detail) == ("problem", True)


async def test_a_retriever_that_never_answers_is_left_after_the_time_limit(module: str) -> None:
    settings = set_up(module, "Hung", shelf="a").model_copy(update={"timeout_seconds": 0.2})
    try:
        async with open_chain(settings) as chain:
            with pytest.raises(SearchError, match="no answer"):
                await chain.search("arches", limit=5)
    finally:
        __import__(module).OVER.set()


@pytest.mark.parametrize(
    "wrong", [{"ddgs": "a.b:C"}, {"books": "a.b"}, {"books": "a b:C"}, {"books": "a:b:c"}]
)
def test_what_names_no_attribute_or_a_built_in_provider_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SearchSettings(retrievers=wrong)


def test_a_provider_must_be_known() -> None:
    with pytest.raises(ValidationError, match="books"):
        SearchSettings(retrievers={"books": "a:B"}, providers=("papers",))
