"""The kinds of documents that can be read, and who reads each."""

from collections.abc import Callable, Mapping

from maniple.reading.docx import read_docx
from maniple.reading.encoding import decode
from maniple.reading.feed import read_feed
from maniple.reading.frames import read_frames
from maniple.reading.html import read_html
from maniple.reading.pdf import read_pdf
from maniple.reading.pictures import read_picture
from maniple.reading.plain import read_csv, read_json, read_markdown, read_text
from maniple.reading.result import Reading

ISOLATED: Mapping[str, Callable[[bytes, str], Reading]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "feed": read_feed,
    "frames": read_frames,
    "picture": read_picture,
}
"""What is read in a process of its own, however small it is."""
_OF_TEXT: Mapping[str, Callable[[str, str], Reading]] = {
    "html": read_html,
    "csv": read_csv,
    "json": read_json,
    "markdown": read_markdown,
    "text": read_text,
}


def read_as(kind: str, body: bytes, url: str, charset: str | None) -> Reading:
    """The document `body`, found at `url`, as a `kind` of `ISOLATED` or of text.

    The kinds of text are `html`, `csv`, `json`, `markdown` and `text`. `charset` is what its server calls
    its encoding. May take seconds.

    Raises:
        Unreadable: nothing can be made of it.
    """
    if kind in ISOLATED:
        return ISOLATED[kind](body, url)
    return _OF_TEXT[kind](decode(body, charset), url)
