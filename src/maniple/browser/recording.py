"""A recording of what was done in the browser: an animated GIF, one frame a step."""

import asyncio
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

MOST_BYTES = 8_000_000
MOST_PIXELS = 20_000_000
"""Of a screenshot; a larger one is left out."""
SIZES = ((800, 100), (400, 100), (400, 25))
"""Pixels across and frames at most: the first that keeps the whole within `MOST_BYTES`."""
FRAME_MILLISECONDS = 1_500
LAST_MILLISECONDS = 4_000
_CAPTION_CHARACTERS = 120
Box = tuple[float, float, float, float]
"""Left, top, right, bottom, from 0 to 1 of a picture's width and height."""
_DARK, _LIGHT, _MARK = (24, 24, 27), (250, 250, 250), (220, 38, 38)


@dataclass(frozen=True, slots=True)
class Frame:
    """What was seen before a step, and the step."""

    screenshot: bytes
    """JPEG or PNG."""
    caption: str
    """The step's number and what it was: `3 click_element index=7`."""
    box: Box | None = None
    """Where in the picture that was acted on."""


async def record(frames: Sequence[Frame]) -> bytes | None:
    """Return a GIF of the frames as `SIZES` allow, evenly chosen where there are more, or None.

    Pictures that cannot be read are left out. There is none without any, and none longer than `MOST_BYTES`.
    It is made in a thread, which ends at its next frame when this is cancelled.
    """
    given_up = Event()
    try:
        return await asyncio.to_thread(_gif, frames, given_up.is_set)
    finally:
        given_up.set()


def _gif(frames: Sequence[Frame], is_given_up: Callable[[], bool]) -> bytes | None:
    for width, most in SIZES:
        pictures = []
        for picture in _drawn(_spread(frames, most), width):
            if is_given_up():
                return None
            pictures.append(picture)
        if not pictures:
            return None
        file = io.BytesIO()
        lasting = [FRAME_MILLISECONDS] * (len(pictures) - 1) + [LAST_MILLISECONDS]
        pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=lasting, loop=0)
        if file.tell() <= MOST_BYTES:
            return file.getvalue()
    return None


def _spread(frames: Sequence[Frame], most: int) -> Sequence[Frame]:
    """Return the frames, or `most` of them, the first and the last among those."""
    if len(frames) <= most:
        return frames
    return [frames[place * (len(frames) - 1) // (most - 1)] for place in range(most)]


def _drawn(frames: Sequence[Frame], width: int) -> "Iterator[Image]":
    """Yield each frame in the GIF's colours; all are as large as the first."""
    from PIL import Image, ImageFont

    font, height = ImageFont.load_default(width // 50), 0
    for frame in frames:
        picture = _opened(frame.screenshot, width)
        if picture is None:
            continue
        height = height or min(max(picture.height * width // picture.width, 1), 2 * width)
        yield _with_action(picture, frame, (width, height), font).quantize(128, Image.Quantize.FASTOCTREE)


def _opened(screenshot: bytes, width: int) -> "Image | None":
    from PIL import Image

    unsafe = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        picture = Image.open(io.BytesIO(screenshot), formats=("JPEG", "PNG"))
        if picture.width * picture.height > MOST_PIXELS:
            return None
        picture.draft("RGB", (width, width))
        return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, *unsafe):
        return None


def _with_action(
    picture: "Image", frame: Frame, size: tuple[int, int], font: "FreeTypeFont | ImageFont"
) -> "Image":
    """Return the picture at its size, what was acted on marked, with the caption below it."""
    from PIL import Image, ImageDraw, ImageOps

    width, height = size
    line = width // 25
    whole = Image.new("RGB", (width, height + line), _DARK)
    shown = ImageOps.contain(picture, size, Image.Resampling.BILINEAR)
    whole.paste(shown)
    draw = ImageDraw.Draw(whole)
    if frame.box is not None:
        _mark(draw, _pixels(frame.box, shown.size), frame.caption.partition(" ")[0][:4], font)
    draw.text((line // 3, height + line // 5), _fitting(frame.caption, width - line, font), _LIGHT, font)
    return whole


def _pixels(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    across, down = (
        [round(min(max(edge, 0.0), 1.0) * length) for edge in edges]
        for edges, length in ((sorted(box[::2]), size[0]), (sorted(box[1::2]), size[1]))
    )
    return across[0], down[0], across[1], down[1]


def _mark(
    draw: "ImageDraw", box: tuple[int, int, int, int], number: str, font: "FreeTypeFont | ImageFont"
) -> None:
    """Draw a box with a number at its upper left corner, inside where there is no room above it."""
    draw.rectangle(box, outline=_MARK, width=3)
    left, top, right, bottom = draw.textbbox((0, 0), number, font=font)
    tall = bottom - top + 6
    corner = (box[0], box[1] - tall if box[1] >= tall else box[1])
    draw.rectangle((*corner, corner[0] + right - left + 6, corner[1] + tall), fill=_MARK)
    draw.text((corner[0] + 3 - left, corner[1] + 3 - top), number, _LIGHT, font)


def _fitting(caption: str, width: int, font: "FreeTypeFont | ImageFont") -> str:
    words = " ".join(caption[: 4 * _CAPTION_CHARACTERS].split())
    shown = words[:_CAPTION_CHARACTERS]
    while shown and font.getlength(shown + "…") > width:
        shown = shown[:-1]
    return shown if shown == words else shown + "…"
