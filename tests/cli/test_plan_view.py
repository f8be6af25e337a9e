import pytest

from maniple.cli.render.run_state import PlanView
from tests.cli.events import plan

LONG = (*(("researcher", f"Step {n}") for n in range(1, 12)), ("reporter", "Report"))


def test_steps_tick_off() -> None:
    view = PlanView()
    assert view.update(plan("not_started", "not_started")) == []
    assert view.is_new
    changed = view.update(plan("completed", "in_progress"))

    assert [step.title for step in changed] == ["Compute", "Report"]
    assert not view.is_new
    assert [line.plain for line in view.lines()] == ["✔  1 coder     Compute", "▶  2 reporter  Report"]
    assert view.title_for("reporter") == "Report"
    assert not view.has_open_work()


@pytest.mark.parametrize(
    ("status", "mark"),
    [
        *(("not_started", "☐"), ("in_progress", "▶"), ("blocked", "!")),
        *(("completed", "✔"), ("failed", "✘"), ("skipped", "–")),
    ],
)
def test_each_status_has_its_mark(status: str, mark: str) -> None:
    view = PlanView()
    view.update(plan(status, "not_started"))
    assert view.lines()[0].plain.startswith(mark)


def test_an_inserted_step_changes_nothing_and_another_plan_is_new() -> None:
    view = PlanView()
    view.update(plan("completed", "not_started"))
    steps = [("coder", "Compute"), ("coder", "Check"), ("reporter", "Report")]
    longer = plan("completed", "not_started", "not_started", steps=steps)
    renumbered = [
        step.model_copy(update={"id": number}) for step, number in zip(longer.steps, (1, 3, 2), strict=True)
    ]
    assert view.update(longer.model_copy(update={"steps": renumbered})) == []
    assert not view.is_new
    assert [line.plain[2:4].strip() for line in view.lines()] == ["1", "2", "3"]

    view.update(plan("not_started", "not_started", steps=[("browser", "Look"), ("reporter", "Report")]))
    assert view.is_new


@pytest.mark.parametrize("done", range(13))
def test_a_long_plan_is_shown_around_the_present_step(done: int) -> None:
    view = PlanView()
    statuses = ["completed"] * done + ["in_progress"] * (done < 12) + ["not_started"] * (11 - done)
    view.update(plan(*statuses, steps=LONG))
    lines = [line.plain for line in view.lines(most=6)]

    assert len(lines) <= 6
    assert done == 12 or any(line.startswith("▶") for line in lines)
