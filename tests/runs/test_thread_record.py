"""What the user said and decided in a turn is known in the next one, whatever way the turn ended."""

import json
from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.offers import Offer
from maniple.agents.roles import ROLES
from maniple.graph import RunOptions, TeamRules
from maniple.runs import EngineConfig, RunRequest, open_engine
from maniple.scope.inputs import PlanChange
from maniple.store import open_store
from maniple.tools.interaction import ask_tools
from tests.openai_server import call, reply
from tests.runs.test_steering import decided, shown_to, working
from tests.team import plan, scripted_team, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
ANSWER = "2019, the leap of it all"
HELLO = reply("Hello, that is all that I know about it at present.")
COMMAND = call("bash_tool", cmd="rm a")
ALONE = TeamRules(roles={**ROLES, "coder": replace(ROLES["coder"], works_alone=True)})
GATED = [call("python_repl_tool", code="1"), reply("It is 4.")]


def script(*steps, **roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US"), HELLO],
        "planner": [reply(json.dumps(plan(*(steps or (step("coder", "Sum"), step("reporter"))))))],
        "coder": [reply("It is 4.")],
        "researcher": [reply("Found.")],
        "reporter": [reply("# Report")],
        **roles,
    }


async def ask(it, text, **options):
    """Send a request; return the id of its run when it has ended or waits."""
    run = (await it.engine.submit(RunRequest([HumanMessage(text)], "t", **options))).run
    await it.events_of(run.run_id)
    return run.run_id


def newest(it, role):
    return shown_to(it.prompts(role)[-1])


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("No, there is no backup of it", "did not run: No, there is no backup of it"),
        ({"type": "edit", "args": {"cmd": "ls b"}}, 'to bash_tool({"cmd": "ls b"})'),
        ("yes", "The user approved the call bash_tool"),
    ],
)
async def test_what_became_of_an_approval_is_known_in_the_next_turn(tmp_path, answer, shown):
    told = script(coder=[COMMAND, reply("Done.")])
    async with working(tmp_path, told, config=EngineConfig(approval=["bash_tool"])) as it:
        run_id = await ask(it, "Delete a")
        await it.engine.resume(run_id, answer)
        await it.events_of(run_id)
        assert shown in newest(it, "reporter")
        await ask(it, "Why?")
        assert shown in newest(it, "coordinator")


async def test_an_answer_to_a_question_is_known_to_later_steps_and_in_the_next_turns(tmp_path):
    steps = plan(step("coder", "Ask"), step("researcher", "Find"), step("reporter"))
    told = script(
        coordinator=[call("handoff_to_planner"), HELLO, call("handoff_to_planner")],
        planner=[reply(json.dumps(steps))],
        coder=[call("ask_human", question="Which year?"), reply("Asked.")],
    )
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(told, checkpointer=store.checkpointer, toolbox=Offer({"coder": ask_tools(3)})) as it,
        open_engine(it.team, store, kind="server") as engine,
    ):

        async def asked(text):
            run = (await engine.submit(RunRequest([HumanMessage(text)], "t"))).run
            _ = [page async for page in engine.events(run.run_id)]
            return run.run_id

        run_id = await asked("How many?")
        await engine.resume(run_id, ANSWER)
        _ = [page async for page in engine.events(run_id)]
        for prompt in (it.prompts("researcher")[-1], it.prompts("reporter")[-1]):
            assert "Which year?" in prompt
            assert ANSWER in prompt
        await asked("Why?")
        assert ANSWER in it.prompts("coordinator")[-1]
        await asked("And again?")
        assert ANSWER in it.prompts("planner")[-1]
        assert ANSWER in it.prompts("researcher")[-1]


async def test_after_a_cancel_the_next_request_has_what_was_done_and_what_the_user_had_written(tmp_path):
    parallel = [
        {**step("researcher", "Find"), "needs": []},
        {**step("coder", "Sum"), "needs": []},
        step("reporter"),
    ]
    told = script(
        *parallel,
        coordinator=[call("handoff_to_planner")],
        coder=[call("python_repl_tool", code="1"), reply("It is 4.")],
        researcher=[reply("Tea is 4 euros.")],
        supervisor=[decided("answer"), decided("change_plan", changes=[{"action": "skip", "step_id": 1}])],
    )
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find")
        for number, text in enumerate(("Only of 2024, please.", "In euros."), start=1):
            await it.engine.send_message(run_id, text)
            await it.answered(run_id, number)
        await it.engine.cancel(run_id)
        it.gate.set()
        await ask(it, "Go on where you stopped, with my changes.")
        for prompt in (newest(it, "planner"), newest(it, "coder")):
            assert "Only of 2024, please." in prompt
            assert "In euros." in prompt
            assert "Tea is 4 euros." in prompt


