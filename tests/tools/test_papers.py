import json

import pytest
from langchain_core.tools import BaseTool

from maniple.errors import SearchError
from maniple.evidence import MemoryEvidence
from maniple.outgoing import OutgoingGuard
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.search import PaperSearch, SearchChain, SearchHit
from maniple.search.provider import ProviderFailure
from maniple.tools.papers import TeamPapers
from maniple.tools.registry import load_tools
from tests.search.fake_providers import FakeProvider

pytestmark = pytest.mark.anyio

PAPER = SearchHit(
    "Stone arches",
    "https://doi.org/10.1000/x",
    "An abstract.",
    kind="paper",
    published="2020-05",
    author="Kei Ito",
    publisher="Arches",
    doi="10.1000/x",
    full_text_url="https://a.test/x.pdf",
)


def build_papers(*, guard: OutgoingGuard | None = None, **providers: FakeProvider) -> BaseTool:
    papers = PaperSearch(SearchChain(providers, merges=True))
    tool = load_tools()["search_papers"].build({TeamPapers: TeamPapers(papers, 5, guard or OutgoingGuard())})
    assert tool is not None
    return tool


async def test_a_paper_is_shown_with_its_publication_and_recorded_as_a_source() -> None:
    evidence, tool = MemoryEvidence(), build_papers(arxiv=FakeProvider([PAPER]))
    scope = RunScope(evidence=evidence)
    [hit] = json.loads(await tool.ainvoke({"query": "arches"}, {"configurable": {SCOPE_KEY: scope}}))
    assert (hit["kind"], hit["published"], hit["author"], hit["cite"]) == ("paper", "2020-05", "Kei Ito", 1)
    assert (hit["doi"], hit["full_text_url"]) == ("10.1000/x", "https://a.test/x.pdf")
    [source] = await evidence.sources()
    assert (source.published, source.author, source.publisher) == ("2020-05", "Kei Ito", "Arches")


async def test_sources_that_did_not_answer_are_a_note() -> None:
    broken = FakeProvider(failure=ProviderFailure("down."))
    tool = build_papers(arxiv=FakeProvider([PAPER]), pubmed=broken)
    *hits, last = json.loads(await tool.ainvoke({"query": "arches"}))
    assert (len(hits), "pubmed: down" in last["note"]) == (1, True)


async def test_a_source_is_chosen_by_name_and_the_tool_names_them() -> None:
    one, two = FakeProvider([PAPER]), FakeProvider([PAPER])
    tool = build_papers(arxiv=one, pubmed=two)
    await tool.ainvoke({"query": "arches", "source": " pubmed ", "newest": True})
    assert (one.asked, two.asked) == ([], ["arches"])
    assert "arxiv, pubmed" in tool.description
    with pytest.raises(SearchError, match="pubmed"):
        await tool.ainvoke({"query": "arches", "source": "google"})


def test_without_any_source_there_is_no_tool() -> None:
    assert load_tools()["search_papers"].build({}) is None


async def test_a_query_with_a_secret_of_the_settings_is_not_sent() -> None:
    one, key = FakeProvider([PAPER]), "sk-live-9Qm2XbV7cT4kZr81LwYd5NhGfJ3sPa6E"
    tool = build_papers(guard=OutgoingGuard([key]), arxiv=one)
    with pytest.raises(SearchError):
        await tool.ainvoke({"query": f"papers on {key}"})
    assert one.asked == []
