"""An endpoint of embeddings on loopback: a text's vector is the sum of its words', synonyms have one."""

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from maniple.config.model_settings import EmbeddingSettings

DIMENSIONS = 256
SYNONYMS = {"car": "automobile", "cars": "automobile", "physician": "doctor", "boat": "vessel"}


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of a text."""
    vector = [0.0] * dimensions
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        digest = hashlib.shake_256(str(SYNONYMS.get(word, word)).encode()).digest(dimensions)
        for place in range(dimensions):
            vector[place] += digest[place] - 127.5
    return vector if any(vector) else [1.0] * dimensions


class Endpoint:
    """What the endpoint was asked, and how it answers."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.dimensions = DIMENSIONS
        self.status = 200
        self.refused = ""
        """A word of texts that get HTTP 400."""
        self.answer: dict[str, Any] | None = None
        self.url = ""

    @property
    def texts(self) -> list[str]:
        """All texts that were sent."""
        return [text for request in self.requests for text in request["input"]]

    def settings(self, **values: Any) -> EmbeddingSettings:
        """Settings of a model of this endpoint."""
        return EmbeddingSettings(**{"model": "m", "base_url": self.url, "max_retries": 0} | values)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("authorization", ""))
        if self.status != 200:
            return web.json_response({"error": {"message": "it is closed"}}, status=self.status)
        if self.refused and any(self.refused in text for text in body["input"]):
            return web.json_response({"error": {"message": "the input is too long"}}, status=400)
        if self.answer is not None:
            return web.json_response(self.answer)
        dimensions = body.get("dimensions", self.dimensions)
        data = [
            {"object": "embedding", "index": place, "embedding": vector_of(text, dimensions)}
            for place, text in enumerate(body["input"])
        ]
        tokens = sum(len(text.split()) for text in body["input"])
        # An endpoint may give them in any order.
        return web.json_response({"data": data[::-1], "usage": {"prompt_tokens": tokens}})


@asynccontextmanager
async def open_endpoint() -> AsyncIterator[Endpoint]:
    """Serve an endpoint on loopback."""
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/embeddings", endpoint.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        endpoint.url = f"http://127.0.0.1:{port}/v1"
        yield endpoint
    finally:
        await runner.cleanup()
