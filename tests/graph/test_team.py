"""The team at work: from a question to a report, over a real HTTP endpoint that follows a script."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from maniple.agents.briefing import format_removed
from maniple.agents.task import BY_USER_LINE
from maniple.graph import Plan, TeamRules
from maniple.graph.written_plan import normalize_plan
from tests.openai_server import SIMPLE, call, reply
from tests.team import agents, data, joined_text, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
HANDOFF = call("handoff_to_planner", locale="en-US")
REPORT = reply("# Report\n\nThe answer is 4.")
CODER = [call("python_repl_tool", code="print(1+3)"), reply("It is 4.")]


def script(*steps, coder=CODER, planner=None, **roles):
    replies = planner or [reply(json.dumps(plan(*steps)))]
    return {"coordinator": [HANDOFF], "planner": replies, "coder": coder, "reporter": [REPORT], **roles}


WORK = script(step("coder"), step("reporter"))


async def test_a_question_becomes_a_report():
    async with scripted_team(SIMPLE) as it:
        frames = await it.run()
        assert it.server.stats["calls"] == 5
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert data(frames, "tool_call")[0]["tool_input"] == {"code": "print(1+3)"}
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
    assert status(frames) == "completed"
    assert "4" in frames[-1][1]["messages"][-1]["content"]
    assert [s["status"] for s in data(frames, "plan")[-1]["steps"]] == ["completed", "completed"]


@pytest.mark.parametrize("chunks", [["Hello!"], ["He", "llo", "!"], ["h", "ello", " there, how are you"]])
async def test_small_talk_is_answered_by_the_coordinator_alone(chunks):
    async with scripted_team({"coordinator": [{"chunks": chunks}]}) as it:
        frames = await it.run("hi")
        assert it.server.stats["calls"] == 1
    assert joined_text(frames) == "".join(chunks)
    told = " ".join(name for name, _ in frames if name not in ("message", "usage"))
    assert told == "run start_of_agent start_of_llm end_of_llm end_of_agent run_status final_session_state"
    assert frames[-1][1]["messages"][-1] == {"role": "assistant", "content": "".join(chunks)}


@pytest.mark.parametrize(
    "handoff",
    [
        HANDOFF,
        {"chunks": ["handoff_to_planner()"]},
        {"chunks": ["Handoff_To_Planner"]},
        {"chunks": ["`handoff\\_to\\_planner`"]},
        {"chunks": ["hand", "off_to_", "planner", "()"]},
        {"chunks": ["```", "python\nhandoff_to_planner()\n", "```"]},
        {"chunks": ["I will hand this over: ", "handoff_to_planner()"]},
        {"text": "Let me see.", **call("handoff_to_planner", locale="en")},
        reply(""),
    ],
)
async def test_a_hand_off_is_understood_in_every_form_and_never_shown(handoff):
    async with scripted_team({**WORK, "coordinator": [handoff]}) as it:
        frames = await it.run()
    before_planner = frames[: [name for name, _ in frames].index("start_of_workflow")]
    assert joined_text(before_planner) == ""
    assert status(frames) == "completed"


async def test_steps_stay_apart_as_they_were_written_and_the_reporter_is_last():
    wild = script(step("reporter"), step("coder", "One", "first"), step("coder", "Two", "second"))
    async with scripted_team(wild) as it:
        frames = await it.run()
        first, second = (it.prompts("coder")[at] for at in (0, -1))
    assert "Your step: One\nfirst" in first
    assert "Your step: Two\nsecond" in second
    steps = data(frames, "plan")[0]["steps"]
    assert [(s["agent_name"], s["title"]) for s in steps] == [
        ("coder", "One"),
        ("coder", "Two"),
        ("reporter", "reporter's step"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```json\n" + json.dumps(plan(step("coder"), step("reporter"))) + "\n```",
        "Here is the plan: " + json.dumps(plan(step("coder"), step("reporter"))) + " Good luck!",
        json.dumps(plan(step("coder"), step("reporter")))[:-2],
        json.dumps(plan(step("coder"), step("reporter"))).replace('"', "'"),
        f"As asked [1], for {{team}}:\n```json\n{json.dumps(plan(step('coder')))}\n```\nSee [2].",
        f"For {{team}} [1]: {json.dumps(plan(step('coder')))} See [2] and {{it}}.",
        f"For {{team}}:\n{plan(step('coder') | {'note': None})}\nSee [2].",
        f"For {{team}}:\n{json.dumps(plan(step('coder')))[:-2]}, // the last\n],}}\nSee [2].",
        f'Not {{"a": 1}} but:\n```\n{plan(step("coder") | {"note": None})}\n```\nSee [2].',
    ],
)
async def test_a_plan_that_is_nearly_json_is_repaired(text):
    async with scripted_team(script(planner=[reply(text)])) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    shown = json.loads(joined_text(frames).split("It is 4.")[0])
    assert shown["title"] == "The plan"


async def test_an_unusable_plan_is_requested_once_more_with_its_error():
    strange = reply(json.dumps(plan(step("chef"), step("reporter"))))
    good = reply(json.dumps(plan(step("coder"), step("reporter"))))
    async with scripted_team(script(planner=[strange, good])) as it:
        frames = await it.run()
        assert "agent_name chef is not on the team; use only researcher, coder" in it.prompts("planner")[1]
    assert status(frames) == "completed"


@pytest.mark.parametrize("unusable", ["I'd rather not.", '{"title": "Nothing", "steps": []}'])
async def test_after_two_unusable_plans_one_member_works_on_the_whole_request(unusable):
    async with scripted_team(script(planner=[reply(unusable)])) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 2
        assert it.prompts("coder")[0].count("1+3=?") == 2, "in the request and in the step"
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert "No usable plan" in data(frames, "plan")[0]["title"]
    assert "coder" in data(frames, "plan")[0]["title"]
    assert status(frames) == "completed"


@pytest.mark.parametrize(
    ("request_", "planned", "member"),
    [
        ("Who won the last election?", "No.", "researcher"),
        ("Draw the curve of a sine.", "No.", "coder"),
        ("What is (17 + 4) * 3?", "No.", "coder"),
        ("Berechne mit Python die Summe.", "No.", "coder"),
        ("Summarise https://a.test/b.html for me.", "No.", "researcher"),
        ("How many rows has sales.csv?", "No.", "coder"),
        ("Is it big?", "The coder should count it.", "coder"),
        ("Let the coder see what it costs.", "No.", "coder"),
        ("Who is it?", '{"title": "It", "steps": [{"agent_name": "chef", "title": "Cook"}]}', "researcher"),
    ],
)
async def test_the_member_for_a_request_without_a_plan_fits_the_request(request_, planned, member):
    workers = {name: [reply("It is 4.")] for name in ("researcher", "coder")}
    async with scripted_team({**script(planner=[reply(planned)]), **workers}) as it:
        frames = await it.run(request_)
    assert data(frames, "plan")[0]["steps"][0]["agent_name"] == member
    assert member in data(frames, "plan")[0]["title"]


LOOSE_PLANS = {
    "a bare list": [step("coder"), step("reporter")],
    "steps as strings": {"title": "Sum", "steps": ["coder: add 1 and 3", "reporter: report it"]},
    "names in other letters": plan(step("Coder "), step("REPORTER")),
    "no report": plan(step("researcher", "Find") | {"needs": []}, step("coder") | {"needs": []}),
    "a last step that was cut off": plan(step("coder"), {"agent_name": "repor"}),
    "no title": {"steps": [step("coder"), step("reporter")]},
    "a wrapper": {"plan": plan(step("coder"), step("reporter"))},
    "a wrapper of text": {"content": json.dumps(plan(step("coder"), step("reporter")))},
    "a wrapper with a fence": {"content": f"```json\n{json.dumps(plan(step('coder')))}\n```"},
    "a wrapped list": {"response": [step("coder"), step("reporter")]},
    "a list with the plan": [plan(step("coder"), step("reporter"))],
    "agent and tasks": {"goal": "Sum", "tasks": [{"agent": "coder", "task": "Add 1 and 3"}]},
    "assignee and plan": {"plan": [{"assignee": "coder", "step": "Add", "details": "Add 1 and 3"}]},
    "role and numbers": {
        "steps": [{"step": 1, "role": "coder", "name": "Add", "description": "Add 1 and 3"}]
    },
    "a name alone": {"steps": [{"name": "coder", "description": "Add 1 and 3"}]},
    "a step without description": {"title": "T", "steps": [{"agent_name": "coder", "title": "Add"}]},
}


@pytest.mark.parametrize("loose", LOOSE_PLANS.values(), ids=LOOSE_PLANS.keys())
async def test_a_plan_in_a_loose_form_is_understood_without_a_second_call(loose):
    answers = script(planner=[reply(json.dumps(loose))], researcher=[reply("Found.")])
    async with scripted_team(answers) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    assert agents(frames)[-2:] == ["coder", "reporter"]
    assert status(frames) == "completed"


async def test_the_report_is_not_counted_among_the_steps_that_a_plan_may_have():
    long = plan(*(step("coder", f"Part {number}") for number in range(3)), step("reporter"))
    async with scripted_team(
        script(planner=[reply(json.dumps(long))]), rules=TeamRules(max_plan_steps=3)
    ) as it:
        await it.run()
        assert len(it.prompts("planner")) == 1


async def test_a_plan_that_ends_with_a_member_is_answered_by_it_without_a_call_for_the_report():
    async with scripted_team(script(planner=[reply(json.dumps(plan(step("coder"))))])) as it:
        frames = await it.run()
        assert it.prompts("reporter") == []
        assert "your result is the answer that the" in it.prompts("coder")[0]
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    final = data(frames, "final_session_state")[0]["messages"][-1]["content"]
    assert final == "It is 4."
    assert status(frames) == "completed"
    for one in data(frames, "plan"):
        assert [step.get("repeats") for step in one["steps"]] == [None, True]


async def test_when_the_answering_member_fails_the_reporter_writes_what_is_missing():
    failing = {"coder": [reply("STEP FAILED: no data")], "reporter": [reply("# Nothing\n\nNo data.")]}
    rules = TeamRules(step_retries=0, max_plan_adaptations=0)
    async with scripted_team(
        script(planner=[reply(json.dumps(plan(step("coder"))))], **failing), rules=rules
    ) as it:
        frames = await it.run()
        assert len(it.prompts("reporter")) == 1
    assert data(frames, "final_session_state")[0]["messages"][-1]["content"].startswith("# Nothing")
    assert "repeats" not in data(frames, "plan")[-1]["steps"][1]


@pytest.mark.parametrize(
    ("needs", "is_answered"),
    [
        ([[]], True),
        ([None, None], True),
        ([[], [1]], True),
        ([[], []], False),
        ([[], [1], [1]], False),
        ([[], [1], [2]], True),
        ([[], [], [1, 2]], True),
    ],
)
def test_a_report_is_added_where_the_last_step_does_not_build_on_all_others(needs, is_answered):
    steps = [step("coder") | {"needs": one} for one in needs]
    normal = normalize_plan(Plan.model_validate(plan(*steps)), ["coder", "reporter"], 12)
    assert [one.agent_name for one in normal.steps] == [*["coder"] * len(needs), "reporter"]
    assert bool(normal.steps[-1].repeats) is is_answered


async def test_only_chosen_members_are_offered_and_accepted():
    plans = [
        reply(json.dumps(plan(step("researcher"), step("reporter")))),
        reply(json.dumps(plan(step("coder")))),
    ]
    async with scripted_team(script(planner=plans)) as it:
        frames = await it.run(team_members=("coder",))
        assert "researcher" not in it.prompts("planner")[0]
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]


async def test_a_tool_that_raises_is_reported_to_the_model_and_to_the_client():
    coder = [call("python_repl_tool", code="boom"), reply("It could not be run.")]
    async with scripted_team({**WORK, "coder": coder}) as it:
        frames = await it.run()
        assert "the tool is broken" in it.prompts("coder")[1]
    assert "the tool is broken" in data(frames, "tool_call_result")[0]["tool_result"]
    assert status(frames) == "completed"


async def test_wrong_arguments_are_reported_to_the_model_and_in_the_same_words_to_the_client():
    coder = [call("python_repl_tool", program="1"), reply("It is 4.")]
    async with scripted_team({**WORK, "coder": coder}) as it:
        frames = await it.run()
        told = data(frames, "tool_call_result")[0]["tool_result"]
        assert told in it.prompts("coder")[1]
    assert "code: Field required" in told
    assert status(frames) == "completed"


async def test_a_failed_step_is_retried_once_and_reported_to_the_reporter():
    failing = {**WORK, "coder": [reply("STEP FAILED: no data")], "supervisor": [reply('{"next": "coder"}')]}
    async with scripted_team(failing, rules=TeamRules(max_plan_adaptations=0)) as it:
        frames = await it.run()
        assert len(it.prompts("coder")) == 2
        assert "An earlier try failed: no data" in it.prompts("coder")[1]
        assert 'MISSING: the step "coder\'s step" was not completed: no data' in it.prompts("reporter")[0]
    assert status(frames) == "completed"
    assert [s["status"] for s in data(frames, "plan")[-1]["steps"]] == ["failed", "completed"]


async def test_a_supervisor_that_always_delegates_ends():
    roles = {"researcher": [reply("STEP FAILED: no")], "supervisor": [reply('{"next": "researcher"}')]}
    async with scripted_team({**WORK, "coder": [reply("STEP FAILED: no")], **roles}) as it:
        frames = await it.run()
        assert it.server.stats["calls"] < 40
    assert agents(frames)[-1] == "reporter"
    assert status(frames) == "completed"


async def test_the_setting_makes_the_supervisor_decide_after_each_step():
    roles = {
        "supervisor": [reply('{"next": "coder"}'), reply('{"next": "reporter"}'), reply('{"next": "FINISH"}')]
    }
    async with scripted_team({**WORK, **roles}, rules=TeamRules(supervisor="always")) as it:
        frames = await it.run()
        prompts = it.prompts("supervisor")
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert len(prompts) == 2, "after the report there is nothing to ask"
    assert "<response>\nIt is 4.\n</response>" in prompts[1]


async def test_deep_thinking_uses_the_reasoning_model_and_streams_its_thoughts():
    thinking = reply(json.dumps(plan(step("coder"))), reasoning=["Let me ", "think."])
    async with scripted_team(script(planner=[thinking])) as it:
        frames = await it.run(deep_thinking_mode=True)
        assert it.server.requests[1]["model"] == "deep"
    assert joined_text(frames, "reasoning_content") == "Let me think."


async def test_a_search_before_planning_is_shown_to_the_planner():
    class Search:
        async def search(self, query, *, limit):
            from maniple.search import SearchHit

            return [SearchHit("Sums for all", "https://e.test", f"about {query}", None)]

    async with scripted_team(WORK, search=Search()) as it:
        await it.run(search_before_planning=True)
        assert "Sums for all (https://e.test): about 1+3=?" in it.prompts("planner")[0]


@pytest.mark.parametrize("role", ["coordinator", "planner"])
@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 401}, {"text": "a b c", "cut_after": 1}])
async def test_a_model_that_fails_before_there_is_a_plan_ends_the_run_with_an_error(role, fault):
    async with scripted_team({**WORK, role: [fault]}) as it:
        frames = await it.run()
    error = data(frames, "error")[0]
    assert error["agent_name"] == role
    assert "Model 'm' at http://127.0.0.1" in error["message"]
    assert [name for name, _ in frames[-3:]] == ["run_status", "end_of_workflow", "final_session_state"]
    assert frames[-1][1]["messages"][0] == {"role": "user", "content": "1+3=?"}


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 401}, {"text": "a b c", "cut_after": 1}])
@pytest.mark.parametrize("lead", [reply('{"decision": "continue_without"}'), {"status": 500}])
async def test_a_member_whose_model_fails_leaves_a_gap_in_the_report(fault, lead):
    steps = plan(step("researcher"), step("coder"), step("reporter"))
    work = {**WORK, "planner": [reply(json.dumps(steps))], "researcher": [reply("Found.")]}
    async with scripted_team({**work, "coder": [fault], "supervisor": [lead]}) as it:
        frames = await it.run()
        assert "Found." in it.prompts("reporter")[0]
    assert data(frames, "error") == []
    ended = data(frames, "run_status")[0]
    assert ended["status"] == "completed"
    assert [gap["step"] for gap in ended["gaps"]] == ["coder's step"]
    assert "127.0.0.1" not in json.dumps(ended["gaps"]) + joined_text(frames)
    assert frames[-1][1]["messages"][-1]["content"].startswith("# Report")


async def test_with_no_model_at_all_what_is_done_is_reported_by_code():
    away = {"status": 500}
    steps = plan(step("researcher"), step("coder"), step("coder", "Draw"), step("reporter"))
    work = {**WORK, "planner": [reply(json.dumps(steps))], "researcher": [reply("Tea costs 3 euros.")]}
    async with scripted_team({**work, "coder": [away], "supervisor": [away], "reporter": [away]}) as it:
        frames = await it.run()
        assert it.server.stats["by_role"]["coder"] == 1, "the others would fail likewise"
    ended = data(frames, "run_status")[0]
    assert ended["status"] == "failed"
    assert [gap["step"] for gap in ended["gaps"]] == ["coder's step", "Draw", "reporter's step"]
    assert "Tea costs 3 euros." in joined_text(frames)


async def test_a_replanning_without_an_answer_leaves_the_plan_unchanged():
    steps = plan(step("coder"), step("coder", "Draw"), step("reporter"))
    work = {**WORK, "planner": [reply(json.dumps(steps)), {"status": 500}]}
    lead = [reply('{"decision": "replan"}')]
    coder = [reply("STEP FAILED: no data"), reply("Drawn.")]
    async with scripted_team({**work, "coder": coder, "supervisor": lead}) as it:
        frames = await it.run()
    assert [one["status"] for one in data(frames, "plan")[-1]["steps"]] == [
        "failed",
        "completed",
        "completed",
    ]
    assert data(frames, "run_status")[0]["status"] == "completed"


async def test_a_defect_in_a_member_fails_its_step_alone(monkeypatch):
    from maniple.agents.react import ReactAgent

    async def break_down(self, task):
        if self.role.name == "coder":
            raise KeyError("a defect")
        return await work(self, task)

    work = ReactAgent.work
    monkeypatch.setattr(ReactAgent, "work", break_down)
    lead = [reply('{"decision": "continue_without"}')]
    async with scripted_team({**WORK, "supervisor": lead}) as it:
        frames = await it.run()
    ended = data(frames, "run_status")[0]
    assert (ended["status"], len(ended["gaps"])) == ("completed", 1)
    assert "KeyError" not in json.dumps(ended) + joined_text(frames)


@pytest.mark.parametrize(
    ("fault", "code", "retryable"),
    [
        ({"status": 500}, "model_overloaded", True),
        ({"status": 401}, "model_auth", False),
        ({"text": "a b c", "cut_after": 1}, "model_stream_cut", True),
    ],
)
async def test_a_reporter_whose_model_fails_leaves_the_results_and_fails_the_run(fault, code, retryable):
    async with scripted_team({**WORK, "reporter": [fault]}) as it:
        frames = await it.run()
    [error] = data(frames, "error")
    assert (error["agent_name"], error["code"], error["retryable"]) == ("reporter", code, retryable)
    ended = data(frames, "run_status")[0]
    assert ended["status"] == "failed"
    assert [gap["step"] for gap in ended["gaps"]] == ["reporter's step"]
    assert "127.0.0.1" not in json.dumps([ended["gaps"], error]) + joined_text(frames)
    assert "It is 4." in frames[-1][1]["messages"][-1]["content"]


async def test_a_reporter_whose_model_fails_without_any_result_ends_the_run_with_an_error():
    alone = {**WORK, "planner": [reply(json.dumps(plan(step("reporter"))))], "reporter": [{"status": 500}]}
    async with scripted_team(alone) as it:
        frames = await it.run()
    error = data(frames, "error")[0]
    assert (error["agent_name"], error["code"], error["retryable"]) == ("reporter", "model_overloaded", True)
    assert data(frames, "run_status") == [{"status": "failed"}]


async def test_an_answer_that_breaks_off_once_is_repaired():
    broken = {"chunks": ["# Rep", "ort ", "body"], "cut_after": 2, "times": 1}
    async with scripted_team({**WORK, "reporter": [broken, {"chunks": ["# Report", " body"]}]}) as it:
        frames = await it.run()
    assert joined_text(frames).endswith("# Report body")
    assert frames[-1][1]["messages"][-1]["content"] == "# Report body"


@pytest.mark.parametrize("rejected", [["response_format"], ["tools", "response_format"], ["stream_options"]])
async def test_endpoints_that_reject_features_are_served_all_the_same(rejected):
    coder = [call("python_repl_tool", code="print(1+3)"), reply("It is 4.")]
    if "tools" in rejected:
        coder = [
            reply('```json\n{"name": "python_repl_tool", "arguments": {"code": "print(1+3)"}}\n```'),
            reply("It is 4."),
        ]
    roles = {"coordinator": [reply("handoff_to_planner()")], "coder": coder, "reject": rejected}
    async with scripted_team({**WORK, **roles}) as it:
        frames = await it.run()
        first = it.server.stats["calls"]
        await it.run()
        assert it.server.stats["calls"] - first < first, "what was learned is not asked twice"
    assert status(frames) == "completed"
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"


async def test_a_conversation_goes_on_on_its_thread():
    coordinator = [HANDOFF, reply("It was 4.")]
    async with scripted_team({**WORK, "coordinator": coordinator}) as it:
        await it.run(thread_id="t")
        frames = await it.run("What was it?", thread_id="t")
        assert "The answer is 4." in it.prompts("coordinator")[1]
    assert joined_text(frames) == "It was 4."


async def test_a_plan_waits_for_review_and_goes_on_when_accepted():
    async with scripted_team(WORK) as it:
        paused = await it.run(thread_id="t", auto_accepted_plan=False)
        frames = await it.run("accept", thread_id="t", auto_accepted_plan=False)
    interrupt = data(paused, "interrupt")[0]
    assert (interrupt["kind"], interrupt["options"]) == ("plan_review", ["accept", "edit", "reply"])
    assert interrupt["payload"]["plan"]["title"] == "The plan"
    assert status(paused) == "interrupted"
    assert agents(frames) == ["coder", "reporter"]
    assert status(frames) == "completed"


async def test_a_wish_in_words_sends_the_plan_back():
    plans = [
        reply(json.dumps(plan(step("coder")))),
        reply(json.dumps(plan(step("researcher"), step("reporter"), title="Better"))),
    ]
    async with scripted_team(script(planner=plans, researcher=[reply("found")])) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        again = await it.run("Search instead", thread_id="t", auto_accepted_plan=False)
        assert "Change it as the user says: Search instead" in it.prompts("planner")[1]
        await it.run("and in French", thread_id="t", auto_accepted_plan=False)
        assert "Search instead" in it.prompts("planner")[2]
        frames = await it.run("ok", thread_id="t", auto_accepted_plan=False)
        for role in ("researcher", "reporter"):
            assert "Search instead" in it.prompts(role)[0], "who does the work knows of the wish"
            assert "and in French" in it.prompts(role)[0]
        await it.run("What did I ask for?", thread_id="t")
        assert "and in French" in it.prompts("coordinator")[1]
    said_by_user = [one["content"] for one in frames[-1][1]["messages"] if one["role"] == "user"]
    assert {"Search instead", "and in French"} <= set(said_by_user)
    assert data(again, "interrupt")[0]["payload"]["plan"]["title"] == "Better"
    assert agents(frames) == ["researcher", "reporter"]


_QUESTION = "Is deleting undoable?"
_NO = "No: step 1 deletes it for good."


def _waiting_answer(*, is_question, text=""):
    return reply(json.dumps({"is_question": is_question, "reply": text}))


async def test_a_question_about_a_plan_is_answered_and_the_plan_waits_on():
    lead = [_waiting_answer(is_question=True, text=_NO)]
    async with scripted_team({**WORK, "supervisor": lead}) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        answered = await it.run(_QUESTION, thread_id="t", auto_accepted_plan=False)
        shown = it.prompts("supervisor")[0]
        assert len(it.prompts("planner")) == 1
        frames = await it.run("accept", thread_id="t", auto_accepted_plan=False)
        await it.run("What did I ask?", thread_id="t")
        assert _NO in it.prompts("coordinator")[1]
    said = data(answered, "user_message_answer")
    assert [(one["disposition"], one["content"]) for one in said] == [("answered", _NO)]
    assert data(answered, "interrupt")[0]["payload"]["plan"]["title"] == "The plan"
    assert status(answered) == "interrupted"
    assert _QUESTION in shown
    assert status(frames) == "completed"


async def test_a_wish_in_the_form_of_a_question_changes_the_plan():
    plans = [reply(json.dumps(plan(step("coder")))), reply(json.dumps(plan(step("coder"), step("reporter"))))]
    roles = {"supervisor": [_waiting_answer(is_question=False)]}
    async with scripted_team(script(planner=plans, **roles)) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        again = await it.run("Could you add a report?", thread_id="t", auto_accepted_plan=False)
        assert len(it.prompts("planner")) == 2
    assert len(data(again, "interrupt")[0]["payload"]["plan"]["steps"]) == 2
    assert not data(again, "user_message_answer")


@pytest.mark.parametrize(("text", "is_answered"), [(_QUESTION, True), ("Could you add a report?", False)])
async def test_the_form_of_a_question_decides_without_a_usable_answer_of_the_lead(text, is_answered):
    async with scripted_team({**WORK, "supervisor": [reply("no JSON")]}) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        again = await it.run(text, thread_id="t", auto_accepted_plan=False)
        assert len(it.prompts("planner")) == (1 if is_answered else 2)
    assert data(again, "user_message_answer")
    assert status(again) == "interrupted"


async def test_a_wish_that_changes_nothing_says_so_with_the_planners_thought():
    thought = "The coder checks it already."
    same = {**plan(step("coder")), "thought": thought}
    async with scripted_team(script(planner=[reply(json.dumps(same))])) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        again = await it.run("Check it, too", thread_id="t", auto_accepted_plan=False)
    said = data(again, "user_message_answer")[0]["content"]
    assert said.endswith(thought)
    assert status(again) == "interrupted"


async def test_an_edited_plan_is_what_is_done():
    async with scripted_team({**WORK, "researcher": [reply("found")]}) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        edited = json.dumps(plan(step("researcher"), step("reporter"), title="Mine"))
        frames = await it.run(edited, thread_id="t", auto_accepted_plan=False)
    assert agents(frames) == ["researcher", "reporter"]
    assert data(frames, "plan")[0]["title"] == "Mine"


async def test_members_see_the_steps_that_the_user_removed_or_changed():
    titles = [
        ("researcher", "Find"),
        ("researcher", "Ask the embassy"),
        ("coder", "Sum"),
        ("reporter", "Report"),
    ]
    planned = [step(*one) for one in titles]
    edited = [planned[0], {**planned[2], "description": "Sum it in euros."}, planned[3]]
    roles = {"researcher": [reply("Found.")], "coder": [reply("It is 4.")]}
    async with scripted_team(script(planner=[reply(json.dumps(plan(*planned)))], **roles)) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        frames = await it.run(json.dumps(plan(*edited)), thread_id="t", auto_accepted_plan=False)
        prompts = {role: it.prompts(role)[0] for role in ("researcher", "coder", "reporter")}
    assert status(frames) == "completed"
    assert all(format_removed(["Ask the embassy"]) in prompt for prompt in prompts.values())
    assert f"Sum it in euros.\n{BY_USER_LINE}" in prompts["coder"]
    assert BY_USER_LINE not in prompts["researcher"] + prompts["reporter"]


async def test_the_lead_sees_the_steps_that_the_user_removed():
    planned = [step("researcher", "Ask the embassy"), step("coder", "Sum"), step("reporter", "Report")]
    roles = {
        "coder": [reply("STEP FAILED: no figures")],
        "supervisor": [reply('{"decision": "continue_without", "hint": null, "step": null}')],
    }
    async with scripted_team(script(planner=[reply(json.dumps(plan(*planned)))], **roles)) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        await it.run(json.dumps(plan(*planned[1:])), thread_id="t", auto_accepted_plan=False)
        assert format_removed(["Ask the embassy"]) in it.prompts("supervisor")[0]


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (json.dumps(plan(step("reseacher"))), "agent_name reseacher is not on the team; use only"),
        ('{"title": "", "steps": []}', "the plan has no step"),
        ("", 'answer "accept", send the edited plan'),
    ],
)
async def test_an_invalid_edited_plan_is_reviewed_again(answer, wrong):
    async with scripted_team(WORK) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        again = await it.run(answer, thread_id="t", auto_accepted_plan=False)
        frames = await it.run("accept", thread_id="t", auto_accepted_plan=False)
        assert len(it.prompts("planner")) == 1
    asked = data(again, "interrupt")[0]["payload"]
    assert wrong in asked["error"]
    assert asked["plan"]["title"] == "The plan"
    assert status(frames) == "completed"


async def test_the_history_that_the_old_client_sends_back_is_understood():
    history = [HumanMessage("hi"), AIMessage("Hello!"), HumanMessage("1+3=?")]
    async with scripted_team(WORK) as it:
        frames = await it.run(messages=history)
        assert "Hello!" in it.prompts("coordinator")[0]
        assert "Request: 1+3=?" in it.prompts("coder")[0]
    assert data(frames, "start_of_workflow")[0]["input"][1] == {"role": "assistant", "content": "Hello!"}


async def test_pictures_are_left_out_for_a_model_that_cannot_see():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = HumanMessage(content=[{"type": "text", "text": "what is it?"}, picture])
    blind = {
        "coordinator": [
            {"status": 400, "error": "image input is not supported", "times": 1},
            reply("I cannot see."),
        ]
    }
    async with scripted_team(blind) as it:
        frames = await it.run(messages=[message])
    assert joined_text(frames) == "I cannot see."


async def test_halves_of_characters_from_a_model_break_nothing():
    coder = [call("python_repl_tool", code="print('\ud83d')"), {"chunks": ["a\ud83d", "\ude00b", "\udc00"]}]
    async with scripted_team({**WORK, "coder": coder}) as it:
        frames = await it.run()
    assert status(frames) == "completed"
    json.dumps(frames, ensure_ascii=False).encode()


async def test_a_plan_of_twelve_steps_is_worked_through():
    members = ["coder", "researcher"] * 6
    long = script(*(step(name) for name in members[:11]), step("reporter"), researcher=[reply("found")])
    async with scripted_team({**long, "coder": [reply("done")]}) as it:
        frames = await it.run()
    assert agents(frames) == ["coordinator", "planner", *members[:11], "reporter"]
    assert status(frames) == "completed"


async def test_a_report_that_came_out_empty_is_written_again():
    async with scripted_team({**WORK, "reporter": [reply(" "), REPORT]}) as it:
        frames = await it.run()
    assert agents(frames)[-2:] == ["reporter", "reporter"]
    assert frames[-1][1]["messages"][-1]["content"].startswith("# Report")


async def test_a_report_that_stays_empty_is_put_together_from_the_results():
    async with scripted_team({**WORK, "reporter": [reply(" ")]}) as it:
        frames = await it.run()
        assert it.prompts("supervisor") == []
    assert agents(frames)[-3:] == ["reporter", "reporter", "reporter"]
    assert "It is 4." in frames[-1][1]["messages"][-1]["content"]
    assert status(frames) == "completed"


@pytest.mark.parametrize("text", ["# Cake\n\nNeeds: 2 eggs\nand flour", "# Cake\nNEEDS: 2 eggs"])
async def test_a_report_may_contain_any_text(text):
    async with scripted_team({**WORK, "reporter": [reply(text)]}) as it:
        frames = await it.run()
    assert agents(frames)[-2:] == ["coder", "reporter"]
    assert [s["status"] for s in data(frames, "plan")[-1]["steps"]] == ["completed", "completed"]


async def test_a_message_with_a_user_name_is_read():
    async with scripted_team(WORK) as it:
        await it.run(messages=[HumanMessage("1+3=?", name="alice")])
        assert "1+3=?" in it.prompts("coordinator")[0]
        assert "Request: 1+3=?" in it.prompts("coder")[0]


async def test_a_picture_comes_back_in_the_form_in_which_it_was_sent():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = HumanMessage(content=[{"type": "text", "text": "what is it?"}, picture])
    async with scripted_team({"coordinator": [reply("A dot.")]}) as it:
        frames = await it.run(messages=[message])
    sent_back = frames[-1][1]["messages"][0]["content"]
    assert sent_back[1] == {"type": "image", "image_url": "data:image/png;base64,AAAA"}


async def test_thoughts_in_the_text_neither_hand_over_nor_spoil_a_plan():
    greeting = reply("<think>no need for handoff_to_planner here {x}</think>Hello!")
    async with scripted_team({"coordinator": [greeting]}) as it:
        frames = await it.run("hi")
    assert joined_text(frames) == "Hello!"
    thinking = reply("<think>{maybe}</think>" + json.dumps(plan(step("coder"))))
    async with scripted_team(script(planner=[thinking])) as it:
        assert status(await it.run()) == "completed"
        assert len(it.prompts("planner")) == 1


async def test_broken_arguments_are_repaired_and_a_cut_call_is_not_run():
    broken = {"tool_calls": [{"name": "python_repl_tool", "arguments": '{"code": "print(4)"'}]}
    async with scripted_team({**WORK, "coder": [broken, reply("It is 4.")]}) as it:
        frames = await it.run()
    assert data(frames, "tool_call")[0]["tool_input"] == {"code": "print(4)"}
    cut = {**broken, "finish_reason": "length"}
    async with scripted_team({**WORK, "coder": [cut], "supervisor": [reply('{"next": "reporter"}')]}) as it:
        frames = await it.run()
        assert "length limit in the middle of a tool call" in it.prompts("reporter")[0]
    assert data(frames, "tool_call") == []