async def test_a_retry_after_a_cancel_has_the_changes_of_the_user(tmp_path):
    told = script(
        step("coder", "Sum"),
        step("researcher", "Find"),
        step("reporter"),
        coder=[call("python_repl_tool", code="1"), reply("It is 4.")],
    )
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Compare prices")
        await it.engine.change_plan(run_id, PlanChange("edit", 2, description="Find those of 2024."))
        await it.engine.cancel(run_id)
        it.gate.set()
        await it.engine.retry(run_id)
        await it.events_of(run_id)
        await it.engine.resume(run_id, "run again")  # nobody knows whether the call was done
        await it.events_of(run_id)
        assert "Find those of 2024." in newest(it, "researcher")
        assert (await it.engine.status(run_id)).status == "completed"


async def test_the_record_is_the_same_after_a_restart(tmp_path):
    told = script(coder=[COMMAND, reply("Done.")])
    prompts = []
    for restarts in (False, True):
        folder = tmp_path / str(restarts)
        config = EngineConfig(approval=["bash_tool"])
        async with working(folder, told, config=config) as it:
            run_id = await ask(it, "Delete a")
            await it.engine.resume(run_id, "no, never")
            await it.events_of(run_id)
            if not restarts:
                await ask(it, "Why?")
                prompts.append(it.prompts("coordinator")[-1][1:])
        if restarts:
            async with working(folder, {**told, "coordinator": [HELLO]}, config=config) as it:
                await ask(it, "Why?")
                prompts.append(it.prompts("coordinator")[-1][1:])
    assert prompts[0] == prompts[1]
    assert "no, never" in str(prompts)


async def test_a_turn_in_which_the_user_decided_nothing_adds_nothing(tmp_path):
    told = script(coordinator=[HELLO])
    async with working(tmp_path, told) as it:
        await ask(it, "Hi")
        await ask(it, "Hi again")
        assert [message["role"] for message in it.prompts("coordinator")[-1]] == [
            *("system", "user", "assistant", "user")
        ]


async def test_a_failed_run_is_told_of_in_the_next_turn(tmp_path):
    told = script(coordinator=[{"status": 401, "times": 1}, HELLO], planner=[{"status": 401}])
    async with working(tmp_path, told) as it:
        run_id = await ask(it, "Sum it")
        assert (await it.engine.status(run_id)).status == "failed"
        await ask(it, "What happened?")
        assert "This was not answered" in newest(it, "coordinator")


async def test_a_record_is_kept_when_the_next_run_fails_before_its_first_node_has_ended(tmp_path):
    failing = [call("handoff_to_planner"), {"status": 401, "times": 1}, HELLO]
    told = script(coordinator=failing, coder=[COMMAND, reply("Done.")], researcher=[reply("Found.")])
    async with working(tmp_path, told, config=EngineConfig(approval=["bash_tool"])) as it:
        run_id = await ask(it, "Delete a")
        await it.engine.resume(run_id, "no, never")
        await it.events_of(run_id)
        await ask(it, "Why did you not?")
        await ask(it, "And now?")
        shown = newest(it, "coordinator")
    assert "run: no, never" in shown
    assert shown.count("This was not answered") == 1


async def test_a_run_that_fails_is_not_given_the_results_of_the_run_before_it(tmp_path):
    failing = [call("handoff_to_planner"), {"status": 401, "times": 1}, HELLO]
    async with working(tmp_path, script(coordinator=failing, coder=[reply("It is 4.")])) as it:
        await ask(it, "Sum it")
        await ask(it, "Why?")
        await ask(it, "And now?")
        assert "Done in it" not in newest(it, "coordinator")


