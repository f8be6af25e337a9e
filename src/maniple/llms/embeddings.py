"""The client of the endpoint of `models.embedding`."""

import asyncio
import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from pydantic import SecretStr

from maniple.config.model_settings import EmbeddingSettings
from maniple.config.secrets import NO_KEY
from maniple.config.sources import EMBEDDING_PREFIX
from maniple.errors import ModelError
from maniple.llms.endpoints import OPENAI_URL, EndpointName
from maniple.types import is_dict

QUERY_SECONDS = 5.0
"""How long a question waits: a search that is late finds nothing."""
_SETTING = "models.embedding"


class EndpointEmbedder:
    """Turns texts into vectors, by OpenAI's API. Nothing is sent before the first call; close it.

    For one event loop.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._endpoint = EndpointName.of(settings.model, settings.base_url, _SETTING, EMBEDDING_PREFIX)
        self._client: Any = None
        self._opening = asyncio.Lock()
        self.tokens = 0
        """The tokens that the endpoint has counted for passages and questions."""

    @property
    def name(self) -> str:
        """What the vectors of a text depend on; vectors of other names are not compared with these."""
        own = self._settings
        return json.dumps([own.model, own.dimensions, own.passage_prefix], ensure_ascii=False)

    @property
    def batch(self) -> int:
        """The passages of one request at most."""
        return self._settings.batch

    @property
    def cost(self) -> float | None:
        """The price of the tokens so far; None without `price_input`."""
        price = self._settings.price_input
        return None if price is None else self.tokens * price / 1e6

    def __str__(self) -> str:
        return str(self._endpoint)

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text, all of one length; raises `ModelError`."""
        prefix = self._settings.passage_prefix
        return await self._embed([prefix + text for text in texts])

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question within `QUERY_SECONDS`; raises `ModelError`."""
        seconds = min(QUERY_SECONDS, self._settings.timeout_seconds)
        try:
            async with asyncio.timeout(seconds):
                [vector] = await self._embed([self._settings.query_prefix + text], max_retries=1)
        except TimeoutError as error:
            raise ModelError(
                f"{self._endpoint} did not answer a question in {seconds:.0f} s.", code="model_timeout"
            ) from error
        return vector

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _embed(self, texts: list[str], **options: Any) -> list[list[float]]:
        import openai

        from maniple.llms.endpoint_errors import model_error

        client = await self._open()
        client = client.with_options(**options) if options else client
        wanted: dict[str, Any] = {"model": self._settings.model, "input": texts, "encoding_format": "float"}
        if self._settings.dimensions is not None:
            wanted["dimensions"] = self._settings.dimensions
        try:
            answer = await client.embeddings.with_raw_response.create(**wanted)
        except openai.OpenAIError as error:
            failure = model_error(error, self._endpoint)
            if self._settings.api_key is not None:
                failure.hide(self._settings.api_key.get_secret_value())
            raise failure from error
        # Hundreds of kilobytes: not on the event loop.
        vectors, tokens = await asyncio.to_thread(self._parse, answer.content, len(texts))
        self.tokens += tokens
        return vectors

    async def _open(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(_open_client, self._settings)
        return self._client

    def _parse(self, body: bytes, count: int) -> tuple[list[list[float]], int]:
        try:
            answer = json.loads(body)
            ordered = sorted(answer["data"], key=lambda one: one.get("index", 0))
            vectors = [list(map(float, one["embedding"])) for one in ordered]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._bad_answer("what it returned has no vectors") from error
        if len(vectors) != count:
            raise self._bad_answer(f"it returned {len(vectors)} vectors for {count} texts")
        lengths = {len(vector) for vector in vectors}
        wanted = {self._settings.dimensions or max(lengths)}
        if lengths != wanted or 0 in lengths:
            raise self._bad_answer(
                f"its vectors have {max(lengths)} dimensions, not {max(wanted)}; correct "
                f"{_SETTING}.dimensions, or remove it"
            )
        if not all(math.isfinite(sum(vector)) and any(vector) for vector in vectors):
            raise self._bad_answer("one of its vectors is zero or not finite")
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") or usage.get("total_tokens") if is_dict(usage) else 0
        return vectors, tokens if isinstance(tokens, int) else 0

    def _bad_answer(self, why: str) -> ModelError:
        return ModelError(f"{self._endpoint} gave no usable embeddings: {why}.", code="model_bad_response")


def _open_client(settings: EmbeddingSettings) -> Any:
    """Return the client; its imports take 0.3 s, and certificates are read from disk."""
    import openai

    from maniple.installation import installing
    from maniple.llms.http_client import open_http_client
    from maniple.llms.models import convert_retry_after_date

    if find_spec("numpy") is None:
        raise ModelError(
            f"{_SETTING} needs numpy, which is not installed. Install it: {installing('embeddings')}.",
            code="model_not_configured",
        )
    return openai.AsyncOpenAI(
        # Local servers need no key, but the SDK requires one.
        api_key=(settings.api_key or SecretStr(NO_KEY)).get_secret_value(),
        base_url=settings.base_url or OPENAI_URL,
        timeout=settings.timeout_seconds,
        max_retries=settings.max_retries,
        http_client=open_http_client(event_hooks={"response": [convert_retry_after_date]}),
    )
