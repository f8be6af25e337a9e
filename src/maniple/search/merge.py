"""One list from several, by reciprocal rank (Cormack, Clarke, Büttcher: SIGIR 2009)."""

from collections.abc import Sequence
from dataclasses import replace

from maniple.evidence.addresses import comparable_url
from maniple.search.provider import SearchHit

K = 60
"""The paper's constant: how little the first ranks count over the next ones."""


def merged(lists: Sequence[Sequence[SearchHit]], limit: int) -> list[SearchHit]:
    """Return the pages of all `lists`, each best first, those that many found far up first; at most `limit`.

    A page that several found is told as the first list tells it. Its score is the sum of 1/(K + rank), as a
    share of what the first place in every list would give.
    """
    found: dict[str, list[SearchHit]] = {}
    points: dict[str, float] = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            page = comparable_url(hit.url)
            found.setdefault(page, []).append(hit)
            points[page] = points.get(page, 0.0) + 1 / (K + rank)
    best = sorted(found, key=lambda page: -points[page])[:limit]  # stable: then by list
    return [_of_all(found[page], points[page] * (K + 1) / len(lists)) for page in best]


def _of_all(hits: Sequence[SearchHit], share: float) -> SearchHit:
    sources = dict.fromkeys(hit.source for hit in hits)
    return replace(hits[0], score=round(share, 4), source=", ".join(sources))