async def test_a_request_that_was_cancelled_before_the_team_began_is_known(tmp_path):
    told = script(coordinator=[call("handoff_to_planner")], coder=GATED)
    async with working(tmp_path, told) as it:
        first = await it.begin("Sum it")
        queued = await it.engine.submit(RunRequest([HumanMessage("Translate it into Thai.")], "t"))
        await it.engine.cancel(queued.run.run_id)
        await it.ended(first)
        await ask(it, "Go on.")
        for role in ("coordinator", "planner", "coder"):
            shown = newest(it, role)
            assert shown.count("Translate it into Thai.") == 1
            assert "cancelled this before it" in shown
        history = newest(it, "coder")
        assert history.index("Sum it") < history.index("Thai")


async def test_a_cancelled_request_is_said_to_be_cancelled_once(tmp_path):
    asking = script(coordinator=[call("ask_user", question="Of which year?"), HELLO])
    async with working(tmp_path, asking, rules=TeamRules(max_clarifications=1)) as it:
        await it.engine.cancel(await ask(it, "Compare prices"))
        await ask(it, "Never mind. Hello!")
        assert newest(it, "coordinator").count("cancelled") == 1


async def test_a_request_that_was_cancelled_again_after_a_retry_is_said_to_be_cancelled_twice(tmp_path):
    told = script(coordinator=[call("handoff_to_planner"), HELLO], coder=GATED)
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Sum it")
        await it.engine.cancel(run_id)
        await it.ended(run_id)
        await it.engine.retry(run_id)
        await it.engine.cancel(run_id)
        await it.ended(run_id)
        await ask(it, "Hello!")
        assert newest(it, "coordinator").count("cancelled") == 2


async def test_a_run_that_was_rolled_back_is_not_known(tmp_path):
    told = script(coordinator=[call("handoff_to_planner")], coder=GATED)
    async with working(tmp_path, told) as it:
        first = await it.begin("Sum it")
        await it.engine.change_plan(first, PlanChange("edit", 2, description="Find those of 2024."))
        await ask(it, "Count it", when_busy="rollback")
        await ask(it, "Go on.")
        for role in ("coordinator", "planner", "coder"):
            assert "Sum it" not in newest(it, role)
            assert "2024" not in newest(it, role)


async def test_an_answer_about_the_request_and_a_word_about_the_plan_are_shown_once(tmp_path):
    told = script(
        coordinator=[call("ask_user", question="Of which year?"), *[call("handoff_to_planner")] * 2],
        planner=[reply(json.dumps(plan(step("researcher", "Find"), step("reporter"))))],
    )
    async with working(tmp_path, told, rules=TeamRules(max_clarifications=1)) as it:
        run_id = await ask(it, "Compare prices", options=RunOptions(auto_accepted_plan=False))
        for answer in ("Of 2024", "Rather without cocoa", "accept"):
            await it.engine.resume(run_id, answer)
            await it.events_of(run_id)
        own = newest(it, "researcher")
        assert [own.count(one) for one in ("Compare prices", "Of 2024", "Rather without")] == [1, 1, 1]
        await ask(it, "And in Thailand?")
        for role in ("coordinator", "planner", "researcher"):
            later = newest(it, role)
            assert [later.count(one) for one in ("Of 2024", "Rather without")] == [1, 1], role
            assert "Of which year?" in later


async def test_what_the_user_changed_in_the_review_of_the_plan_is_known_word_for_word(tmp_path):
    steps = plan(step("researcher", "Find", "Find all."), step("reporter"))
    told = script(coordinator=[call("handoff_to_planner")], planner=[reply(json.dumps(steps))])
    async with working(tmp_path, told) as it:
        run_id = await ask(it, "Compare prices", options=RunOptions(auto_accepted_plan=False))
        edited = plan(step("researcher", "Find", "Find those of 2024."), step("reporter"))
        await it.engine.resume(run_id, edited)
        await it.events_of(run_id)
        await ask(it, "And now?")
        assert "Find those of 2024." in newest(it, "coordinator")


async def test_a_message_that_became_a_run_is_shown_once(tmp_path):
    told = script(coordinator=[call("handoff_to_planner")], coder=GATED, supervisor=[decided("next_run")])
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Sum it")
        sent = await it.engine.send_message(run_id, "Translate it into Thai.")
        await it.answered(run_id)
        await it.ended(run_id)
        await it.events_of(sent.message_id)
        await ask(it, "Go on.")
        assert newest(it, "coder").count("Translate it into Thai.") == 1


