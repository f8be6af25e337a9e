"""The temporary conversations of processes that have gone are deleted, whatever one of them raises."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maniple.service import deletion
from maniple.service.deletion import open_sweeper
from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio


async def test_an_error_that_nobody_expects_ends_neither_the_sweep_nor_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            app = replace(it.service, engine_config=replace(it.service.engine_config, watch_seconds=0.02))
            kept, gone = [await it.thread() for _ in range(2)]
            threads = [await app.store.threads.get(one, None) for one in (kept, gone)]
            looks = 0

            async def list_abandoned() -> Any:
                nonlocal looks
                looks += 1
                if looks == 1:
                    raise RuntimeError("the list is broken")
                return [one for one in threads if one and await app.store.threads.get(one.thread_id, None)]

            delete = deletion.delete_conversation

            async def delete_conversation(app: Any, thread_id: str, owner: str) -> Any:
                if thread_id == kept:
                    raise RuntimeError("the thread is broken")
                return await delete(app, thread_id, owner)

            monkeypatch.setattr(app.store.threads, "list_abandoned", list_abandoned)
            monkeypatch.setattr(deletion, "delete_conversation", delete_conversation)
            async with open_sweeper(app), asyncio.timeout(60):
                while await app.store.threads.get(gone, None):  # noqa: ASYNC110 - another task deletes it
                    await asyncio.sleep(0.02)
            assert await app.store.threads.get(kept, None)
    assert "the list is broken" in caplog.text
    assert "the thread is broken" in caplog.text
