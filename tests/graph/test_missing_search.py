"""A team whose search is off or unreachable plans without it and reports that."""

import json
import re

import pytest

from maniple.agents import ROLES, without_search
from maniple.agents.offers import Offer
from maniple.graph import TeamRules
from tests.agents.test_compact import COMPACT, small, sort
from tests.openai_server import SIMPLE, call, reply
from tests.team import TOOLS, agents, plan, scripted_team, step

pytestmark = pytest.mark.anyio
CONSTANT = reply('{"changes": false}')
REASON = "The web search does not answer. Check the network."


class Search:
    """A search that cannot be reached."""

    async def search(self, query, *, limit):
        raise AssertionError("nobody is to ask it")

    async def describe_outage(self):
        return REASON


class Reachable(Search):
    async def describe_outage(self):
        return ""


@pytest.mark.parametrize(("search", "knows"), [(Search(), True), (Reachable(), False)])
async def test_the_planners_prompt_states_whether_search_works(search, knows):
    async with scripted_team(SIMPLE, search=search) as it:
        await it.run()
        (prompt,) = it.prompts("planner")
    assert ("no web search" in prompt) is knows
    assert ("searches the web" in prompt) is not knows


async def test_the_leads_prompt_states_that_search_does_not_work():
    failed = {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("coder"), step("reporter"))))],
        "researcher": [reply("STEP FAILED: nothing was found")],
        "supervisor": [reply('{"decision": "continue_without"}')],
        "coder": [reply("4")],
        "reporter": [reply("# Four")],
    }
    async with scripted_team(failed, search=Search()) as it:
        await it.run()
        assert "no web search" in it.prompts("supervisor")[0]


async def test_without_a_search_no_members_prompt_mentions_searches():
    roles = without_search(ROLES)
    script = {**SIMPLE, "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))]}
    script["researcher"] = [reply("Not looked up: 4")]
    async with scripted_team(
        script, toolbox=Offer({"coder": TOOLS.tools_of("coder")}), rules=TeamRules(roles=roles)
    ) as it:
        await it.run()
        shown = it.prompts("planner")[0]
    spoken = [role.instructions(tools=True, team=[], locale="", language="") for role in roles.values()]
    assert not [text for text in [shown, *spoken] if re.search(r"(?<!no web )\bsearch", text, re.IGNORECASE)]


async def test_without_search_a_small_model_answers_from_memory_with_the_reason():
    script = small(sort("answer"), CONSTANT, reply("Paris."))
    async with scripted_team(script, models=COMPACT, search=Search()) as it:
        frames = await it.run("What is the capital of France?")
        assert it.server.stats["calls"] == 3
        assert "researcher" not in it.server.requests[0]["grammar"]
        assert "researcher" not in str(it.server.requests[0]["messages"])
    answer = frames[-1][1]["messages"][-1]["content"]
    assert agents(frames) == ["coordinator"]
    assert answer.startswith("Paris.\n\n(")
    assert REASON in answer


@pytest.mark.parametrize(
    ("question", "language", "beginning"),
    [
        ("Is it raining in Lima?", "English", "I cannot know this"),
        ("Wie wird das Wetter in Wien?", "German", "Das kann ich nicht wissen"),
    ],
)
async def test_without_search_a_small_model_does_not_make_up_what_is_asked_about_now(
    question, language, beginning
):
    sorted_as = reply(json.dumps({"kind": "answer", "language": language}))
    script = small(sorted_as, reply('{"changes": true}'), reply("It is raining."))
    async with scripted_team(script, models=COMPACT, search=Search()) as it:
        frames = await it.run(question)
        assert it.server.stats["calls"] == 2, "nothing is answered from memory"
    answer = frames[-1][1]["messages"][-1]["content"]
    assert answer.startswith(beginning)
    assert REASON in answer
    assert "raining" not in answer


@pytest.mark.parametrize("search", [Search(), Reachable()])
async def test_a_text_that_a_small_model_writes_has_no_note_about_facts(search):
    script = small(sort("write"), reply("Rain falls"))
    async with scripted_team(script, models=COMPACT, search=search) as it:
        frames = await it.run("Write a haiku about rain")
    assert frames[-1][1]["messages"][-1]["content"] == "Rain falls"


async def test_with_search_an_explanation_is_not_asked_about_twice():
    script = small(sort("answer"), reply("Light scatters."))
    async with scripted_team(script, models=COMPACT, search=Reachable()) as it:
        await it.run("Why is the sky blue?")
        assert it.server.stats["calls"] == 2


async def test_a_small_models_search_that_fails_after_all_is_answered_from_memory():
    script = small(sort("researcher"), reply("Paris."))
    steps = [{"agent_name": "researcher", "title": "Look", "description": "d"}]
    script["planner"] = [reply(json.dumps({"thought": "t", "title": "P", "steps": steps}))]
    async with scripted_team(script, models=COMPACT, toolbox=broken(), search=Reachable()) as it:
        frames = await it.run("What is the capital of France?")
    answer = frames[-1][1]["messages"][-1]["content"]
    assert answer.startswith("Paris.\n\n(Nothing was looked up")
    assert "DNSError" not in json.dumps(frames[-1])
    ended = next(content for name, content in frames if name == "run_status")
    assert [gap["step"] for gap in ended["gaps"]] == ["Look"]


def broken():
    from langchain_core.tools import tool

    @tool
    async def tavily_search(query: str) -> str:
        """Search."""
        raise ValueError("DNSError('error sending request for url (https://html.duckduckgo.com/)')")

    return Offer({"researcher": [tavily_search]})
