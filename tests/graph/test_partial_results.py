"""A step that is done in part: what was found is used, what is missing is named, and the lead decides."""

from typing import Any

import pytest

from maniple.agents.step_outcome import parse_answer
from maniple.agents.task import find_gaps
from maniple.graph.adaptation import format_unfinished, prepare_replanning
from maniple.graph.lead import Failure
from maniple.graph.plan import Plan, PlannedStep, PlanProgress
from maniple.graph.plan_edits import retry
from maniple.graph.step_records import LeadDecision, NewStep, apply_decision
from tests.graph.test_adaptation import decision, script
from tests.graph.test_waves import planned, run, team
from tests.openai_server import reply
from tests.team import data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio
ONLY = plan(step("coder"), step("reporter"))
PART = "PARTIAL: the rate of May\n\nApril: 3 [1]."
RATE = {"agent_name": "researcher", "title": "The rate", "description": "Find the rate of May."}
LACKS = "Missing in it: the rate of May"
GAP = ("coder's step", f"{LACKS}.")


def gaps(frames: Any) -> list[tuple[str, str]]:
    return [(one["step"], one["reason"]) for one in data(frames, "run_status")[-1].get("gaps") or ()]


def statuses(frames: Any) -> list[tuple[str, str]]:
    return [(one["title"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]


async def run_with(lead: list[Any], coder: list[str], **more: Any) -> tuple[Any, Any]:
    answers = script(ONLY, coder=[reply(one) for one in coder], supervisor=lead, **more)
    async with scripted_team(answers) as it:
        return await it.run(), it


async def test_what_is_missing_is_a_gap_and_what_was_found_is_used() -> None:
    frames, it = await run_with([decision("continue_without")], [PART])
    [report], [asked] = it.prompts("reporter"), it.prompts("supervisor")
    assert "April: 3 [1]." in report and LACKS in report
    assert "PARTIAL:" not in report, "a label would be taken for the reader's own"
    assert "April: 3 [1]." in asked and "the rate of May" in asked
    assert statuses(frames) == [("coder's step", "completed"), ("reporter's step", "completed")]
    assert data(frames, "plan")[-1]["steps"][0]["reason"] == GAP[1]
    assert gaps(frames) == [GAP]


@pytest.mark.parametrize(
    "form", ["April: 3 [1].\n\nPARTIAL: the rate of May", "April: 3 [1].\n\n**MISSING:** the rate of May"]
)
async def test_it_is_a_gap_however_the_member_says_it(form: str) -> None:
    frames, _ = await run_with([decision("continue_without")], [form])
    assert gaps(frames) == [GAP]


async def test_a_lead_without_a_usable_answer_accepts_it() -> None:
    frames, it = await run_with([reply("I do not know.")], [PART])
    assert len(it.prompts("coder")) == 1
    assert gaps(frames) == [GAP]


def test_a_rule_accepts_it() -> None:
    progress = partial()
    failure = Failure(progress, progress.steps[0], has_tries_left=True, can_replan=True)
    assert failure.decide_by_rule().decision == "continue_without"
    assert failure.decide_without_model().decision == "continue_without"


async def test_the_second_try_knows_what_the_first_one_found() -> None:
    hint = [decision("retry", hint="Look at the bank.")]
    frames, it = await run_with(hint, [PART, "April: 3 [1]. May: 4 [2]."])
    second = it.prompts("coder")[1]
    assert "Look at the bank." in second and "April: 3 [1]." in second and "the rate of May" in second
    assert gaps(frames) == []
    assert "reason" not in data(frames, "plan")[-1]["steps"][0]


@pytest.mark.parametrize(
    ("second", "gap"),
    [
        ("STEP FAILED: no site", f"{GAP[1]} Another try failed: No site."),
        ("", f"{GAP[1]} Another try failed: The member gave no answer."),
        ("PARTIAL: May and its date\n\nMarch: 2 [3].", "Missing in it: May and its date."),
        ("May: 4 [2].", None),
    ],
)
async def test_what_the_first_try_found_outlives_the_second(second: str, gap: str | None) -> None:
    lead = [decision("retry", hint="again"), decision("continue_without")]
    frames, it = await run_with(lead, [PART, second])
    [report] = it.prompts("reporter")
    assert "April: 3 [1]." in report
    assert parse_answer(second).text in report or "FAILED" in second or not second
    assert [reason for _, reason in gaps(frames)] == ([gap] if gap else [])


async def test_another_member_gets_what_is_missing_and_closes_the_gap() -> None:
    lead, found = [decision("reassign", step=RATE, then_retry=False)], [reply("May: 4 [2].")]
    frames, it = await run_with(lead, [PART], researcher=found)
    assert "April: 3 [1]." in it.prompts("researcher")[0]
    assert "April: 3 [1]." in it.prompts("reporter")[0] and "May: 4 [2]." in it.prompts("reporter")[0]
    assert [status for _, status in statuses(frames)] == ["completed"] * 3
    assert gaps(frames) == []


async def test_if_the_other_member_fails_one_gap_names_it_and_the_part_is_used() -> None:
    lead = [decision("reassign", step=RATE, then_retry=False), decision("continue_without")]
    frames, it = await run_with(lead, [PART], researcher=[reply("STEP FAILED: no site")])
    assert "April: 3 [1]." in it.prompts("reporter")[0]
    assert gaps(frames) == [("The rate", "No site.")]


async def test_it_is_tried_again_with_what_another_member_provides() -> None:
    lead = [decision("reassign", step=RATE, then_retry=True)]
    coder, found = [PART, "April: 3 [1]. May: 4 [2]."], [reply("May: 4 [2].")]
    frames, it = await run_with(lead, coder, researcher=found)
    second = it.prompts("coder")[1]
    assert "step 1 (researcher: The rate)" in second and "April: 3 [1]." in second
    assert [title for title, _ in statuses(frames)] == ["The rate", "coder's step", "reporter's step"]
    assert gaps(frames) == []


async def test_a_step_that_builds_on_it_waits_for_the_lead() -> None:
    tries: list[str] = []

    async def work(log: Any, task: Any) -> str:
        tries.append(task.title)
        return PART if len(tries) == 1 else "April: 3. May: 4."

    async def build(log: Any, task: Any) -> str:
        return " ".join(one.text for one in task.results)

    ways: dict[str, Any] = {"A": work, "B": build}
    again = [reply('{"decision": "retry", "hint": "again"}')]
    async with team(planned("A"), planned("B", 1), planned("C"), ways=ways, supervisor=again) as (it, log):
        frames = await run(it)
        assert len(it.prompts("supervisor")) == 1
    assert log.count("begin")["A"] == 2 and log.count("begin")["B"] == 1
    assert log.lines.index("begin B") > max(n for n, one in enumerate(log.lines) if one == "end A")
    assert gaps(frames) == []


async def test_the_lead_may_have_the_rest_written_again() -> None:
    lead = [decision("replan", hint="another way")]
    rest = plan(step("researcher", "Look it up"), step("reporter", "Report"), title="Another way")
    answers = script(ONLY, rest, coder=[reply(PART)], supervisor=lead, researcher=[reply("May: 4 [2].")])
    async with scripted_team(answers) as it:
        frames = await it.run()
        assert "the rate of May" in it.prompts("planner")[1]
        assert "April: 3 [1]." in it.prompts("reporter")[0]
    assert gaps(frames) == []


async def test_a_plan_that_ends_with_the_member_answers_with_the_part() -> None:
    answers = script(plan(step("coder")), coder=[reply(PART)], supervisor=[decision("continue_without")])
    async with scripted_team(answers) as it:
        frames = await it.run()
        assert it.prompts("reporter") == []
    assert "April: 3 [1]." in joined_text(frames) and LACKS in joined_text(frames)
    assert gaps(frames) == [GAP]


def partial(*, tries: tuple[str, ...] = (PART,)) -> PlanProgress:
    """Return a plan of a coder and the report after the coder's tries."""
    steps = [PlannedStep(agent_name=name, title=name, description="d") for name in ("coder", "reporter")]
    progress = PlanProgress.of(Plan(title="t", steps=steps))
    for number, text in enumerate(tries, start=1):
        answer = parse_answer(text)
        is_failed = answer.outcome.status == "failed"
        fields = {
            "status": "failed" if is_failed else "completed",
            "attempts": number,
            "result": answer.text,
            "reason": answer.outcome.summary if is_failed else "",
            "outcome": answer.outcome.model_dump(),
        }
        progress = progress.with_attempt(1, fields)
    return progress


def test_what_a_failed_second_try_found_is_kept_too() -> None:
    step = partial(tries=(PART, "STEP FAILED: no site\nMarch: 2 [3].")).steps[0]
    assert step.is_partial and "April: 3" in step.found and "March: 2" in step.found


@pytest.mark.parametrize("kind", ["retry", "reassign"])
def test_a_step_that_is_not_tried_again_after_all_keeps_its_part(kind: Any) -> None:
    new = NewStep(agent_name="researcher", title="The rate", description="d")
    again = LeadDecision(decision=kind, step=new, then_retry=True)
    progress = apply_decision(partial(), partial().steps[0], again)
    for ended in (progress.skipped_to_report("no budget"), prepare_replanning(progress)):
        step = ended.step(1)
        assert step is not None and step.is_partial and step.settled
    cancelled = find_gaps(progress.to_state(), with_open=True)
    assert ("coder", GAP[1]) in cancelled


def test_a_retry_of_the_run_does_it_again_and_keeps_what_it_found() -> None:
    again = retry(partial()).steps[0]
    assert again.status == "not_started" and "April: 3" in again.found


def test_the_next_request_is_told_what_it_lacks() -> None:
    assert "the rate of May" in format_unfinished(partial())
