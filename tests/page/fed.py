"""The stream of a run, given to the page event by event: all else comes from a real service."""

import json
from collections.abc import Sequence

from playwright.sync_api import Page, expect

from tests.page.streams import Event

FEED = """() => {
    const fetched = window.fetch;
    window.fetch = (...given) => {
        if (!String(given[0]).includes("/events")) return fetched(...given);
        const body = new ReadableStream({ start: (out) => { window.out = out; } });
        return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
    };
    window.feed = (text) => window.out.enqueue(new TextEncoder().encode(text));
}"""
"""A script of a page: the stream of the run that it opens has what `feed` gives it."""


def open_run(page: Page, first: Sequence[Event]) -> None:
    """Open the run anew, with the events with which each begins."""
    page.goto("about:blank")
    page.goto("/#running")
    page.wait_for_function("() => window.out")
    feed(page, first, 1)
    expect(page.locator(".run .question")).to_be_visible()
    expect(page.locator(".composer .options")).to_be_attached()
    page.wait_for_load_state("networkidle")


def feed(page: Page, events: Sequence[Event], number: int) -> None:
    frames = [
        f"id: {at}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for at, event in enumerate(events, number)
    ]
    page.evaluate("text => window.feed(text)", "".join(frames))
