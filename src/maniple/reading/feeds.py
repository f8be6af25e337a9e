"""The reader of feeds (RSS, Atom, RDF)."""

import io
from html import escape
from typing import Any

from maniple.reading import MarkdownDocument
from maniple.reading.html import read_fragment

_MAX_ENTRIES = 200


def read_feed(body: bytes, url: str) -> MarkdownDocument:
    """Return each entry of a feed with its link, time and content, in the order of the feed."""
    import feedparser

    # A file object, because feedparser may interpret bytes as an address or a path and open it.
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-location": url})
    title = str(feed.feed.get("title", ""))
    source = "".join(map(_entry_html, feed.entries[:_MAX_ENTRIES]))
    reading = read_fragment(source, title, url)
    if len(feed.entries) > _MAX_ENTRIES and not reading.note:
        note = f"Only the first {_MAX_ENTRIES} of {len(feed.entries)} entries were read."
        return MarkdownDocument(reading.title, reading.markdown, note=note)
    return reading


def _entry_html(entry: Any) -> str:
    when = entry.get("published") or entry.get("updated") or ""
    content = max(
        [entry.get("summary", ""), *(part.get("value", "") for part in entry.get("content", []))], key=len
    )
    heading = escape(entry.get("title") or entry.get("link") or "Entry")
    link = escape(entry.get("link", ""))
    return f'<h2><a href="{link}">{heading}</a></h2><p>{escape(when)}</p><div>{content}</div>'
