"""Records what tools read in the evidence of their run, with the numbers for citations."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

from maniple.evidence import Evidence, Source
from maniple.evidence.address_secrets import hide_secrets
from maniple.reading.page_kind import describe_obstacle, find_obstacle, outline_text
from maniple.reading.publication import Publication
from maniple.scope.context import SCOPE_KEY, configurable

UPLOAD_SCHEME = "upload:"
"""Begins the address of a file of the user as a source, before its path."""
MAX_ORDER_SECONDS = 10.0
"""How long a source waits for the earlier calls of its answer, to get a higher number than theirs."""
_BROWSER_SCHEMES = frozenset(
    {"chrome-error", "chrome", "about", "data", "blob", "javascript", "edge", "view-source"}
)
_UNKNOWN = Publication()
EARLIER_CALLS: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar(
    "maniple_earlier_calls", default=None
)
"""Waits until the concurrent calls that stand before this one in the model's answer have ended."""
READING_STEP: ContextVar[int] = ContextVar("maniple_reading_step", default=0)
"""The id of the plan's step whose pages are read; 0 for none."""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was read in a browser."""

    url: str
    title: str
    text: str
    status: int | None = None
    asked: str = ""


@runtime_checkable
class EvidenceScope(Protocol):
    """The part of a run's scope that this module uses."""

    @property
    def evidence(self) -> Evidence:
        """Where the run records what its tools read."""
        ...


def current_evidence() -> Evidence | None:
    """Return the evidence of the current run; None outside of a run of the team."""
    scope = configurable().get(SCOPE_KEY)
    return scope.evidence if isinstance(scope, EvidenceScope) else None


async def cited(hits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Record search hits; return each `{title, url, content, …}` with its source number as `cite`.

    `published`, `author` and `publisher` of a paper, where it has them, describe the source and are part of
    its text. Those of other hits do not: an engine may mean the day on which it found the page. Outside of a
    run nothing is recorded and no hit gets a number.
    """
    evidence = current_evidence()
    if evidence is None:
        return [dict(hit) for hit in hits]
    await _wait_for_earlier_calls()
    sources = [await _record_hit(evidence, hit) for hit in hits]
    return [
        {**hit, "cite": source.number} if source.number else dict(hit)
        for hit, source in zip(hits, sources, strict=True)
    ]


async def _record_hit(evidence: Evidence, hit: Mapping[str, Any]) -> Source:
    names = ("published", "author", "publisher") if hit.get("kind") == "paper" else ()
    about = Publication(*(hit.get(name) or "" for name in names))
    text = "\n\n".join(filter(None, (about.line, hit["content"])))
    source = await evidence.add(hit["url"], hit["title"], "result", text)
    if source.number and about:
        await evidence.describe(source.number, about)
    return source


async def source_line(
    url: str, title: str, text: str, *, asked: str = "", about: Publication = _UNKNOWN
) -> str:
    """Record that a page was read and return the line that names its source.

    `text` is the page's whole text, `asked` the address that led to `url`, `about` who published it and when.
    A page of the browser itself, such as `chrome-error:`, is never a source.
    """
    if _is_of_browser(url):
        return unnumbered_line(url, "page of the browser itself")
    evidence = current_evidence()
    if evidence is None:
        return f"Source: {hide_secrets(url)}"
    await _wait_for_earlier_calls()
    source = await evidence.add(url, title, "page", text, asked=asked)
    await evidence.add_attempt(READING_STEP.get(), asked or url)
    if source.number and about:
        await evidence.describe(source.number, about)
    shown = hide_secrets(url)
    return f"Source [{source.number}]: {shown}" if source.number else f"Source: {shown}"


async def record_unread(url: str, reason: str) -> None:
    """Record that a page could not be read, so that no report rests on it; outside of a run, do nothing."""
    if (evidence := current_evidence()) is not None:
        await evidence.add_unread(url, reason)
        await evidence.add_attempt(READING_STEP.get(), url)


async def unread_line(url: str, kind: str, *, asked: str = "") -> str:
    """Record that a page showed an obstacle of this kind, and return the line that names it."""
    await record_unread(asked or url, describe_obstacle(kind))
    if asked and asked != url and (evidence := current_evidence()) is not None:
        await evidence.add_unread(url, describe_obstacle(kind))  # the same page is no further attempt
    return unnumbered_line(url, kind)


def unnumbered_line(url: str, kind: str) -> str:
    """Return the line that names a page which is no source, with its kind."""
    return f"Source: {hide_secrets(url)} (not a source: {kind})"


async def read_line(page: ReadPage) -> tuple[str, str]:
    """Return the line that names the source of a page in the browser, and what it shows instead of content.

    Such a page is not recorded; the second text is empty for a page with content.
    """
    outline = outline_text(page.title, page.text, page.status)
    kind = await asyncio.to_thread(find_obstacle, outline)
    if kind is not None:
        return await unread_line(page.url, kind, asked=page.asked), describe_obstacle(kind)
    return await source_line(page.url, page.title, page.text, asked=page.asked), ""


def _is_of_browser(url: str) -> bool:
    return url.partition(":")[0].lower() in _BROWSER_SCHEMES


async def upload_line(path: str, title: str, text: str) -> str:
    """Record that a file of the user was read, and return the line that names its source.

    `text` is its whole text; "" for a picture. Outside of a run nothing is recorded, and there is no line.
    """
    if current_evidence() is None:
        return ""
    return await source_line(UPLOAD_SCHEME + quote(path), title or path, text)


async def _wait_for_earlier_calls() -> None:
    # The model numbers what it has asked for in its own order, whichever page is read first. Its next call
    # needs all results anyway.
    if (wait := EARLIER_CALLS.get()) is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_ORDER_SECONDS):
                await wait()
