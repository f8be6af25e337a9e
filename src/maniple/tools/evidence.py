"""Records what tools read in the evidence of their run, with the numbers for citations."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from maniple.evidence import Evidence
from maniple.tools.run_context import SCOPE_KEY, configurable


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

    Outside of a run nothing is recorded and no hit gets a number.
    """
    evidence = current_evidence()
    if evidence is None:
        return [dict(hit) for hit in hits]
    sources = [await evidence.add(hit["url"], hit["title"], "result", hit["content"]) for hit in hits]
    return [
        {**hit, "cite": source.number} if source.number else dict(hit)
        for hit, source in zip(hits, sources, strict=True)
    ]


async def source_line(url: str, title: str, text: str, *, asked: str = "") -> str:
    """Record that a page was read and return the line that names its source.

    `text` is the page's whole text, `asked` the address that led to `url`.
    """
    evidence = current_evidence()
    source = await evidence.add(url, title, "page", text, asked=asked) if evidence is not None else None
    return f"Source [{source.number}]: {url}" if source and source.number else f"Source: {url}"
