"""What a run was asked with, for clients that show it while the run works."""

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
CHOSEN = {
    "effort": "low",
    "deep_thinking_mode": True,
    "search_before_planning": True,
    "auto_accepted_plan": False,
    "team_members": ["coder"],
    "depth": "quick",
    "locale": "de-DE",
    "report_style": "table",
}
LEFT = {
    "model": "",
    "effort": "",
    "deep_thinking_mode": False,
    "search_before_planning": False,
    "auto_accepted_plan": True,
    "team_members": [],
    "agent": "",
    "depth": "",
    "locale": "",
    "report_style": "",
}


@pytest.mark.parametrize("chosen", [{}, CHOSEN])
async def test_a_run_names_all_options_that_it_was_asked_with(tmp_path, chosen):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            limits = {"tokens": 900_000, "seconds": 90.0, "model_calls": 70, "tool_calls": 80}
            accepted = await it.run(**chosen, budget=limits)
            asked = (await it.get(f"/api/runs/{accepted['run_id']}"))["asked"]
            await it.events_of(accepted["run_id"])
    budget = asked.pop("budget")
    assert asked == LEFT | chosen
    assert budget == limits | {"cost": None}
