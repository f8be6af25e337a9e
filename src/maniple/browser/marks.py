"""Pictures of a window with the indexes of what can be acted on; drawn here, so that no page sees them."""

from collections.abc import Iterable
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from maniple.browser.state import Element

if TYPE_CHECKING:
    from PIL import ImageFont
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

WIDEST = 1_280
"""Pixels; models scale down what is larger."""
_QUALITY = 70
_FONT_PIXELS = 11
# Dark enough for white figures; neighbours differ.
_COLOURS = ("#c2185b", "#00695c", "#283593", "#bf360c", "#4a148c", "#1b5e20", "#880e4f", "#01579b")


def marked(jpeg: bytes, elements: Iterable[Element]) -> bytes:
    """Return the picture as JPEG, at most `WIDEST` pixels wide, each of `elements` that is in it framed.

    Takes some 20 ms of computing: for a thread.
    """
    from PIL import Image, ImageDraw

    with Image.open(BytesIO(jpeg)) as opened:
        picture = opened.convert("RGB")
    picture.thumbnail((WIDEST, picture.height))
    pen = ImageDraw.Draw(picture)
    for element in elements:
        if element.box is not None:
            _mark(pen, picture, element.index, element.box)
    written = BytesIO()
    picture.save(written, "JPEG", quality=_QUALITY)
    return written.getvalue()


def _mark(pen: "ImageDraw", picture: "Image", index: int, box: tuple[float, float, float, float]) -> None:
    left, top, right, bottom = (
        round(share * length) for share, length in zip(box, picture.size * 2, strict=True)
    )
    colour = _COLOURS[index % len(_COLOURS)]
    pen.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=colour)
    label = str(index)
    width = round(_font().getlength(label)) + 4
    # Beside the corner where the control leaves room for its own words.
    x = min(max(right - width, 0), picture.width - width)
    y = max(top - _FONT_PIXELS + 2, 0)
    pen.rectangle((x, y, x + width, y + _FONT_PIXELS + 1), fill=colour)
    pen.text((x + 2, y), label, fill="white", font=_font())


@cache
def _font() -> "ImageFont.FreeTypeFont | ImageFont.ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(_FONT_PIXELS)
