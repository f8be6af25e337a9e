"""The plan of a running team is changed by its user, over a real endpoint that follows a script."""

import json

import pytest
from langchain_core.tools import tool

from maniple.agents.briefing import format_removed
from maniple.agents.offers import Offer
from maniple.agents.task import BY_USER_LINE
from maniple.graph import Plan, TeamRules
from maniple.graph.plan_edits import apply_to_review
from maniple.graph.state import private_of
from maniple.scope.budget import UsageMeter
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import PlanChange
from tests.graph.metered import metered
from tests.inboxes import MemoryLog, an_inbox, sent
from tests.openai_server import call, reply
from tests.team import agents, data, joined_text, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
STEPS = [
    {**step("researcher", "Find"), "needs": None},
    {**step("coder", "Sum"), "needs": []},
    {**step("researcher", "Compare"), "needs": [1]},
    step("reporter", "Report"),
]
SEARCH = call("tavily_search", query="q")
RUN = call("python_repl_tool", code="1")


def script(**roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(plan(*STEPS)))],
        "coder": [RUN, reply("It is 4.")],
        "researcher": [reply("Found."), reply("Compared."), reply("Found again."), reply("Compared again.")],
        "reporter": [reply("# Report"), reply("# Second report")],
        "supervisor": [reply('{"next": "coder"}')],
        **roles,
    }


def toolbox_with(inbox, *changes):
    """Return tools; the coder's one requests `changes` of the plan, once."""
    waiting = list(changes)

    @tool
    async def python_repl_tool(code: str) -> str:
        """Run Python."""
        while waiting:
            await inbox.put(sent(waiting.pop(0)))
        return "4"

    return Offer({"coder": [python_repl_tool]})


class Late(Inbox):
    """A change that is requested when the run is about to end."""

    def __init__(self, change):
        super().__init__(log=MemoryLog())
        self._late = [change]

    async def seal(self, applied):
        while self._late:
            await self.put(sent(self._late.pop()))
        return await super().seal(applied)


async def run(inbox, *changes, answers=None, **options):
    in_order = TeamRules(parallel_steps=1)
    async with scripted_team(
        answers or script(), toolbox=toolbox_with(inbox, *changes), rules=in_order
    ) as it:
        frames = await metered(it, UsageMeter(), inbox=inbox, **options)
        return frames, {role: it.prompts(role) for role in ("researcher", "coder", "reporter")}


def plans(frames):
    return [[one["status"] for one in each["steps"]] for each in data(frames, "plan")]


async def test_a_step_sees_the_results_it_needs_and_the_report_all():
    _, prompts = await run(an_inbox())
    assert "Found." not in prompts["coder"][0]
    compare = prompts["researcher"][1]
    assert "Found." in compare
    assert "It is 4." not in compare
    assert all(words in prompts["reporter"][0] for words in ("Found.", "It is 4.", "Compared."))


async def test_a_step_done_again_undoes_only_what_was_built_on_it():
    inbox = an_inbox()
    frames, prompts = await run(inbox, PlanChange("redo", 1))
    assert agents(frames)[2:] == ["researcher", "coder", "researcher", "researcher", "reporter"]
    assert "Response from" not in prompts["researcher"][1], "its first result is dropped"
    assert "It is 4." in prompts["reporter"][0]
    assert status(frames) == "completed"
    assert not inbox.is_open


async def test_the_step_that_is_under_way_ends_and_its_result_is_dropped():
    frames, prompts = await run(an_inbox(), PlanChange("skip", 2))
    assert plans(frames)[-1] == ["completed", "skipped", "completed", "completed"]
    assert data(frames, "plan")[-1]["steps"][1]["reason"] == "the user skipped it"
    assert "It is 4." not in prompts["reporter"][0]
    assert f"{format_removed(['Sum'])}\n" in prompts["reporter"][0]
    assert "MISSING:" not in prompts["reporter"][0], "what the user does not want is not missing"
    assert "Sum (" not in prompts["reporter"][0]


