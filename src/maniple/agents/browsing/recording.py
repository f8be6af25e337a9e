"""The recording of a call of the browser: an animated GIF with a frame for each action."""

import asyncio
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from maniple.browser import ACTIONS, Element
from maniple.scope.run_scope import run_scope

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

MAX_GIF_BYTES = 8_000_000
MAX_SCREENSHOT_PIXELS = 20_000_000
"""The largest accepted screenshot; larger ones are left out."""
SIZES = ((800, 100), (400, 100), (400, 25))
"""Width in pixels and maximal number of frames; the first pair within `MAX_GIF_BYTES` is used."""
FRAME_MILLISECONDS = 1_500
LAST_FRAME_MILLISECONDS = 4_000
_CAPTION_CHARACTERS = 120
Box = tuple[float, float, float, float]
"""Left, top, right and bottom edge, as fractions (0 to 1) of a picture's width and height."""
_DARK, _LIGHT, _MARK = (24, 24, 27), (250, 250, 250), (220, 38, 38)
MAX_FRAMES = 100
PARTIAL_RECORDING_SECONDS = 5.0
"""The time limit for the recording of a run that is paused or cancelled."""


@dataclass(frozen=True, slots=True)
class RecordingFrame:
    """The screenshot before an action, and the action."""

    screenshot: bytes
    """JPEG or PNG."""
    caption: str
    """The step's number and action, such as `3 click_element index=7`."""
    box: Box | None = None
    """The box of the element that the action used."""


@dataclass(frozen=True, slots=True)
class ObservedPage:
    """The page that the model sees when it decides on the next actions."""

    elements: tuple[Element, ...] = ()
    picture: bytes | None = None
    """The screenshot, if screenshots are stored for users."""
    address: str | None = None
    """The URL path under which clients load the picture."""

    def find_target(self, name: str, parameters: Mapping[str, Any]) -> Element | None:
        """Return the element that an action uses, by its parameter `index`.

        None for an action without one.
        """
        definition = ACTIONS.get(name)
        if definition is None or "index" not in (*definition.required, *definition.optional):
            return None
        return next((one for one in self.elements if one.index == parameters.get("index")), None)


@dataclass(slots=True)
class Recording:
    """The frames of a call so far."""

    frames: list[RecordingFrame] = field(default_factory=list[RecordingFrame])
    page: ObservedPage = ObservedPage()

    def add(self, number: int, name: str, parameters: Mapping[str, Any]) -> None:
        """Add a frame with an action on the current page, if there is a picture of it."""
        picture = self.page.picture
        if picture is None or len(self.frames) >= MAX_FRAMES:
            return
        values = " ".join(f"{key}={value}" for key, value in parameters.items())
        element = self.page.find_target(name, parameters)
        caption = f"{number} {name} {values}"[:_CAPTION_CHARACTERS]
        self.frames.append(RecordingFrame(picture, caption, element.box if element else None))


def visible_mark(box: Box) -> Mapping[str, float] | None:
    """Return the visible part of a box as `{x, y, width, height}`, each from 0 to 1; None if it is outside
    the window.

    An element without size becomes a point.
    """
    left, top, right, bottom = (min(max(edge, 0.0), 1.0) for edge in box)
    is_outside = box[0] > 1 or box[1] > 1 or box[2] < 0 or box[3] < 0
    if is_outside:
        return None
    canvas = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return {name: round(value, 4) for name, value in canvas.items()}


async def store_recording(frames: Sequence[RecordingFrame]) -> str | None:
    """Store a GIF of the frames with the run's files.

    Return its URL path for clients, or None if none is stored.
    """
    store_file = run_scope().store_file
    if store_file is None or not frames:
        return None
    gif = await render_gif(frames)
    artifact_id = await store_file("recording.gif", "image/gif", gif) if gif is not None else None
    return f"/api/browser_history/{artifact_id}.gif" if artifact_id else None


