"""The whole service with its artifacts in a bucket: figures, downloads in parts, deletion, outage."""

import io
import socket
from pathlib import Path
from zipfile import ZipFile

import pytest

from maniple.store.artifact_objects import ArtifactObjects
from tests.api.in_process import InProcessService, open_service
from tests.api.test_figures import draw
from tests.bucket import Bucket
from tests.openai_server import SIMPLE, reply

pytestmark = pytest.mark.anyio

REPORT = "# Sales\n\n![Sales](figures/sales.png)\n\nSee [the table](table.csv) and [the notes](notes.txt).\n"


async def finished_run(it: InProcessService, model, picture: bytes, table: bytes) -> dict[str, str]:
    """Run a team in a conversation with an upload, whose code has left a figure and a table."""
    model.reset({**SIMPLE, "reporter": [reply(REPORT)]})
    name = await it.thread()
    sent = await it.client.post(f"/api/threads/{name}/files", files={"files": ("notes.txt", b"uploaded")})
    assert sent.status_code == 201
    thread = await it.service.store.threads.get(name, "")
    assert thread is not None
    workspace = it.service.workspaces.open(thread.thread_id)
    workspace.write("figures/sales.png", picture)
    workspace.write("table.csv", table)
    run = await it.run(thread_id=name)
    await it.events_of(run["run_id"])
    return run


async def test_a_conversation_with_figure_and_upload_lives_in_a_bucket(model, tmp_path: Path, bucket: Bucket):
    artifacts = bucket.settings().model_dump(exclude_none=True)
    async with open_service(model.base_url, tmp_path, artifacts=artifacts) as it:
        picture, table = draw(), b"year,sales\n" + b"2020,1\n" * 400_000
        run = await finished_run(it, model, picture, table)
        path = f"/api/runs/{run['run_id']}"
        view = await it.get(f"{path}/report?form=json")
        made = {one["name"]: one for one in view["artifacts"]}
        assert {"sales.png", "table.csv"} <= made.keys()
        kept = {f"artifacts/of one/{one['artifact_id']}" for one in made.values()}
        assert set(bucket.list_keys()) == kept
        assert not (tmp_path / "data/artifacts").exists()

        figure = await it.client.get(f"{path}/figures/figures/sales.png")
        assert figure.content == picture
        assert (await it.client.get(f"{path}/report?form=html")).text.count("<img") == 1
        archive = await it.client.get(f"{path}/report?form=zip")
        with ZipFile(io.BytesIO(archive.content)) as opened:
            assert table in [opened.read(name) for name in opened.namelist()]
            assert b"uploaded" in [opened.read(name) for name in opened.namelist()]

        url = made["table.csv"]["url"]
        assert (await it.client.get(url)).content == table
        part = await it.client.get(url, headers={"range": "bytes=2000000-2000099"})
        assert (part.status_code, part.content) == (206, table[2_000_000:2_000_100])
        assert part.headers["content-range"] == f"bytes 2000000-2000099/{len(table)}"

        assert (await it.client.delete(f"/api/threads/{run['thread_id']}")).status_code == 200
        assert bucket.list_keys() == []
        assert (await it.client.get(url)).status_code == 404


@pytest.mark.parametrize(
    ("wanted", "status", "start", "stop"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=3-", 206, 3, 10),
        ("bytes=-4", 206, 6, 10),
        ("bytes=-40", 206, 0, 10),
        ("bytes=8-99", 206, 8, 10),
        ("bytes=10-", 416, 0, 0),
        ("bytes=-0", 416, 0, 0),
        ("bytes=5-4", 200, 0, 10),
        ("bytes=0-1,4-5", 200, 0, 10),
        ("bytes=-", 200, 0, 10),
        ("lines=1-2", 200, 0, 10),
    ],
)
async def test_a_part_is_what_the_range_asks_for(it: InProcessService, wanted, status, start, stop):
    run = await it.run()
    record = await it.service.engine.status(run["run_id"])
    data = b"0123456789"
    artifact = await it.service.store.artifacts.add(record, "a.txt", "text/plain", data)
    path = f"/api/artifacts/{artifact.artifact_id}"
    answer = await it.client.get(path, headers={"range": wanted})
    assert (answer.status_code, answer.content) == (status, data[start:stop])
    assert answer.headers["content-length"] == str(stop - start)
    # A part of another version is of no use.
    tag = answer.headers["etag"]
    whole = await it.client.get(path, headers={"range": wanted, "if-range": '"another"'})
    assert (whole.status_code, whole.content, whole.headers["etag"]) == (200, data, tag)


async def test_a_bucket_that_is_away_is_an_error_that_may_be_repeated(model, tmp_path: Path, bucket: Bucket):
    artifacts = bucket.settings().model_dump(exclude_none=True)
    async with open_service(model.base_url, tmp_path, artifacts=artifacts) as it:
        run = await it.run()
        record = await it.service.engine.status(run["run_id"])
        artifact = await it.service.store.artifacts.add(record, "a.txt", "text/plain", b"x")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        it.service.store.artifacts.contents = ArtifactObjects(bucket.settings(endpoint=address), 0.2)
        answer = await it.client.get(f"/api/artifacts/{artifact.artifact_id}")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unreachable")
        assert address in answer.text