async def test_an_edited_step_is_done_by_whom_the_user_names():
    change = PlanChange("edit", 3, title="Draw", description="Draw it.", agent_name="coder")
    frames, prompts = await run(an_inbox(), change, answers=script(coder=[RUN, reply("4."), reply("Drawn.")]))
    assert agents(frames)[-3:] == ["coder", "coder", "reporter"]
    assert f"Your step: Draw\nDraw it.\n{BY_USER_LINE}" in prompts["coder"][-1]
    assert BY_USER_LINE not in prompts["coder"][0] + prompts["reporter"][-1]
    assert [one["title"] for one in data(frames, "plan")[-1]["steps"]] == ["Find", "Sum", "Draw", "Report"]


async def test_a_wish_while_the_report_is_written_makes_a_second_one():
    inbox = Late(PlanChange("redo", 1))
    steps = [step("researcher"), step("reporter")]
    frames, _ = await run(inbox, answers=script(planner=[reply(json.dumps(plan(*steps)))]))
    assert agents(frames)[2:] == ["researcher", "reporter", "researcher", "reporter"]
    assert joined_text(frames).endswith("# Second report")
    assert plans(frames)[-1] == ["completed", "completed"]


async def test_a_change_that_was_applied_before_a_restart_is_not_applied_again():
    change = PlanChange("skip", 1)
    frames, prompts = await run(an_inbox(change, change))
    assert agents(frames)[2:] == ["coder", "researcher", "reporter"]
    assert len(prompts["researcher"]) == 1


async def test_small_talk_takes_no_changes():
    inbox = an_inbox()
    frames, _ = await run(inbox, answers=script(coordinator=[reply("Hello!")]))
    assert joined_text(frames) == "Hello!"
    assert not inbox.is_open


async def test_a_graph_without_pending_edits_completes():
    async with scripted_team(script()) as it:
        assert status(await it.run()) == "completed"


async def test_needs_that_make_no_sense_become_all_earlier_steps():
    steps = [
        step("researcher", "A"),
        {**step("researcher", "B"), "needs": [1]},
        {**step("coder", "C"), "needs": []},
        {**step("researcher", "D"), "needs": [3]},
        {**step("coder", "E"), "needs": [2, 1]},
        {**step("researcher", "F"), "needs": [9]},
    ]
    async with scripted_team(script(planner=[reply(json.dumps(plan(*steps)))])) as it:
        await metered(it, UsageMeter())
        state = await it.team.aget_state({"configurable": {"thread_id": "t"}})
    kept = [(one["title"], one["needs"]) for one in private_of(state.values)["plan"]["steps"]]
    assert kept == [
        ("A", None),
        ("B", [1]),
        ("C", []),
        ("D", [3]),
        ("E", [1, 2]),
        ("F", None),
        ("The plan", None),
    ]


async def test_a_step_taken_out_before_the_plan_is_accepted_is_never_begun():
    async with scripted_team(script()) as it:
        paused = await it.run(thread_id="t", auto_accepted_plan=False)
        waiting = Plan.model_validate(data(paused, "interrupt")[0]["payload"]["plan"])
        shorter = apply_to_review(waiting, PlanChange("skip", 1), ["researcher", "coder", "reporter"])
        frames = await it.run(shorter.as_text(), thread_id="t", auto_accepted_plan=False)
        state = await it.team.aget_state({"configurable": {"thread_id": "t"}})
    assert agents(frames) == ["coder", "researcher", "reporter"]
    assert [one["needs"] for one in private_of(state.values)["plan"]["steps"]] == [[], [], None]


async def test_a_failure_given_up_does_not_come_back_when_another_step_is_redone():
    failing = {**step("coder", "Fail"), "needs": []}
    steps = [failing, {**step("researcher"), "needs": []}, STEPS[3]]
    answers = script(
        planner=[reply(json.dumps(plan(*steps)))],
        coder=[reply("STEP FAILED: no")],
        supervisor=[reply('{"next": "reporter"}')],
    )
    async with scripted_team(answers, rules=TeamRules(parallel_steps=1)) as it:
        frames = await metered(it, UsageMeter(), inbox=Late(PlanChange("redo", 2)))
        assert len(it.prompts("supervisor")) == 1
    assert agents(frames)[2:] == ["coder", "reporter", "researcher", "reporter"]
    assert plans(frames)[-1] == ["failed", "completed", "completed"]
