"""`search_papers`: scholarly papers of all configured catalogues, in one tool."""

import asyncio
import json
from dataclasses import dataclass, field

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.outgoing import OutgoingGuard, SecretRefused
from maniple.scope.run_scope import thread_key
from maniple.search import PaperSearch, SearchAnswer
from maniple.search.provider import hit_to_dict
from maniple.tools.evidence import cited
from maniple.tools.registry import define_tool
from maniple.tools.web import PAPER_SEARCH

_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class TeamPapers:
    """The search of papers that the researcher uses. Its queries give no secret of the settings away."""

    papers: PaperSearch
    max_results: int = SearchSettings.model_fields["max_results"].default
    guard: OutgoingGuard = field(default_factory=OutgoingGuard)

    async def search(self, query: str, source: str, *, is_newest_first: bool) -> SearchAnswer:
        """See `PaperSearch.search`."""
        try:
            await asyncio.to_thread(
                self.guard.check, query, by="a search of papers", thread=thread_key(), to="search"
            )
        except SecretRefused as error:
            raise SearchError(str(error)) from error
        return await self.papers.search(
            query, limit=self.max_results, source=source.strip(), is_newest_first=is_newest_first
        )


def _describe(papers: TeamPapers, /) -> str:
    return (
        "Search scholarly papers: titles, DOI links, abstracts, authors, days, journals; read an open one at "
        f"its full_text_url with crawl_tool. source: one of {', '.join(papers.papers.names)}; all if empty. "
        "newest: newest first; only where recent work is wanted."
    )


@define_tool(PAPER_SEARCH, _describe, roles=("researcher",), is_core=False, idempotent=True)
async def search_papers(papers: TeamPapers, /, query: str, source: str = "", newest: bool = False) -> str:
    """Return a JSON array of papers, as `tavily_search` does, one for each paper.

    Beside the fields of a hit there are `kind`, `published`, `author`, `publisher`, `doi` and
    `full_text_url`, where they are known. The sources that did not answer are the `note` of one more element.
    The tool raises `SearchError` if none did, or if `source` is none of them.
    """
    answer = await papers.search(query, source, is_newest_first=newest)
    failed = "; ".join(
        f"{name}: {reason.rstrip('.')[:_REASON_CHARACTERS]}" for name, reason in answer.failures.items()
    )
    notes = [{"note": f"These sources did not answer: {failed}."}] if failed else []
    return json.dumps([*await cited([hit_to_dict(hit) for hit in answer.hits]), *notes], ensure_ascii=False)
