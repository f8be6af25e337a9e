"""What happens to hits between the providers and the team: kinds, duplicates, fusion, order by date.

Two hits are one work if they have the same address or DOI, or the same title and year and a common author.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from maniple.evidence.addresses import comparable_url
from maniple.search.provider import HitKind, SearchHit

RANK_CONSTANT = 60
"""`k` of reciprocal rank fusion, as in the paper: how little the first ranks outweigh the next ones."""
MIN_TITLE_CHARACTERS = 8
"""Letters and digits of a title by which works are compared: "Editorial" is the title of many."""
_HOSTS: Mapping[HitKind, tuple[str, ...]] = {
    "paper": (
        *("arxiv.org", "doi.org", "pubmed.ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov", "biorxiv.org"),
        *("medrxiv.org", "semanticscholar.org", "openalex.org", "ssrn.com", "aclanthology.org"),
        *("openreview.net", "europepmc.org", "jstor.org"),
    ),
    "encyclopaedia": ("wikipedia.org", "britannica.com", "scholarpedia.org", "baike.baidu.com"),
    "news": ("reuters.com", "apnews.com", "afp.com", "bbc.com", "bbc.co.uk", "dw.com", "news.cn"),
    "forum": (
        *("reddit.com", "stackoverflow.com", "stackexchange.com", "superuser.com", "serverfault.com"),
        *("quora.com", "zhihu.com", "news.ycombinator.com"),
    ),
    "code": ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "gist.github.com"),
    "video": ("youtube.com", "youtu.be", "vimeo.com", "bilibili.com"),
}
"""Hosts, with all below them, that hold one kind only. Others have none: nothing is guessed."""
_KINDS: Mapping[str, HitKind] = {host: kind for kind, hosts in _HOSTS.items() for host in hosts}
_FILLED = ("kind", "published", "author", "publisher", "doi", "full_text_url")
"""What a hit takes from others of the same work where it does not know it itself."""
_NOT_IN_TITLES = re.compile(r"[\W_]+")
_NAME = re.compile(r"[^\W\d_]{2,}")
_DATE = re.compile(r"\d{4}(?:-\d{2}){0,2}")


def find_kind(url: str) -> HitKind | None:
    """Return what the host of an address holds; None if it is not known."""
    try:
        labels = (urlsplit(url).hostname or "").casefold().split(".")
    except ValueError:
        return None
    names = (".".join(labels[at:]) for at in range(len(labels)))
    return next((_KINDS[name] for name in names if name in _KINDS), None)


def label_hits(hits: Iterable[SearchHit], source: str) -> list[SearchHit]:
    """Return the hits with the name of the provider that found them, and their kind where it is known."""
    return [replace(hit, source=source, kind=hit.kind or find_kind(hit.url) or "") for hit in hits]


def deduplicate(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Return each work once, at its first position."""
    return [group.merge() for group in _group([list(hits)])]


def merge_ranked(lists: Sequence[Sequence[SearchHit]], limit: int) -> list[SearchHit]:
    """Merge ranked lists by reciprocal rank fusion (Cormack, Clarke, Büttcher: SIGIR 2009); at most `limit`.

    A work in several lists keeps the title, the address and the extract of the first; a paper gets the
    longest abstract. What the first does not know of its publication is taken from the others. Its score is
    the sum of 1/(k + rank), divided by the highest possible sum.
    """
    groups = sorted(_group(lists), key=lambda group: -group.points)[:limit]  # stable: then by list
    highest = len(lists) / (RANK_CONSTANT + 1)
    return [replace(group.merge(), score=round(group.points / highest, 4)) for group in groups]


def sort_newest_first(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Return the hits by their day, newest first; those without one follow in their order."""
    return sorted(hits, key=lambda hit: hit.published if _DATE.fullmatch(hit.published) else "", reverse=True)


@dataclass(eq=False, slots=True)
class _Group:
    """The hits of one work, in the order of the lists."""

    hits: list[SearchHit] = field(default_factory=list)
    ranks: dict[int, int] = field(default_factory=dict)
    """Its best rank in each list, by the list's number."""
    keys: set[str] = field(default_factory=set)

    @property
    def points(self) -> float:
        return sum(1 / (RANK_CONSTANT + rank) for rank in self.ranks.values())

    def add(self, hit: SearchHit, position: tuple[int, int]) -> None:
        number, rank = position
        self.hits.append(hit)
        self.ranks[number] = min(rank, self.ranks.get(number, rank))

    def absorb(self, other: "_Group") -> None:
        self.hits += other.hits
        self.keys |= other.keys
        for number, rank in other.ranks.items():
            self.ranks[number] = min(rank, self.ranks.get(number, rank))

    def merge(self) -> SearchHit:
        first = self.hits[0]
        if len(self.hits) == 1:
            return first
        known = {name: _find_value(self.hits, name) for name in _FILLED}
        sources = dict.fromkeys(hit.source for hit in self.hits if hit.source)
        return replace(first, content=_choose_content(self.hits), source=", ".join(sources), **known)


def _find_value(hits: Iterable[SearchHit], name: str) -> str:
    return next(filter(None, (getattr(hit, name) for hit in hits)), "")


def _choose_content(hits: Sequence[SearchHit]) -> str:
    """Return the fullest abstract of a paper, else the extract that the first engine chose."""
    abstracts = [hit.content for hit in hits if hit.kind == "paper"]
    return max(abstracts, key=len) if abstracts else hits[0].content


def _group(lists: Sequence[Sequence[SearchHit]]) -> list[_Group]:
    """Return the works of several ranked lists, in the order in which they appear first."""
    groups: dict[int, _Group] = {}
    known: dict[str, _Group] = {}
    for number, hits in enumerate(lists):
        for rank, hit in enumerate(hits, start=1):
            keys = _list_keys(hit)
            found = [group for key, is_sure in keys.items() if (group := known.get(key)) and is_sure(group)]
            group = found[0] if found else _Group()
            for other in found[1:]:
                if other is not group and groups.pop(id(other), None):
                    group.absorb(other)
            group.add(hit, (number, rank))
            group.keys.update(keys)
            groups[id(group)] = group
            known.update(dict.fromkeys(group.keys, group))
    return list(groups.values())


def _list_keys(hit: SearchHit) -> dict[str, Callable[[_Group], bool]]:
    """Return the keys of a hit, each with the test that a group of the same key must pass."""
    keys: dict[str, Callable[[_Group], bool]] = {comparable_url(hit.url): lambda group: True}
    if hit.doi:
        keys[f"doi:{hit.doi.casefold()}"] = lambda group: True
    title, year = _NOT_IN_TITLES.sub("", hit.title.casefold()), hit.published[:4]
    if year.isdecimal() and len(title) >= MIN_TITLE_CHARACTERS:
        keys[f"title:{year}:{title}"] = lambda group: _may_share_author(hit, group.hits[0])
    return keys


def _may_share_author(one: SearchHit, other: SearchHit) -> bool:
    """Return whether two lists of authors have a name in common, or one of them is not known."""
    names, others = ({*_NAME.findall(hit.author.casefold())} for hit in (one, other))
    return not names or not others or bool(names & others)
