"""`note_finding`: members that read record what they find, each statement with the words behind it."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress

from maniple.claims.finding_check import QuotedPassage, find_contradiction, find_disagreement
from maniple.errors import ToolFailure
from maniple.evidence import Evidence, NotedFinding, Source, comparable_url
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.excerpt import find_excerpt
from maniple.evidence.noted_findings import MAX_FINDINGS, QUOTE_CHARACTERS, STATEMENT_CHARACTERS
from maniple.evidence.quote_span import QuoteSpan, find_quote
from maniple.evidence.wording import count_words
from maniple.tools.evidence import current_evidence
from maniple.tools.registry import define_tool

NOTE_FINDING = "note_finding"
MAX_SEARCHED_SOURCES = 10
"""Other sources in which a quote is looked up that the named one lacks, the newest first."""
_LEAST_WORDS = 2


@define_tool(
    NOTE_FINDING,
    "Note one fact for the report right after reading it: the statement, the number of its source, and the "
    "words of the source that say it, copied exactly (… for what you leave out). It is checked at once.",
    roles=("researcher", "file_manager"),
    idempotent=True,
)
async def note_finding(statement: str, source: str | int, quote: str) -> str:
    """Record a finding in the evidence of the run, and return a line that says so.

    `source` is a number, also as `[3]`, or an address. Raises `ToolFailure` with what to do for a source that
    the run has not read, a quote that does not stand there, and a statement that does not agree with it.
    """
    evidence = current_evidence()
    if evidence is None:
        raise ToolFailure("Nothing can be noted outside of a run.")
    statement, quote = " ".join(statement.split()), quote.strip()
    _check_lengths(statement, quote)
    known = await _find_source(evidence, source)
    text, span = await _find_words(evidence, known, quote)
    about = f"{known.title} {known.published}"
    passage = await asyncio.to_thread(QuotedPassage.of, text, span, about)
    if wrong := await asyncio.to_thread(find_disagreement, statement, passage):
        raise ToolFailure(f"Not noted. {wrong}")
    if wrong := await asyncio.to_thread(find_contradiction, statement, known, text, span):
        raise ToolFailure(f"Not noted. The source says something else: {wrong}. State what the quote says.")
    digest = hashlib.sha256(text.encode()).hexdigest()
    finding = NotedFinding(known.number, statement, text[span.start : span.end], digest, span.start, span.end)
    if len(finding.quote) > QUOTE_CHARACTERS:
        raise ToolFailure(f"Not noted. Quote at most {QUOTE_CHARACTERS:,} characters in one piece.")
    if not await evidence.add_finding(finding):
        raise ToolFailure(f"Not noted: the run has {MAX_FINDINGS} findings, and may have no more.")
    return f"Noted, with source [{known.number}]."


def _check_lengths(statement: str, quote: str) -> None:
    if not statement or len(statement) > STATEMENT_CHARACTERS:
        raise ToolFailure(
            f"Not noted. State one fact in one sentence of at most {STATEMENT_CHARACTERS} characters."
        )
    if len(quote) > QUOTE_CHARACTERS:
        raise ToolFailure(f"Not noted. Quote at most {QUOTE_CHARACTERS:,} characters.")
    if count_words(quote) < _LEAST_WORDS:
        raise ToolFailure("Not noted. Quote the whole sentence or row that says it.")


async def _find_source(evidence: Evidence, named: str | int) -> Source:
    """Return the source with a number or at an address; raises `ToolFailure` if the run has no text of it."""
    sources = await evidence.sources()
    name = str(named).strip().strip("[]【】 ")
    found: Source | None = None
    with suppress(ValueError):
        number = int(name)
        found = next((one for one in sources if one.number == number), None)
    if found is None:
        wanted = comparable_url(hide_secrets(name))
        found = next((one for one in sources if _is_at(one, wanted)), None)
    if found is not None and await evidence.texts(found.number):
        return found
    unread = next((one for one in await evidence.unread() if one.url == hide_secrets(name)), None)
    if unread is not None:
        raise ToolFailure(f"Not noted. This source could not be read: {unread.reason} Use another one.")
    if found is not None:
        raise ToolFailure(f"Not noted. Nothing was read at [{found.number}] in this run. Read it first.")
    numbers = f"they are 1 to {len(sources)}" if sources else "nothing was read yet"
    raise ToolFailure(
        f"Not noted. {name[:200]!r} is no source of this run ({numbers}). Read it first, then use its number."
    )


def _is_at(source: Source, comparable: str) -> bool:
    return any(comparable_url(url) == comparable for url in (source.url, *source.also))


async def _find_words(evidence: Evidence, source: Source, quote: str) -> tuple[str, QuoteSpan]:
    """Return the text of a source that has the quote, and its place; raises `ToolFailure` if none has it."""
    texts = await evidence.texts(source.number)
    for text in reversed(texts):
        if (span := await asyncio.to_thread(find_quote, quote, text)) is not None:
            return text, span
    other = await _find_other_source(evidence, source.number, quote)
    if other:
        raise ToolFailure(f"Not noted. These words stand in [{other}], not in [{source.number}]. Name that.")
    near = await asyncio.to_thread(find_excerpt, quote, texts)
    shown = f" What stands there: {near}" if near else ""
    raise ToolFailure(
        f"Not noted. These words do not stand in [{source.number}]. Copy them exactly as they stand there, "
        f"with … for what you leave out; do not translate or shorten them otherwise.{shown}"
    )


async def _find_other_source(evidence: Evidence, but: int, quote: str) -> int:
    numbers = [one.number for one in await evidence.sources() if one.number != but]
    for number in numbers[: -MAX_SEARCHED_SOURCES - 1 : -1]:
        if await asyncio.to_thread(_is_anywhere, quote, await evidence.texts(number)):
            return number
    return 0


def _is_anywhere(quote: str, texts: Sequence[str]) -> bool:
    return any(find_quote(quote, text) is not None for text in texts)