async def test_a_request_after_a_question_that_was_cancelled_is_not_its_answer(tmp_path):
    told = script(coordinator=[call("ask_user", question="Of which year?"), call("handoff_to_planner")])
    async with working(tmp_path, told, rules=TeamRules(max_clarifications=1)) as it:
        await it.engine.cancel(await ask(it, "Compare prices"))
        await ask(it, "What is 2 + 2?")
        shown = newest(it, "coder")
    assert "Request: What is 2 + 2?\n" in shown
    assert shown.count("Compare prices") == 1


async def test_what_the_coordinator_said_and_earlier_reports_are_known_to_members(tmp_path):
    hands_over = call("handoff_to_planner")
    told = script(
        coordinator=[hands_over, reply("It is *punktualny*."), hands_over, hands_over],
        reporter=[reply("# Trains\n\nThey moved on Monday."), reply("# Newest")],
    )
    async with working(tmp_path, told) as it:
        for text in ("Trains?", "What is the Polish word for punctual?", "Save the word", "And why?"):
            await ask(it, text)
        first, last = (shown_to(it.prompts("coder")[at]) for at in (1, -1))
    assert first.count("*punktualny*") == last.count("*punktualny*") == 1
    assert "They moved on Monday." in first
    assert "reports/1.md" in last and "They moved on Monday." in last
    assert last.count("# Newest") == 1


async def test_an_agent_that_answers_alone_knows_what_the_user_decided_before(tmp_path):
    told = script(coder=[COMMAND, reply("It was not done."), reply("You rejected it.")])
    options = {"options": RunOptions(agent="coder")}
    config = EngineConfig(approval=["bash_tool"])
    async with working(tmp_path, told, config=config, rules=ALONE) as it:
        run_id = await ask(it, "Delete a", **options)
        await it.engine.resume(run_id, "No, there is no backup of it")
        await it.events_of(run_id)
        await ask(it, "What did I decide?", **options)
        assert "did not run: No, there is no backup of it" in newest(it, "coder")


@pytest.mark.parametrize("decision", ["answer", "change_plan", "pass_on", "next_run"])
async def test_what_the_user_wrote_to_the_run_reaches_all_later_members_once(tmp_path, decision):
    steps = [step("coder", "Sum"), step("researcher", "Find"), step("reporter")]
    change = {"action": "edit", "step_id": 2, "description": "Find it in the atlas."}
    changes = [change] if decision == "change_plan" else []
    answer = decided(decision, changes=changes, reply="I see to it at once.")
    told = script(*steps, coder=GATED, supervisor=[answer])
    async with working(tmp_path, told) as it:
        run_id = await it.begin()
        await it.engine.send_message(run_id, "Leave out 2024.")
        await it.answered(run_id)
        await it.ended(run_id)
        for prompt in (it.prompts("researcher")[0], it.prompts("reporter")[0]):
            assert shown_to(prompt).count("Leave out 2024.") == 1
            assert shown_to(prompt).count("I see to it") == (0 if decision == "pass_on" else 1)


async def test_the_lead_knows_at_a_failure_what_the_user_wrote_before(tmp_path):
    go_on = {"decision": "continue_without", "hint": None, "step": None, "then_retry": None}
    failing = [GATED[0], reply("STEP FAILED: There is none.")]
    told = script(coder=failing, supervisor=[decided("answer"), reply(json.dumps(go_on))])
    async with working(tmp_path, told) as it:
        run_id = await it.begin()
        await it.engine.send_message(run_id, "Leave out 2024.")
        await it.answered(run_id)
        await it.ended(run_id)
        assert newest(it, "supervisor").count("Leave out 2024.") == 1


async def test_a_message_is_shown_once_to_an_agent_that_answers_alone_and_is_retried(tmp_path):
    coder = [*GATED[:1], {"status": 401}, reply("It is 4.")]
    async with working(tmp_path, script(coder=coder), rules=ALONE) as it:
        run_id = await it.begin(agent="coder")
        await it.engine.send_message(run_id, "Only of 2024.")
        await it.answered(run_id)
        await it.ended(run_id)
        await it.engine.retry(run_id)
        await it.events_of(run_id)
        assert str(it.prompts("coder")[-1]).count("Only of 2024.") == 1
