"""The outcome of a step in the plan: read by the lead, the next try and the gaps."""

import pytest

from maniple.agents.task import MISSING_IN_IT, NEEDED_FOR_IT
from maniple.graph.plan import PlanProgress
from tests.graph.test_adaptation import decision, script
from tests.openai_server import reply
from tests.team import data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio
PRICE = {"agent_name": "researcher", "title": "The price", "description": "Find the price of tea."}


def gaps(frames):
    return [(one["step"], one["reason"]) for one in data(frames, "run_status")[-1].get("gaps") or ()]


FORMS = [
    "STEP FAILED: no price\n\n**NEEDS:**\n- the price\n\nI read two pages.",
    "STEP FAILED: no price\n- NEEDS: the price\n- I read two pages.",
    "I read two pages.\n\n## STEP FAILED\n\nno price\n\n## Needs\n\nthe price\n\nThat is all.",
]


@pytest.mark.parametrize("form", FORMS)
async def test_a_step_is_tried_again_after_what_it_needs_however_it_asks(form: str) -> None:
    lead = {"supervisor": [decision("reassign", step=PRICE)], "researcher": [reply("Three euros.")]}
    only, coder = plan(step("coder"), step("reporter")), [reply(form), reply("It is 4.")]
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
        assert "step 1 (researcher: The price)" in it.prompts("coder")[1]
    steps = [(one["title"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]
    assert steps == [(title, "completed") for title in ("The price", "coder's step", "reporter's step")]


WITH_NEEDS = [
    ("STEP FAILED: no price\nNEEDS: the date", "No price. Needed for it: the date."),
    (
        "STEP FAILED: no price\n\nWhat I would need:\n- the date\n- the shop",
        "No price. Needed for it: the date; the shop.",
    ),
    (
        "It is 3.\n\nPARTIAL: the price\nNEEDS: the date",
        f"{MISSING_IN_IT} the price. Needed for it: the date.",
    ),
    (
        "It is 3.\n\nPARTIAL: the price\n\nTo go on I need the date.",
        f"{MISSING_IN_IT} the price. Needed for it: To go on I need the date.",
    ),
]


@pytest.mark.parametrize(("answer", "gap"), WITH_NEEDS)
async def test_what_a_step_needs_reaches_the_lead_on_lines_of_its_own_and_the_gap(answer, gap) -> None:
    lead = {"supervisor": [decision("continue_without")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, coder=[reply(answer)], **lead)) as it:
        frames = await it.run()
        last = it.prompts("supervisor")[0].splitlines()
    assert gaps(frames) == [("coder's step", gap)]
    [why] = [line for line in last if line.startswith(("Why it failed:", "What is missing"))]
    assert why.endswith("price")
    [needs] = [line for line in last if line.startswith("NEEDS:")]
    assert "the date" in " ".join(last[last.index(needs) :])


@pytest.mark.parametrize(("answer", "gap"), WITH_NEEDS[2:3])
async def test_the_stream_says_the_outcome_in_words_but_a_report_is_about_its_subject(answer, gap) -> None:
    lead = {"supervisor": [decision("continue_without")], "reporter": [reply("# Report\n\nNEEDS: a table")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, coder=[reply(answer)], **lead)) as it:
        text = joined_text(await it.run())
    assert "PARTIAL" not in text and "NEEDS: the date" not in text
    assert MISSING_IN_IT in text and f"{NEEDED_FOR_IT} the date" in text
    assert "NEEDS: a table" in text


async def test_a_long_need_is_not_cut_with_the_reason() -> None:
    lead = {"supervisor": [decision("continue_without")]}
    needs = "\n".join(f"- the price of tea number {number}" for number in range(20))
    answer = f"STEP FAILED: {'no price ' * 30}\nNEEDS:\n{needs}"
    async with scripted_team(
        script(plan(step("coder"), step("reporter")), coder=[reply(answer)], **lead)
    ) as it:
        frames = await it.run()
        assert "number 19" in it.prompts("supervisor")[0].rpartition("NEEDS:")[2]
    [(_, reason)] = gaps(frames)
    assert "number 19" in reason


async def test_a_step_that_another_member_does_instead_stays_in_the_plan_as_failed() -> None:
    lead = {"supervisor": [decision("reassign", step=PRICE)], "researcher": [reply("Three euros.")]}
    only, coder = plan(step("coder"), step("reporter")), [reply("STEP FAILED: no price")]
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
        assert "no price" in it.prompts("researcher")[0]
        assert "no price" not in it.prompts("reporter")[0]
    steps = data(frames, "plan")[-1]["steps"]
    assert [(one["id"], one["agent_name"], one["status"]) for one in steps] == [
        (1, "coder", "failed"),
        (3, "researcher", "completed"),
        (2, "reporter", "completed"),
    ]
    assert "Step 2" in steps[0]["reason"] and "no price" in steps[0]["reason"]
    assert gaps(frames) == []


async def test_if_the_replacement_fails_too_one_gap_remains() -> None:
    lead = {
        "supervisor": [decision("reassign", step=PRICE), decision("continue_without")],
        "researcher": [reply("STEP FAILED: no site")],
    }
    only, coder = plan(step("coder"), step("reporter")), [reply("STEP FAILED: no price\nFound: tea [1]")]
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
        assert "tea [1]" in it.prompts("reporter")[0]
    assert gaps(frames) == [("The price", "No site.")]


async def test_the_lead_says_whether_the_failed_step_is_tried_again() -> None:
    lead = {
        "supervisor": [decision("reassign", step=PRICE, then_retry=True)],
        "researcher": [reply("Three euros.")],
    }
    only, coder = plan(step("coder"), step("reporter")), [reply("STEP FAILED: no price"), reply("It is 4.")]
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
    steps = [(one["title"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]
    assert steps == [(title, "completed") for title in ("The price", "coder's step", "reporter's step")]


async def test_a_step_that_needs_something_can_be_done_by_another_member_instead() -> None:
    lead = {
        "supervisor": [decision("reassign", step=PRICE, then_retry=False)],
        "researcher": [reply("Three euros.")],
    }
    only, coder = plan(step("coder"), step("reporter")), [reply(FORMS[0])]
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
    steps = [(one["title"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]
    assert steps[:2] == [("coder's step", "failed"), ("The price", "completed")]


def test_a_stored_plan_without_outcomes_is_read() -> None:
    old = {"title": "t", "steps": [{"agent_name": "coder", "title": "t", "description": "d", "id": 1}]}
    assert PlanProgress.from_state(old).steps[0].outcome.status == "done"
