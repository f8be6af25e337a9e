"""The whole service inside the test's process, over a scripted endpoint."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from maniple.api import create_app
from maniple.config import Settings
from maniple.service import Service
from maniple.store import KeyLimits
from tests.grammar import Client
from tests.serving import Frame

QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}


@dataclass
class InProcessService:
    """The open service, and a client that has no key."""

    app: Any
    service: Service
    client: httpx.AsyncClient

    async def key(self, name: str, **limits: Any) -> dict[str, str]:
        """Make a key; return the header that shows it."""
        _, secret = await self.service.store.keys.add(name, KeyLimits(**limits))
        return {"x-api-key": secret}

    async def thread(self, headers: dict[str, str] | None = None) -> str:
        """Make a conversation."""
        response = await self.client.post("/api/threads", headers=headers)
        assert response.status_code == 201, response.text
        return response.json()["thread_id"]

    async def run(self, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
        """Start a run on a conversation of its own."""
        path = f"/api/threads/{body.pop('thread_id', '') or await self.thread(headers)}/runs"
        response = await self.client.post(path, json={**QUESTION, **body}, headers=headers)
        assert response.status_code == 202, response.text
        assert response.headers["location"] == f"/api/runs/{response.json()['run_id']}"
        return response.json()

    async def events_of(
        self, run_id: str, after: int = 0, headers: dict[str, str] | None = None
    ) -> list[Frame]:
        """Follow a run to its end or its pause."""
        path = f"/api/runs/{run_id}/events?after={after}"
        response = await self.client.get(path, headers=headers)
        assert response.status_code == 200, response.text
        read = numbered(response.text)
        assert [number for number, _ in read] == list(range(after + 1, after + 1 + len(read)))
        frames = [frame for _, frame in read]
        Client().read(frames)
        return frames

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        """Read what must be there."""
        response = await self.client.get(path, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()


def numbered(text: str) -> list[tuple[int, Frame]]:
    """Read the frames of a whole stream, with their numbers."""
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    return [(int(n[4:]), (name[7:], json.loads(data[6:]))) for n, name, data in blocks]


def settings_of(base_url: str, home: Path, **sections: Any) -> Settings:
    """Return settings that open at once: no sandbox, no browser, no search."""
    model = {"model": "scripted", "base_url": base_url, "max_retries": 0, "timeout_seconds": 60}
    plain = {"sandbox": {"backend": "off"}, "browser": {"enabled": False}, "models": {"basic": model}}
    plain |= {"search": {"providers": []}, "runs": {"drain_seconds": 0.5}}
    places = {"data_dir": home / "data", "cache_dir": home / "cache"}
    return Settings.model_validate({**plain, **places, **sections})


@asynccontextmanager
async def open_service(base_url: str, home: Path, **sections: Any) -> AsyncIterator[InProcessService]:
    """Open the service; `sections` are settings."""
    app = create_app(settings_of(base_url, home, **sections))
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield InProcessService(app, app.state.service, client)
