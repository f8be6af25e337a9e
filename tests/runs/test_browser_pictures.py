"""Pictures of the browser are stored for clients that follow the run, and for its recording."""

import asyncio
import io
import json

import pytest
from langchain_core.messages import HumanMessage
from PIL import Image

from maniple.browser import PageServices
from maniple.runs import RunRequest, open_engine
from maniple.runs.artifact_collector import MAX_SAVED_BYTES, MAX_SAVED_FILES, ArtifactSaver
from maniple.store import open_store
from tests.agents.browsing.shop import HOME, Shop, ShopPage, done, shop_script, shopping, use
from tests.runs.test_recovery import events_of
from tests.store.samples import stored_run
from tests.team import checked, data, status

pytestmark = pytest.mark.anyio
SCRIPT = shop_script(use("go_to_url", url=HOME), use("click_element", index=0), done())


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (320, 200), "white").save(file, "JPEG")
    return file.getvalue()


class Patient(Shop):
    """Opens nothing before a client follows the run."""

    def __init__(self) -> None:
        super().__init__(picture=picture())
        self.followed = asyncio.Event()

    async def page(self, thread: str, services: PageServices | None = None) -> ShopPage:
        await self.followed.wait()
        return await super().page(thread, services)


async def run(folder, recording: str, *, followed: bool = True):
    shop = Patient()
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        shopping(
            SCRIPT,
            shop=shop,
            checkpointer=store.checkpointer,
            browsing={"recording": recording, "vision": "never"},
        ) as (it, _),
        open_engine(it.team, store, kind="server") as engine,
    ):
        run_id = (
            await engine.submit(RunRequest([HumanMessage("What do apples cost?")], thread_id="t"))
        ).run.run_id
        if followed:
            async for _ in engine.events(run_id):
                shop.followed.set()
        else:
            shop.followed.set()
            # The report comes after the browser's work.
            await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"]["reporter"], 100)
        frames = checked(await events_of(engine, run_id))
        kept = {one.artifact_id: one for one in await store.artifacts.list_by_run(run_id)}
        contents = {
            key: await (await store.artifacts.open(one)).read()
            for key, one in kept.items()
            if one.media_type.startswith("image/")
        }
    assert status(frames) == "completed"
    return frames, kept, contents


def addresses(frames) -> list[str | None]:
    return [one["screenshot"] for one in data(frames, "browser_state")]


def recording(frames) -> str | None:
    return json.loads(data(frames, "tool_call_result")[0]["tool_result"])["generated_gif_path"]


async def test_who_follows_a_run_sees_pictures_and_finds_a_recording(tmp_path):
    frames, kept, contents = await run(tmp_path, "watched")
    assert [one.rpartition("/")[0] for one in addresses(frames)] == ["/api/artifacts"] * 2
    for address in addresses(frames):
        artifact = kept[address.rpartition("/")[2]]
        assert (artifact.name, artifact.media_type) == ("screenshot.jpg", "image/jpeg")
        assert contents[artifact.artifact_id] == picture()
    acting = [one["screenshot"] for one in data(frames, "browser_step") if one["state"] == "acting"]
    assert acting == [None, *addresses(frames)]
    path = recording(frames)
    assert path.startswith("/api/browser_history/") and path.endswith(".gif")
    gif = Image.open(io.BytesIO(contents[path.rpartition("/")[2].removesuffix(".gif")]))
    assert (gif.format, gif.n_frames) == ("GIF", 2)


async def test_without_a_follower_no_pictures_are_taken(tmp_path):
    frames, _, contents = await run(tmp_path, "watched", followed=False)
    assert (addresses(frames), recording(frames), contents) == ([None, None], None, {})


async def test_always_is_whether_anybody_follows_or_not(tmp_path):
    frames, _, contents = await run(tmp_path, "always", followed=False)
    assert recording(frames) is not None
    assert len(contents) == 3


async def test_with_recording_never_no_picture_is_stored(tmp_path):
    frames, _, contents = await run(tmp_path, "never")
    assert (addresses(frames), recording(frames), contents) == ([None, None], None, {})


async def test_a_run_that_is_cancelled_has_its_recording_so_far(tmp_path):
    shop = Shop(picture=picture(), hangs_at="click_element")
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        shopping(SCRIPT, shop=shop, checkpointer=store.checkpointer, browsing={"recording": "always"}) as (
            it,
            _,
        ),
        open_engine(it.team, store, kind="server") as engine,
    ):
        request = RunRequest([HumanMessage("What do apples cost?")], thread_id="t")
        run_id = (await engine.submit(request)).run.run_id
        async with asyncio.timeout(60):
            await shop.stuck.wait()
        assert (await engine.cancel(run_id)).status == "cancelled"
        kept = [one.media_type for one in await store.artifacts.list_by_run(run_id)]
        frames = checked(await events_of(engine, run_id))
    assert kept.count("image/gif") == 1
    assert status(frames) == "cancelled"


async def test_a_run_keeps_so_many_files_and_no_more(tmp_path):
    async with open_store(tmp_path / "maniple.db", tmp_path, server=True) as store:
        keep = ArtifactSaver(store, await stored_run(store))
        assert await keep("a.jpg", "image/jpeg", b"x" * (MAX_SAVED_BYTES + 1)) is None
        kept = [await keep("a.jpg", "image/jpeg", b"x") for _ in range(MAX_SAVED_FILES + 1)]
    assert all(kept[:-1]) and kept[-1] is None
