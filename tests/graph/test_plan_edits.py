"""One step of a plan is changed, and only what depends on it is undone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.graph.plan import Plan, PlannedStep, PlanProgress
from maniple.graph.plan_edits import (
    MAX_STEPS,
    SKIPPED,
    apply_change,
    apply_changes,
    apply_to_review,
    edit,
    record_review,
    redo,
    skip,
)
from maniple.scope.inputs import PlanChange

TEAM = ("researcher", "coder", "reporter")


def written(agent, needs=None):
    return PlannedStep(agent_name=agent, title=f"{agent}'s", description="d", needs=needs)


PLAN = Plan(
    title="P",
    steps=[
        written("researcher"),
        written("coder", [1]),
        written("researcher", []),
        written("coder", [3]),
        written("reporter"),
    ],
)


def added(after, **words):
    """Return the change that adds a step of the coder, which gets all results."""
    words = {"title": "New", "description": "Do it.", "agent_name": "coder", **words}
    return PlanChange("add", after=after, **words)


def worked(plan=PLAN, until=5):
    """Return the plan with its first steps done."""
    progress = PlanProgress.of(plan)
    for number in range(1, until + 1):
        progress = progress.with_step(number, status="completed", attempts=1, result=f"r{number}")
    return progress


def statuses(progress):
    short = {"not_started": "-", "completed": "c", "skipped": "s", "failed": "f", "in_progress": "i"}
    return "".join(short[step.status] for step in progress.steps)


@pytest.mark.parametrize(
    ("step_id", "left"), [(1, "--cc-"), (2, "c-cc-"), (3, "cc---"), (4, "ccc--"), (5, "cccc-")]
)
def test_redoing_a_step_undoes_what_was_built_on_it_and_nothing_else(step_id, left):
    progress = redo(worked(), step_id)
    assert statuses(progress) == left
    for step in progress.steps:
        assert (step.result == "") == (step.status == "not_started")
    assert progress.current().id == step_id


def test_skipping_drops_the_result_and_undoes_what_was_built_on_it():
    progress = skip(worked(), 1)
    assert statuses(progress) == "s-cc-"
    assert (progress.step(1).result, progress.step(1).reason) == ("", SKIPPED)
    assert skip(progress, 1) == progress
    assert statuses(skip(worked(until=1), 4)) == "c--s-", "what is not begun is only left out"


def test_editing_changes_text_and_member_and_restarts_the_step():
    change = PlanChange("edit", 3, description=" Look elsewhere. ", agent_name="coder")
    progress = edit(worked(), change, TEAM)
    assert statuses(progress) == "cc---"
    step = progress.step(3)
    assert (step.agent_name, step.title, step.description) == ("coder", "researcher's", "Look elsewhere.")


def test_without_needs_a_step_depends_on_all_before_it():
    plan = Plan(title="P", steps=[written("researcher"), written("coder"), written("reporter")])
    assert statuses(redo(worked(plan, 3), 1)) == "---"
    assert statuses(redo(worked(plan, 3), 2)) == "c--"


def test_dependence_is_handed_on():
    chain = [written("researcher"), written("coder", [1]), written("researcher", [2]), written("reporter")]
    assert statuses(redo(worked(Plan(title="P", steps=chain), 4), 1)) == "----"


def test_what_the_user_skipped_stays_so_and_what_the_team_gave_up_is_tried_again():
    progress = skip(worked(until=0), 2).with_step(1, status="failed", attempts=3, result="no", reason="no")
    progress = progress.skipped_to_report("'a' could not be done").with_step(5, status="completed")
    assert statuses(progress) == "fsssc"
    assert statuses(redo(progress, 1)) == "-sss-", "step 3 does not build on step 1"
    assert statuses(redo(progress, 3)) == "fs---"


def test_a_failure_that_the_run_has_gone_on_without_is_not_come_back_to():
    progress = worked().with_step(1, status="failed", attempts=1, result="no", reason="no")
    progress = redo(progress, 3)
    assert progress.given_up(progress.step(1))
    assert progress.step(1).reason == "no"
    assert not redo(progress, 1).step(1).settled
    early = PlanProgress.of(PLAN).with_step(1, status="failed", attempts=1)
    assert not redo(early, 3).given_up(early.step(1)), "this one the supervisor has yet to decide on"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (PlanChange("skip", 9), "no step 9"),
        (PlanChange("redo", 0), "no step 0"),
        (PlanChange("skip", 5), "report cannot be skipped"),
        (PlanChange("edit", 1), "needs a title"),
        (PlanChange("edit", 1, title="  "), "title must not be empty"),
        (PlanChange("edit", 1, agent_name="browser"), "browser is not on the team"),
        (PlanChange("edit", 1, agent_name="reporter"), "the last step and no other"),
        (PlanChange("edit", 5, agent_name="coder"), "the last step and no other"),
        (added(None), "needs `after`"),
        (added(5), "No step can follow"),
        (added(7), "no step 7 after which"),
        (added(1, title=None), "needs a title, a description and an agent_name"),
        (added(1, description=" "), "description must not be empty"),
        (added(1, agent_name="browser"), "browser is not on the team"),
        (added(1, agent_name="reporter"), "the last step and no other"),
        (PlanChange("move", 5, after=1), "last step cannot be moved"),
        (PlanChange("move", 1, after=1), "was started|no step 1 after which"),
        (PlanChange("move", 1), "was started|needs `after`"),
    ],
)
def test_what_cannot_be_is_refused_with_words(change, words):
    with pytest.raises(ValueError, match=words):
        apply_change(worked(), change, TEAM)
    if change.step_id != 9:
        with pytest.raises(ValueError, match=r"no step 0|" + words):
            apply_to_review(PLAN, change, TEAM)


@pytest.mark.parametrize(
    ("after", "order", "left"),
    [(0, [6, 1, 2, 3, 4, 5], "---cc-"), (2, [1, 2, 6, 3, 4, 5], "cc-cc-"), (4, [1, 2, 3, 4, 6, 5], "cccc--")],
)
def test_a_step_is_added_and_what_is_given_all_results_is_done_again(after, order, left):
    progress = apply_change(worked(), added(after), TEAM)
    assert [step.id for step in progress.steps] == order
    assert statuses(progress) == left
    assert progress.current().id == 6


def test_a_step_that_is_not_begun_takes_another_place():
    progress = apply_change(worked(until=1), PlanChange("move", 4, after=1), TEAM)
    assert [step.id for step in progress.steps] == [1, 4, 2, 3, 5]
    assert statuses(progress) == "c----"
    assert progress.given_to(progress.step(4)) == (), "what it needs comes later now"
    plan = Plan(title="P", steps=[written("researcher"), written("coder"), written("reporter")])
    assert statuses(apply_change(worked(plan, until=1), PlanChange("move", 2, after=0), TEAM)) == "---"
    with pytest.raises(ValueError, match="was started"):
        apply_change(worked(until=1), PlanChange("move", 1, after=2), TEAM)


def test_a_plan_does_not_grow_for_ever():
    progress = PlanProgress.of(PLAN)
    while len(progress.steps) < MAX_STEPS:
        progress = apply_change(progress, added(0), TEAM)
    with pytest.raises(ValueError, match="which is the limit"):
        apply_change(progress, added(0), TEAM)


def test_before_the_plan_is_accepted_steps_are_added_and_moved_with_what_they_need():
    longer = apply_to_review(PLAN, added(1), TEAM)
    assert [step.title for step in longer.steps][:3] == ["researcher's", "New", "coder's"]
    assert [step.needs for step in longer.steps] == [None, None, [1], [], [4], None]
    moved = apply_to_review(PLAN, PlanChange("move", 3, after=0), TEAM)
    assert [step.needs for step in moved.steps] == [[], None, [2], [1], None]
    later = apply_to_review(PLAN, PlanChange("move", 1, after=2), TEAM)
    assert [step.needs for step in later.steps] == [[], None, [], [3], None]


def test_each_change_is_applied_once_and_an_impossible_one_is_refused_with_the_reason():
    redone, impossible = PlanChange("redo", 2), PlanChange("skip", 5)
    progress = apply_changes(worked(), [impossible, redone], TEAM)
    assert statuses(progress) == "c-cc-"
    assert list(progress.refused) == [impossible.change_id] and "report" in progress.refused.popitem()[1]
    again = progress.with_step(2, status="completed", result="new")
    assert apply_changes(PlanProgress.from_state(again.to_state()), [redone], TEAM) == again


def test_a_checkpoint_from_before_there_were_changes_is_read():
    old = PlanProgress.of(PLAN).to_state()
    del old["changes"]
    for step in old["steps"]:
        del step["needs"], step["settled"]
    assert PlanProgress.from_state(old).steps[1].needs is None


def numbered(*steps):
    """Return a plan of steps like `coder Sum: text`."""
    parts = (one.partition(" ") for one in steps)
    pairs = ((agent, *rest.partition(": ")) for agent, _, rest in parts)
    made = [
        PlannedStep(agent_name=agent, title=title, description=text or title)
        for agent, title, _, text in pairs
    ]
    return Plan(title="P", steps=made)


@pytest.mark.parametrize(
    ("after", "by_user", "dropped"),
    [
        (("researcher Find", "coder Sum", "reporter Report"), [], ()),
        (("coder Sum", "researcher Find", "reporter Report"), [], ()),
        (("coder Sum", "reporter Report"), [], ("Find",)),
        (("reporter Report",), [], ("Find", "Sum")),
        (("researcher Find", "coder Draw", "reporter Report"), ["Draw"], ()),
        (("researcher Find", "researcher Sum", "reporter Report"), ["Sum"], ()),
        (("researcher Find", "coder Sum: all of it", "reporter Report"), ["Sum"], ()),
        (("researcher Find", "coder Sum", "coder Draw", "reporter Report"), ["Draw"], ()),
        (("coder Draw", "reporter Report: briefly"), ["Draw", "Report"], ("Find", "Sum")),
    ],
)
def test_the_plan_holds_what_the_user_removed_and_wrote_in_its_review(after, by_user, dropped):
    progress = record_review(numbered("researcher Find", "coder Sum", "reporter Report"), numbered(*after))
    assert [one.title for one in progress.steps if one.by_user] == by_user
    assert progress.dropped == dropped
    assert PlanProgress.from_state(progress.to_state()) == progress


def test_a_note_that_the_user_writes_changes_its_step():
    noted = PLAN.steps[0].model_copy(update={"note": "Not by head."})
    progress = record_review(PLAN, PLAN.model_copy(update={"steps": [noted, *PLAN.steps[1:]]}))
    assert [one.by_user for one in progress.steps] == [True, False, False, False, False]


def test_before_the_plan_is_accepted_a_step_is_taken_out_or_edited():
    shorter = apply_to_review(PLAN, PlanChange("skip", 1), TEAM)
    assert [step.needs for step in shorter.steps] == [[], [], [2], None]
    other = apply_to_review(PLAN, PlanChange("edit", 2, title="New"), TEAM)
    assert other.steps[1].title == "New"
    with pytest.raises(ValueError, match="has not started yet"):
        apply_to_review(PLAN, PlanChange("redo", 1), TEAM)


changes = st.builds(
    PlanChange,
    action=st.sampled_from(["skip", "redo", "edit", "add", "move"]),
    step_id=st.integers(1, 6),
    title=st.just("new"),
    description=st.just("new"),
    agent_name=st.sampled_from(["coder", None]),
    after=st.integers(0, 6),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(changes, max_size=8), st.integers(0, 5))
def test_no_change_leaves_a_result_that_depends_on_an_unfinished_step(wanted, until):
    progress = apply_changes(worked(until=until), wanted, TEAM)
    for step in progress.steps:
        if step.status == "completed":
            given_to = [one for one in progress.given_to(step) if one.reason != SKIPPED]
            assert all(one.status == "completed" for one in given_to)
        else:
            assert step.result == ""
    ids = [step.id for step in progress.steps]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    assert ids[-1] == 5


@pytest.mark.parametrize("change", [PlanChange("redo", 2), added(0), PlanChange("move", 2, after=0)])
def test_a_changed_plan_has_only_fields_that_are_stored(change):
    progress = apply_change(PlanProgress.of(PLAN), change, TEAM)
    assert PlanProgress.from_state(progress.to_state()) == progress
    assert vars(progress).keys() == PlanProgress.model_fields.keys()
