"""Pictures and pages of PDFs as pictures for a model with vision, scaled to its limits.

It decodes untrusted files, so it runs in the processes of a fork server (`ForkServer.render`).
"""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from maniple.reading import UnreadableDocument
from maniple.reading.pictures import identify_picture

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE_PIXELS = 1_568
"""The limit of each side. Providers scale larger pictures down themselves, and charge for the upload."""
MAX_BYTES = 1_500_000
"""The limit of one picture, so that four of them in Base64 stay below the limits of requests."""
MAX_DECODED_PIXELS = 60_000_000
"""A picture with more is not decoded: 60 million take 180 MB."""
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
_QUALITIES = (85, 70, 50)
_SMALLER = 0.7
_MAX_ATTEMPTS = 6
_DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "F")
"""Modes with more than eight bits a pixel, which a plain conversion would cut off."""
_WHITE = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class RenderedPicture:
    """A picture that a model can see, and what it was made from."""

    media_type: str
    content: bytes
    width: int
    height: int
    """The size of the original in pixels; of a page, that of the picture."""
    kind: str
    """The format of the original, such as `PNG`; of a page `PDF`."""
    pages: int = 1
    """The number of the frames or pages, of which one is shown."""
    sha256: str = ""
    """The digest of the file, in hex; "" where it is not known."""


def render_picture(body: bytes) -> RenderedPicture:
    """Return a picture, unchanged if it is within the limits; of an animation the first frame.

    Raises:
        UnreadableDocument: it is damaged, too large, or of an unknown format.
    """
    from PIL import Image

    try:
        return _render_picture(body)
    except (UnreadableDocument, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise UnreadableDocument("is a picture of too many pixels to be decoded") from error
    except Exception as error:  # of a damaged picture, the decoders raise various errors
        raise UnreadableDocument("is a damaged picture, or of a format that cannot be decoded") from error


def _render_picture(body: bytes) -> RenderedPicture:
    from PIL import Image, ImageOps

    picture = Image.open(io.BytesIO(body), formats=_FORMATS)
    width, height = picture.size
    kind, frames = picture.format or "", getattr(picture, "n_frames", 1)
    picture.draft("RGB", (MAX_SIDE_PIXELS, MAX_SIDE_PIXELS))
    if picture.width * picture.height > MAX_DECODED_PIXELS:
        most = f"{MAX_DECODED_PIXELS // 1_000_000} million"
        raise UnreadableDocument(
            f"is a picture of {width:,} x {height:,} pixels; at most {most} pixels are decoded"
        )
    picture.load()
    turned = ImageOps.exif_transpose(picture)
    is_turned = turned.size != picture.size or "exif" in picture.info
    known = identify_picture(body)
    is_fit = max(width, height) <= MAX_SIDE_PIXELS and len(body) <= MAX_BYTES
    if known and is_fit and frames == 1 and not is_turned:
        return RenderedPicture(known.media_type, body, width, height, kind)
    media_type, content = _encode(_flatten(turned), is_drawn=kind != "JPEG")
    return RenderedPicture(media_type, content, width, height, kind, frames)


def render_page(body: bytes, number: int) -> RenderedPicture:
    """Return page `number` (from 1) of a PDF as a picture.

    Raises:
        UnreadableDocument: the PDF is damaged or locked, or has no such page.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise UnreadableDocument("is a PDF that is damaged or requires a password") from error
    count = len(document)
    if not 1 <= number <= count:
        raise UnreadableDocument(f"has no page {number}; the last one is page {count}")
    try:
        page = document[number - 1]
        # The scale bounds both sides, whatever size the page claims to have.
        scale = MAX_SIDE_PIXELS / max(*page.get_size(), 1)
        rendered: Any = page.render(scale=scale)
        picture: Image = rendered.to_pil()
        media_type, content = _encode(_flatten(picture), is_drawn=False)
    except (pypdfium2.PdfiumError, ValueError, OSError, OverflowError) as error:
        raise UnreadableDocument(f"has a damaged page {number}") from error
    return RenderedPicture(media_type, content, picture.width, picture.height, "PDF", count)


def _flatten(picture: "Image") -> "Image":
    """Return a picture in RGB or grey, with white behind what is transparent."""
    from PIL import Image

    if picture.mode in _DEEP_MODES:
        deep = picture.convert("F")
        low, high = cast("tuple[float, float]", deep.getextrema())
        factor = 255 / ((high - low) or 1)
        return deep.point(lambda value: value * factor - low * factor).convert("L")
    if picture.mode in ("L", "RGB"):
        return picture
    if picture.has_transparency_data:
        opaque = Image.new("RGB", picture.size, _WHITE)
        layer = picture.convert("RGBA")
        opaque.paste(layer, mask=layer.getchannel("A"))
        return opaque
    return picture.convert("RGB")


def _encode(picture: "Image", *, is_drawn: bool) -> tuple[str, bytes]:
    """Return the media type and the bytes of a picture within the limits.

    A drawing becomes a PNG if that is small enough; all else a JPEG, because the PNG of a photo or a scan
    takes half a second and is too large in the end.
    """
    from PIL import Image

    side = MAX_SIDE_PIXELS
    formats = [*([("PNG", 0)] if is_drawn else []), *(("JPEG", quality) for quality in _QUALITIES)]
    for _ in range(_MAX_ATTEMPTS):
        small = picture
        if max(picture.size) > side:
            factor = side / max(picture.size)
            size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
            small = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        for name, quality in formats:
            content = io.BytesIO()
            small.save(content, name, **({"quality": quality} if quality else {}))
            if content.tell() <= MAX_BYTES:
                return f"image/{name.lower()}", content.getvalue()
        side = int(side * _SMALLER)
    raise UnreadableDocument("is a picture that cannot be made small enough")
