"""The outcome of a step in the plan: read by the lead, the next try and the gaps."""

import pytest

from maniple.graph.plan import PlanProgress
from tests.graph.test_adaptation import decision, script
from tests.openai_server import reply
from tests.team import data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
PRICE = {"agent_name": "researcher", "title": "The price", "description": "Find the price of tea."}
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


def test_a_stored_plan_without_outcomes_is_read() -> None:
    old = {"title": "t", "steps": [{"agent_name": "coder", "title": "t", "description": "d", "id": 1}]}
    assert PlanProgress.from_state(old).steps[0].outcome.status == "done"
