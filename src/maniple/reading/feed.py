"""RSS and Atom, by feedparser."""

import io
from html import escape
from typing import Any

from maniple.reading.html import read_fragment
from maniple.reading.result import Reading

_MAX_ENTRIES = 200


def read_feed(body: bytes, url: str) -> Reading:
    """Each entry with its link, its time and what it says, the newest as the feed has them."""
    import feedparser

    # A file, not the bytes: feedparser takes those for an address or a path, and opens it.
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-location": url})
    title = str(feed.feed.get("title", ""))
    source = "".join(map(_entry, feed.entries[:_MAX_ENTRIES]))
    reading = read_fragment(source, title, url)
    if len(feed.entries) > _MAX_ENTRIES and not reading.note:
        note = f"Only the first {_MAX_ENTRIES} of {len(feed.entries)} entries were read."
        return Reading(reading.title, reading.markdown, note=note)
    return reading


def _entry(entry: Any) -> str:
    when = entry.get("published") or entry.get("updated") or ""
    said = max(
        [entry.get("summary", ""), *(part.get("value", "") for part in entry.get("content", []))], key=len
    )
    heading = escape(entry.get("title") or entry.get("link") or "Entry")
    link = escape(entry.get("link", ""))
    return f'<h2><a href="{link}">{heading}</a></h2><p>{escape(when)}</p><div>{said}</div>'
