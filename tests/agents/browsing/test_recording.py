"""The recording of what was done in the browser."""

import asyncio
import io
import threading

import pytest
from PIL import Image

from maniple.agents.browsing import recording
from maniple.agents.browsing.recording import RecordingFrame, render_gif

pytestmark = pytest.mark.anyio
WHITE = (255, 255, 255)


def picture(size: tuple[int, int] = (1280, 800), form: str = "JPEG", *, noise: bool = False) -> bytes:
    image = Image.effect_noise(size, 80).convert("RGB") if noise else Image.new("RGB", size, WHITE)
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def opened(gif: bytes | None) -> Image.Image:
    assert gif is not None
    image = Image.open(io.BytesIO(gif))
    assert image.format == "GIF"
    return image


def frames_of(gif: bytes | None) -> int:
    return opened(gif).n_frames  # type: ignore[attr-defined]


def red(image: Image.Image, box: tuple[int, int, int, int]) -> int:
    """Count the pixels of a part that are as red as a mark."""
    part = image.convert("RGB").crop(box)
    return sum(r > 180 and g < 80 and b < 80 for r, g, b in part.get_flattened_data())


async def test_each_step_is_a_frame_with_its_caption_and_what_was_acted_on_in_a_box():
    gif = await render_gif(
        [
            RecordingFrame(picture(), "1 go_to_url url=https://shop.test"),
            RecordingFrame(picture(), "2 click_element index=7", box=(0.5, 0.5, 0.75, 0.75)),
        ]
    )
    image = opened(gif)
    assert image.size == (800, 532)
    assert red(image, (0, 0, 800, 500)) == 0
    image.seek(1)
    assert red(image, (396, 246, 604, 380)) > 1_000
    assert red(image, (0, 0, 390, 500)) == 0
    below = image.convert("L").crop((0, 500, 800, 532))
    assert below.getextrema()[0] < 60 < 200 < below.getextrema()[1]


async def test_what_is_no_picture_is_left_out():
    bomb = picture((5_000, 4_100))
    bad = [RecordingFrame(content, "1 wait") for content in (b"", b"GIF89a", b"\xff\xd8\xff\xe0half", bomb)]
    assert await render_gif(bad) is None
    assert await render_gif([]) is None
    assert frames_of(await render_gif([*bad, RecordingFrame(picture(form="PNG"), "2 wait")])) == 1


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (900, 1), (333, 1_000)])
async def test_a_picture_of_any_shape_is_recorded(size):
    gif = await render_gif([RecordingFrame(picture(size), "1\n\twait " * 90, box=(7.0, -1.0, 0.2, 0.1))])
    assert opened(gif).size[0] == 800


async def test_of_many_frames_some_are_taken_evenly_with_the_first_and_the_last(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(recording, "SIZES", ((80, 5),))
    frames = [
        RecordingFrame(picture((80, 50)), str(number), box=(0, 0, number / 30, 1)) for number in range(31)
    ]
    image = opened(await render_gif(frames))
    assert image.n_frames == 5  # type: ignore[attr-defined]
    image.seek(4)
    assert red(image, (78, 0, 80, 50)) > 20


async def test_a_recording_that_would_be_too_long_is_made_smaller(monkeypatch: pytest.MonkeyPatch):
    frames = [RecordingFrame(picture((400, 250), noise=True), str(number)) for number in range(4)]
    large = await render_gif(frames)
    assert large is not None
    monkeypatch.setattr(recording, "MAX_GIF_BYTES", len(large) // 2)
    small = await render_gif(frames)
    assert opened(small).width == 400
    assert len(small or b"") <= len(large) // 2
    monkeypatch.setattr(recording, "MAX_GIF_BYTES", 100)
    assert await render_gif(frames) is None


async def test_the_loop_is_free_meanwhile_and_a_cancelled_recording_ends(monkeypatch: pytest.MonkeyPatch):
    begun, goes_on, ended, seen = threading.Event(), threading.Event(), threading.Event(), []
    fit, make = recording._open_picture, recording._render

    def slow(screenshot: bytes, width: int):
        seen.append(screenshot)
        begun.set()
        assert goes_on.wait(30)
        return fit(screenshot, width)

    def watched(*given):
        try:
            return make(*given)
        finally:
            ended.set()

    monkeypatch.setattr(recording, "_open_picture", slow)
    monkeypatch.setattr(recording, "_render", watched)
    task = asyncio.create_task(
        render_gif([RecordingFrame(picture((80, 50)), str(number)) for number in range(50)])
    )
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    goes_on.set()
    assert await asyncio.to_thread(ended.wait, 30)
    assert len(seen) == 1
