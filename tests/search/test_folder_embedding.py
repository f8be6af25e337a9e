"""Documents of a folder are found by their meaning, too, where an endpoint embeds them."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from maniple.llms.embeddings import EndpointEmbedder
from maniple.search import FolderSearch
from maniple.search import folder_embedding as embedding_module
from tests.search.embedding_endpoint import Endpoint, open_endpoint, vector_of

pytestmark = pytest.mark.anyio

_FILES = 70


async def read(name: str, body: bytes) -> tuple[str, str, str]:
    return name, body.decode(), ""


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with open_endpoint() as one:
        yield one


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    for number in range(_FILES):
        (place / f"{number}.txt").write_text(f"Station {number} has a platform and signal{number}.")
    (place / "motor.txt").write_text("An automobile needs a new engine.")
    return place


def opened(
    documents: Path, databases: Path, endpoint: Endpoint, embedder: Any = None, **values: Any
) -> FolderSearch:
    one = embedder or EndpointEmbedder(endpoint.settings(**values))
    return FolderSearch(documents, read, databases, embedder=one)


async def find(search: FolderSearch, query: str) -> list[str]:
    return [hit.url.removeprefix("folder:") for hit in await search.search(query, limit=3)]


async def wait_for_all(search: FolderSearch) -> None:
    for _ in range(100):
        await search.search("anything", limit=1)
        state = await search.state()
        if not state.pending and not state.vectors.missing:
            return
    raise AssertionError((await search.state()).describe_gaps())


async def test_a_question_in_other_words_finds_the_document(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    async with aclosing(FolderSearch(documents, read)) as search:
        assert await find(search, "repair cars") == []
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
        [best, *_] = await search.search("cars", limit=3)
        assert (best.url, best.is_weak) == ("folder:motor.txt", True)
        assert (await search.find_gaps()).text == ""


async def test_what_has_all_words_of_the_question_stays_first(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    (documents / "shop.txt").write_text("cars: see the list")
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
        assert (await find(search, "cars"))[:2] == ["shop.txt", "motor.txt"]


async def test_after_a_restart_only_changed_documents_are_embedded(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
    assert len([text for text in endpoint.texts if "platform" in text]) == _FILES
    endpoint.requests.clear()
    (documents / "motor.txt").write_text("A vessel")
    (documents / "1.txt").unlink()
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
        assert [text for text in endpoint.texts if "anything" not in text] == ["motor.txt\nA vessel"]
        assert (await find(search, "boat"))[0] == "motor.txt"
        assert "motor.txt" not in (await find(search, "cars"))[:1]


@pytest.mark.parametrize("changed", [{"model": "n"}, {"dimensions": 128}, {"passage_prefix": "passage: "}])
async def test_another_model_embeds_all_anew_and_the_first_one_is_remembered(
    documents: Path, tmp_path: Path, endpoint: Endpoint, changed: dict[str, Any]
) -> None:
    for values, expected in (({}, _FILES), (changed, _FILES), ({}, 0)):
        endpoint.requests.clear()
        async with aclosing(opened(documents, tmp_path / "index", endpoint, **values)) as search:
            await wait_for_all(search)
            assert (await find(search, "cars"))[0] == "motor.txt"
        assert len([text for text in endpoint.texts if "platform" in text]) == expected


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_without_the_endpoint_words_answer_and_the_gaps_say_so(
    documents: Path, tmp_path: Path, endpoint: Endpoint, status: int
) -> None:
    endpoint.status = status
    async with aclosing(opened(documents, tmp_path / "index", endpoint, api_key="k-secret-1")) as search:
        assert (await find(search, "signal7"))[0] == "7.txt"
        gaps = await search.find_gaps()
        assert "by their words only" in gaps.text
        assert "k-secret-1" not in gaps.text
        assert not gaps.is_passing
        asked = len(endpoint.requests)
        await find(search, "signal8")
        assert len(endpoint.requests) == asked, "an endpoint that has failed is left alone for a while"


async def test_an_endpoint_that_comes_back_embeds_the_rest(
    documents: Path, tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "AWAY_SECONDS", 0.0)
    endpoint.status = 503
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await find(search, "signal7")
        endpoint.status = 200
        await wait_for_all(search)
        assert (await find(search, "cars"))[0] == "motor.txt"
        assert (await search.find_gaps()).text == ""


async def test_vectors_of_another_length_are_not_mixed(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
        endpoint.dimensions = 32
        assert (await find(search, "signal7"))[0] == "7.txt"
        assert "32 dimensions" in (await search.find_gaps()).text
    (documents / "new.txt").write_text("A harbour")
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        assert (await find(search, "harbour"))[0] == "new.txt"
        assert "32 dimensions" in (await search.find_gaps()).text


async def test_a_passage_that_is_refused_does_not_stop_the_others(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.refused = "signal7."
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await wait_for_all(search)
        assert (await find(search, "cars"))[0] == "motor.txt"
        assert (await search.state()).vectors.refused == 1
        assert "refuses 1 passages" in (await search.find_gaps()).text
        assert (await find(search, "platform 7"))[0] == "7.txt"


async def test_an_endpoint_that_refuses_everything_has_refused_no_passage(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.status = 400
    async with aclosing(opened(documents, tmp_path / "index", endpoint)) as search:
        await find(search, "signal7")
        vectors = (await search.state()).vectors
        assert (vectors.refused, vectors.missing) == (0, _FILES + 1)


class Stopping:
    """Embeds two batches, and then waits for ever."""

    name, batch, tokens, cost = "m", 8, 0, None

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.waits = asyncio.Event()
        self.left = 2

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        if not self.left:
            self.waits.set()
            await asyncio.Event().wait()
        self.left -= 1
        self.embedded.extend(texts)
        return [vector_of(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return vector_of(text)

    async def aclose(self) -> None:
        pass


async def test_who_is_stopped_in_the_middle_loses_no_finished_batch(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    first, second = Stopping(), Stopping()
    second.left = 1_000
    search = opened(documents, tmp_path / "index", endpoint, first)
    search.start()
    await asyncio.wait_for(first.waits.wait(), 30)
    gaps = await search.find_gaps()
    assert gaps.is_passing
    assert "not embedded yet" in gaps.text
    await search.aclose()
    async with aclosing(opened(documents, tmp_path / "index", endpoint, second)) as search:
        await wait_for_all(search)
    assert len(first.embedded) == 16
    assert not set(first.embedded) & set(second.embedded)
    assert len(second.embedded) == _FILES + 1 - 16


async def test_a_passage_deleted_without_embeddings_leaves_no_vector(
    documents: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    databases = tmp_path / "index"
    async with aclosing(opened(documents, databases, endpoint)) as search:
        await wait_for_all(search)
    (documents / "motor.txt").unlink()
    async with aclosing(FolderSearch(documents, read, databases)) as search:
        await find(search, "signal7")
    [path] = databases.glob("*.db")
    with sqlite3.connect(path) as database:
        [vectors] = database.execute("SELECT count(*) FROM vector").fetchone()
    assert vectors == _FILES


async def test_the_price_is_logged(
    documents: Path, tmp_path: Path, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "maniple")
    async with aclosing(opened(documents, tmp_path / "index", endpoint, price_input=1e6)) as search:
        await wait_for_all(search)
    [logged] = [one.getMessage() for one in caplog.records if "embedded" in one.getMessage()]
    spent = sum(len(text.split()) for text in endpoint.texts if "anything" not in text)
    assert f"{_FILES + 1} passages with {spent} tokens" in logged
    assert f"{spent:.4f}" in logged
