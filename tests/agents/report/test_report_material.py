"""What the writer of a section is shown, and when an outline is offered."""

import json

import pytest
from langchain_core.messages import SystemMessage

from maniple.agents import StepResult, Task
from maniple.agents.long_report import LEAST_SOURCES, ReportMaterial, offer_outline
from maniple.agents.report_outline import read_outline
from maniple.api.requests import ChatRequest
from maniple.evidence import MemoryEvidence
from maniple.mcp_server.schemas import AskTeam

pytestmark = pytest.mark.anyio
SECTIONS = [{"heading": "A", "sources": [1]}, {"heading": "B", "steps": [2]}, {"heading": "C"}]


async def prompts() -> list[str]:
    """Return the prompts of three sections: one names a source, one a step, and one nothing."""
    evidence = MemoryEvidence()
    for name in ("first", "second"):
        await evidence.add(f"https://{name}.test/", f"The {name} page", "page", "text")
    results = [
        StepResult("researcher", "Read", "Found on one [1].", step=1),
        StepResult("coder", "Compute", "It is 42.", step=2),
    ]

    async def find_cited(text: str) -> set[int]:
        return {1} if "[1]" in text else set()

    sources = {one.number: one for one in await evidence.sources()}
    task = Task("Tell all.", "Report", "Report it", results=results)
    material = ReportMaterial(task, [SystemMessage("You are.")], sources, (), find_cited)
    outline = await read_outline(json.dumps({"title": "T", "sections": SECTIONS}))
    built = [await material.build_prompt(outline, one, 10_000) for one in outline.sections]
    return ["\n".join(one.text for one in messages) for messages in built]


async def test_a_section_sees_what_it_names_and_one_that_names_nothing_sees_all():
    first, second, third = await prompts()
    assert ["first page" in one for one in (first, second, third)] == [True, False, True]
    assert ["second page" in one for one in (first, second, third)] == [False, False, True]
    assert ["Found on one" in one for one in (first, second, third)] == [True, False, True]
    assert ["It is 42" in one for one in (first, second, third)] == [False, True, True]
    assert all("Request: Tell all." in one and "2. B" in one for one in (first, second, third))


def test_an_outline_is_asked_for_if_the_style_is_long_and_else_offered_where_there_are_sources():
    assert '"sections"' in offer_outline("long", 0)
    assert '"sections"' in offer_outline("auto", LEAST_SOURCES)
    assert not offer_outline("auto", LEAST_SOURCES - 1)
    assert not offer_outline("brief", LEAST_SOURCES)


def test_a_request_sets_the_style_of_its_run():
    asked = [{"role": "user", "content": "1+3=?"}]
    assert (
        ChatRequest.model_validate({"messages": asked, "report_style": "table"}).options().report_style
        == "table"
    )
    assert ChatRequest.model_validate({"messages": asked}).options().report_style == ""
    called = AskTeam.model_validate({"question": "1+3=?", "report_style": "long"}).as_run(None, "")
    assert called.options.report_style == "long"
