"""The small model's report is checked and marked; it is not asked again."""

import pytest
from langchain_core.runnables import RunnableLambda

from maniple.agents import StepResult, Task
from maniple.agents.compact import CompactReporter
from maniple.agents.report_score import remove_score
from maniple.config import ModelsSettings
from maniple.evidence import MemoryEvidence
from maniple.llms import open_chat_models
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from tests.agents.report.research import PAGE, URL
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
LIST = f"## Sources\n\n- [1] Bridge: <{URL}>"


async def report(answer: str) -> tuple[str, int]:
    """Return the report on one page, and how often the model was asked."""
    evidence = MemoryEvidence()
    await evidence.add(URL, "Bridge", "page", PAGE)
    await evidence.add("https://unread.test", "Unread", "result", "c")
    found = StepResult("researcher", "Read", f"# Bridge\n\nSource [1]: {URL}\n\n{PAGE}")
    with serving({"other": [reply(answer)]}) as server:
        basic = {"model": "m", "base_url": server.base_url, "max_retries": 0}
        async with open_chat_models(ModelsSettings.model_validate({"basic": basic})) as models:
            agent = CompactReporter(models.get("basic"))
            work = RunnableLambda(agent.work)
            task = Task("Who opened the bridge?", "Report", "Report it", results=[found])
            text = await work.ainvoke(task, {"configurable": {SCOPE_KEY: RunScope(evidence=evidence)}})
        return text, server.stats["calls"]


async def test_what_does_not_hold_is_marked_in_one_call():
    text, calls = await report("The king, see https://evil.test: “it was opened by the mayor himself”.")
    assert remove_score(text) == (
        "The king, see https://evil.test [unverified]: “it was opened by the mayor himself” [unverified].\n\n"
        + LIST
    )
    assert calls == 1


async def test_the_sources_that_it_was_handed_are_listed_though_it_cites_none():
    assert await report("It was the king.") == (f"It was the king.\n\n{LIST}", 1)
