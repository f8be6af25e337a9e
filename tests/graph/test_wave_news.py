"""A step that waits for another begins when that ends, whatever its own invocation does at that moment."""

import asyncio
from typing import Any

import pytest

from maniple.agents import ROLES
from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.step_records import StepRecord
from maniple.graph.waves import StepInvocation, StepWave, Waves
from maniple.scope.run_scope import RunScope
from tests.graph.test_waves import planned
from tests.inboxes import an_inbox
from tests.team import plan

pytestmark = pytest.mark.anyio
DONE = StepRecord(
    at=1,
    by=1,
    index=0,
    name="step_1_0_1",
    step=1,
    edition=0,
    changes=0,
    kind="try",
    fields={"status": "completed", "attempts": 1},
    at_work=[],
)


class ShowingWave(StepWave):
    """The step that another waits for ends while that one shows the plan, which takes a moment."""

    async def show(self, step_id: int = 0, *, begins: bool = False) -> None:
        if not self.records:
            self.add(DONE)
            self.leave(1)
        await asyncio.sleep(0)


async def test_a_step_that_ends_while_another_is_about_to_wait_for_it_wakes_it():
    progress = PlanProgress.of(Plan.model_validate(plan(planned("A"), planned("B", 1))))
    private: Any = {"plan": progress.to_state(), "sent": (1, 2), "wave": 1}
    wave = ShowingWave(Waves(ROLES, 2), private, ["researcher"], an_inbox())
    async with asyncio.timeout(30):
        step = await StepInvocation(wave, 2, RunScope("run", inbox=wave.inbox)).next_step("researcher")
    assert step is not None
    assert step.title == "B"
