"""The client of the endpoint of embeddings sends what is set, and accepts only usable vectors."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from maniple.cli.doctor.model_checks import check_embedding
from maniple.config import ModelsSettings, SearchSettings, Settings, load_settings
from maniple.config.model_settings import EmbeddingSettings
from maniple.config.secrets import secrets_of
from maniple.errors import ModelError
from maniple.llms import embeddings as embeddings_module
from maniple.llms.embeddings import EndpointEmbedder
from tests.search.embedding_endpoint import DIMENSIONS, Endpoint, open_endpoint, vector_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with open_endpoint() as one:
        yield one


async def test_vectors_are_in_the_order_of_the_texts_and_tokens_are_counted(endpoint: Endpoint) -> None:
    async with aclosing(EndpointEmbedder(endpoint.settings(price_input=2.0))) as embedder:
        found = await embedder.embed_passages(["one car", "two"])
        assert found == [vector_of("one car"), vector_of("two")]
        assert (embedder.tokens, embedder.cost) == (3, pytest.approx(6e-6))


async def test_what_is_set_is_sent(endpoint: Endpoint) -> None:
    own = endpoint.settings(api_key="k1", dimensions=128, query_prefix="query: ", passage_prefix="passage: ")
    async with aclosing(EndpointEmbedder(own)) as embedder:
        assert len(await embedder.embed_query("a")) == 128
        await embedder.embed_passages(["b"])
    assert endpoint.texts == ["query: a", "passage: b"]
    assert {one["dimensions"] for one in endpoint.requests} == {128}
    assert set(endpoint.keys) == {"Bearer k1"}


def _answer(*vectors: Any) -> dict[str, Any]:
    return {"data": [{"index": place, "embedding": one} for place, one in enumerate(vectors)]}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"object": "list"}, "no vectors"),
        (_answer([1.0, 2.0]), "1 vectors for 2"),
        (_answer([1.0, 2.0], [1.0]), "dimensions"),
        (_answer([], []), "dimensions"),
        (_answer([1.0, "x"], [1.0, 2.0]), "no vectors"),
        (_answer([0.0, 0.0], [1.0, 2.0]), "zero"),
        (_answer([1e999, 0.0], [1.0, 2.0]), "finite"),
    ],
)
async def test_an_answer_without_usable_vectors_is_an_error(
    endpoint: Endpoint, answer: dict[str, Any], why: str
) -> None:
    endpoint.answer = answer
    async with aclosing(EndpointEmbedder(endpoint.settings())) as embedder:
        with pytest.raises(ModelError, match=why) as caught:
            await embedder.embed_passages(["a", "b"])
    assert caught.value.code == "model_bad_response"


async def test_without_numpy_the_error_says_how_to_install_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings_module, "find_spec", lambda name: None)
    async with aclosing(EndpointEmbedder(endpoint.settings())) as embedder:
        with pytest.raises(ModelError, match=r"\[embeddings\]"):
            await embedder.embed_query("a")
    assert not endpoint.requests


def test_variables_set_it_and_its_key_is_a_secret(tmp_path: Path) -> None:
    settings = load_settings(
        tmp_path / "conf.yaml",
        environment={
            "EMBEDDING_MODEL": "m",
            "EMBEDDING_API_KEY": "k-12345",
            "EMBEDDING_BASE_URL": "http://x/v1",
        },
    )
    assert settings.models.embedding is not None
    assert (settings.models.embedding.model, settings.models.embedding.base_url) == ("m", "http://x/v1")
    assert "k-12345" in secrets_of(settings)


@pytest.mark.parametrize("values", [{}, {"base_url": "http://x/v1/embeddings"}])
def test_a_place_is_needed_without_the_method(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbeddingSettings(model="m", **values)


def _settings(endpoint: Endpoint, folder: Path | None) -> Settings:
    return Settings(
        models=ModelsSettings(embedding=endpoint.settings()), search=SearchSettings(folder=folder)
    )


async def test_the_doctor_says_what_is_sent_where(endpoint: Endpoint, tmp_path: Path) -> None:
    [found] = await check_embedding(_settings(endpoint, tmp_path))
    assert found.status == "ok"
    assert f"{DIMENSIONS} dimensions" in found.detail
    assert str(tmp_path) in found.detail
    assert endpoint.url in found.detail
    endpoint.status = 401
    [found] = await check_embedding(_settings(endpoint, tmp_path))
    assert found.status == "warning"
    assert "EMBEDDING_API_KEY" in found.detail


async def test_the_doctor_sends_nothing_where_there_is_no_folder(endpoint: Endpoint) -> None:
    [found] = await check_embedding(_settings(endpoint, None))
    assert "search.folder" in found.remedy
    assert not endpoint.requests
    assert await check_embedding(Settings()) == []