async def store_partial_recording(frames: Sequence[RecordingFrame]) -> None:
    """Store the recording so far of a call that is paused or ends without an answer.

    The pictures exist only in this process. After a pause, the remaining steps become a second recording.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(PARTIAL_RECORDING_SECONDS):
            await store_recording(frames)


async def render_gif(frames: Sequence[RecordingFrame]) -> bytes | None:
    """Return a GIF of the frames; sample them evenly if there are more than `SIZES` allow.

    Pictures that cannot be decoded are left out. The result is None if no picture is left, or if no size in
    `SIZES` fits into `MAX_GIF_BYTES`. The GIF is made in a thread; after a cancellation the thread stops at
    the next frame.
    """
    is_cancelled = Event()
    try:
        return await asyncio.to_thread(_render, frames, is_cancelled.is_set)
    finally:
        is_cancelled.set()


def _render(frames: Sequence[RecordingFrame], is_cancelled: Callable[[], bool]) -> bytes | None:
    for width, most in SIZES:
        pictures: list[Image] = []
        for picture in _draw_frames(_sample(frames, most), width):
            if is_cancelled():
                return None
            pictures.append(picture)
        if not pictures:
            return None
        file = io.BytesIO()
        durations = [FRAME_MILLISECONDS] * (len(pictures) - 1) + [LAST_FRAME_MILLISECONDS]
        pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)
        if file.tell() <= MAX_GIF_BYTES:
            return file.getvalue()
    return None


def _sample(frames: Sequence[RecordingFrame], most: int) -> Sequence[RecordingFrame]:
    """Return at most `most` frames, the first and the last among them."""
    if len(frames) <= most:
        return frames
    return [frames[index * (len(frames) - 1) // (most - 1)] for index in range(most)]


def _draw_frames(frames: Sequence[RecordingFrame], width: int) -> "Iterator[Image]":
    """Yield each frame with the GIF's palette, in the size of the first frame."""
    from PIL import Image, ImageFont

    font, height = ImageFont.load_default(width // 50), 0
    for frame in frames:
        picture = _open_picture(frame.screenshot, width)
        if picture is None:
            continue
        height = height or min(max(picture.height * width // picture.width, 1), 2 * width)
        yield _draw_action(picture, frame, (width, height), font).quantize(128, Image.Quantize.FASTOCTREE)


def _open_picture(screenshot: bytes, width: int) -> "Image | None":
    from PIL import Image

    unsafe = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        picture = Image.open(io.BytesIO(screenshot), formats=("JPEG", "PNG"))
        if picture.width * picture.height > MAX_SCREENSHOT_PIXELS:
            return None
        picture.draft("RGB", (width, width))
        return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, *unsafe):
        return None


def _draw_action(
    picture: "Image", frame: RecordingFrame, size: tuple[int, int], font: "FreeTypeFont | ImageFont"
) -> "Image":
    """Return the picture scaled to `size`, with a mark on the element and the caption below."""
    from PIL import Image, ImageDraw, ImageOps

    width, height = size
    line = width // 25
    canvas = Image.new("RGB", (width, height + line), _DARK)
    shown = ImageOps.contain(picture, size, Image.Resampling.BILINEAR)
    canvas.paste(shown)
    draw = ImageDraw.Draw(canvas)
    if frame.box is not None:
        _draw_box(draw, _to_pixels(frame.box, shown.size), frame.caption.partition(" ")[0][:4], font)
    draw.text((line // 3, height + line // 5), _fit_caption(frame.caption, width - line, font), _LIGHT, font)
    return canvas


def _to_pixels(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    across, down = (
        [round(min(max(edge, 0.0), 1.0) * length) for edge in edges]
        for edges, length in ((sorted(box[::2]), size[0]), (sorted(box[1::2]), size[1]))
    )
    return across[0], down[0], across[1], down[1]


def _draw_box(
    draw: "ImageDraw", box: tuple[int, int, int, int], number: str, font: "FreeTypeFont | ImageFont"
) -> None:
    """Draw a box with a number at its upper left corner:

    Above the box, or inside if there is no room above.
    """
    draw.rectangle(box, outline=_MARK, width=3)
    left, top, right, bottom = draw.textbbox((0, 0), number, font=font)
    tall = bottom - top + 6
    corner = (box[0], box[1] - tall if box[1] >= tall else box[1])
    draw.rectangle((*corner, corner[0] + right - left + 6, corner[1] + tall), fill=_MARK)
    draw.text((corner[0] + 3 - left, corner[1] + 3 - top), number, _LIGHT, font)


def _fit_caption(caption: str, width: int, font: "FreeTypeFont | ImageFont") -> str:
    text = " ".join(caption[: 4 * _CAPTION_CHARACTERS].split())
    shown = text[:_CAPTION_CHARACTERS]
    while shown and font.getlength(shown + "…") > width:
        shown = shown[:-1]
    return shown if shown == text else shown + "…"
