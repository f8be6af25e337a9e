"""One call of the browser, from its instruction to its result."""

import json

import pytest

from maniple.agents.browsing.trace import EVENT_CHARACTERS
from maniple.graph import RunOptions, TeamRules
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from tests.agents.browsing.shop import HOME, QUESTION, alone, done, shop_script, shopping, use
from tests.agents.memory_ledger import MemoryLedger
from tests.openai_server import call, reply
from tests.team import agents, data, names, plan, status, step

pytestmark = pytest.mark.anyio


def content(frames) -> str:
    return json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"]


WAY = (use("go_to_url", url=HOME), use("click_element", index=0), done())


async def test_a_step_is_one_call_of_the_browser_without_a_model_around_it():
    async with shopping(shop_script(*WAY)) as (team, shop):
        frames = await team.run("What do apples cost?")
    assert status(frames) == "completed"
    assert agents(frames) == ["coordinator", "planner", "browser", "reporter"]
    (asked,) = data(frames, "tool_call")
    assert (asked["tool_name"], asked["tool_input"]) == ("browser", {"instruction": "Find the price."})
    (result,) = data(frames, "tool_call_result")
    assert json.loads(result["tool_result"]) == {
        "result_content": "It costs 3.50 EUR.",
        "generated_gif_path": None,
    }
    assert team.server.stats["by_role"]["browser"] == 3
    assert shop.only.url == f"{HOME}basket"


async def test_the_loop_emits_no_messages_and_all_its_usage_is_counted():
    async with shopping(shop_script(*({**one, "text": "Because."} for one in WAY))) as (team, _):
        frames = await team.run()
    assert "Because." not in json.dumps(data(frames, "message"))
    assert [one["agent_name"] for one in data(frames, "usage")].count("browser") == 3


async def test_each_step_is_reported_with_its_thought_its_action_and_what_came_of_it():
    reply_ = {**use("go_to_url", url=HOME), "text": "I open the shop."}
    async with shopping(shop_script(reply_, done())) as (team, _):
        frames = await team.run()
    steps = data(frames, "browser_step")
    assert [(one["number"], one["state"]) for one in steps] == [
        (1, "thinking"),
        (1, "acting"),
        (1, "observing"),
        (2, "thinking"),
        (2, "acting"),
        (2, "observing"),
        (2, "completed"),
    ]
    first, last = steps[2], steps[-1]
    assert list(first) == [
        *("tool_call_id", "number", "state", "phase", "thought", "action", "observation", "success"),
        *("started", "seconds", "mark", "element", "screenshot"),
    ]
    assert first["tool_call_id"] == data(frames, "tool_call")[0]["tool_call_id"]
    assert (first["thought"], first["action"]) == (
        "I open the shop.",
        {"name": "go_to_url", "parameters": {"url": HOME}},
    )
    assert (first["observation"], first["success"]) == (f"Navigated to {HOME}", True)
    assert first["started"] > 1_700_000_000 and 0 <= first["seconds"] < 60
    assert last["action"]["name"] == "terminate"
    told_names = names(frames)
    assert told_names.index("tool_call") < told_names.index("browser_step")


async def test_each_call_of_an_answer_is_a_step_of_its_own_and_reported_in_order():
    two = [*use("wait", seconds=0)["tool_calls"], *use("go_to_url", url=HOME)["tool_calls"]]
    async with shopping(shop_script({"tool_calls": two, "text": "I wait, then I go."}, done())) as (team, _):
        frames = await team.run()
    steps = [one for one in data(frames, "browser_step") if one["action"]]
    assert [(one["number"], one["state"], one["action"]["name"]) for one in steps] == [
        (1, "acting", "wait"),
        (1, "observing", "wait"),
        (2, "acting", "go_to_url"),
        (2, "observing", "go_to_url"),
        (3, "acting", "terminate"),
        (3, "observing", "terminate"),
        (3, "completed", "terminate"),
    ]
    assert [one["thought"] for one in steps[:4]] == ["I wait, then I go."] * 2 + [""] * 2
    assert [one["observation"] for one in steps[1:4:2]] == ["Waited for 0 seconds", f"Navigated to {HOME}"]


async def test_clients_receive_each_change_of_the_browsers_address():
    ways = (use("go_to_url", url=HOME), use("wait", seconds=0), use("click_element", index=0), done())
    async with shopping(shop_script(*ways)) as (team, _):
        frames = await team.run()
    states = data(frames, "browser_state")
    assert [one["url"] for one in states] == [HOME, f"{HOME}basket"]
    assert states[0] == {
        "url": HOME,
        "title": "Shop",
        "tabs": [{"tab_id": 1, "url": HOME, "title": "Shop", "is_current": True}],
        "screenshot": None,
    }


@pytest.mark.parametrize(
    "typing",
    [
        *(
            {"action": "input_text", "index": index, "text": "hunter2"}
            for index in (2, "[2]", " 2", 2.0, "x")
        ),
        {"action": "send_keys", "keys": "hunter2"},
        {"action": "type_text", "text": "hunter2"},
    ],
)
async def test_what_may_go_into_a_password_field_is_shown_to_no_one(typing):
    ways = (use("go_to_url", url=HOME), call("browser_use", **typing), done())
    async with shopping(shop_script(*ways)) as (team, _):
        frames = await team.run()
    assert "hunter2" not in json.dumps(frames, default=str)
    (step,) = [one for one in data(frames, "browser_step") if (one["number"], one["state"]) == (2, "acting")]
    assert "********" in step["action"]["parameters"].values()


@pytest.mark.parametrize(
    "typing",
    [
        {"action": "input_text", "index": "[2]", "text": "hunter2"},
        {"action": "send_keys", "keys": "hunter2"},
    ],
)
async def test_an_agent_with_other_tools_reports_and_records_no_password_either(typing):
    ways = (use("go_to_url", url=HOME), call("browser_use", **typing), call("terminate", answer="Done."))
    async with alone(shop_script(manus=list(ways))) as (team, shop):
        frames = await team.run(agent="manus")
    assert shop.only.done[-1]["action"] == typing["action"]
    assert "hunter2" not in json.dumps(frames, default=str)
    book = MemoryLedger()
    async with alone(shop_script(manus=list(ways))) as (team, shop):
        config = {"configurable": {"thread_id": "t", SCOPE_KEY: RunScope(run_id="r", ledger=book)}}
        await team.team.ainvoke({"messages": QUESTION}, config, context=RunOptions(agent="manus"))
    assert "hunter2" in repr(shop.only.done)
    assert len(book.rows) == 3 and "hunter2" not in repr(book.rows)


async def test_what_goes_elsewhere_is_reported_as_it_is():
    ways = (
        use("go_to_url", url=HOME),
        use("input_text", index="[1]", text="apples"),
        use("send_keys", keys="Control+A"),
        done(),
    )
    async with shopping(shop_script(*ways)) as (team, shop):
        frames = await team.run()
    acted = [one["action"]["parameters"] for one in data(frames, "browser_step") if one["state"] == "acting"]
    assert acted[1:3] == [{"index": 1, "text": "apples"}, {"keys": "Control+A"}]
    assert shop.only.done[1]["text"] == "apples"


async def test_a_long_thought_is_reported_in_part():
    async with shopping(shop_script({**done(), "chunks": ["word " * 10_000]})) as (team, _):
        frames = await team.run()
    assert all(len(one["thought"]) <= EVENT_CHARACTERS for one in data(frames, "browser_step"))


async def test_an_answer_without_a_call_is_followed_by_a_request_for_one():
    script = shop_script(reply("I will now open the shop."), use("go_to_url", url=HOME), done())
    async with shopping(script) as (team, shop):
        frames = await team.run()
    assert content(frames) == "It costs 3.50 EUR."
    assert [one["action"] for one in shop.only.done] == ["go_to_url"]
    asked = [one["messages"] for one in team.server.requests if "You called no tool" in str(one)]
    assert [one["content"] for one in asked[0]][-2] == "I will now open the shop."
    assert len(asked) == 1


async def test_an_answer_in_plain_text_is_the_result_for_the_second_time():
    ways = (use("go_to_url", url=HOME), reply("It costs"), reply("3.50 EUR"))
    async with shopping(shop_script(*ways)) as (team, _):
        frames = await team.run()
    assert content(frames) == "3.50 EUR"
    assert data(frames, "browser_step")[-1]["thought"] == "3.50 EUR"
    assert team.server.stats["by_role"]["browser"] == 3


async def test_what_cannot_be_done_fails_the_step_with_its_reason():
    async with shopping(shop_script(done("the shop is closed", "failure"))) as (team, _):
        frames = await team.run()
    failed = data(frames, "plan")[-1]["steps"][0]
    assert (failed["status"], failed["reason"]) == ("failed", "the shop is closed")
    assert data(frames, "browser_step")[-1]["state"] == "failed"


async def test_a_call_beside_one_that_changed_the_page_is_refused():
    two = [*use("go_to_url", url=HOME)["tool_calls"], *use("click_element", index=0)["tool_calls"]]
    async with shopping(shop_script({"tool_calls": two}, done())) as (team, shop):
        await team.run()
    assert [one["action"] for one in shop.only.done] == ["go_to_url"]
    heard = [one for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert "the page has changed" in heard[1]["content"]


async def test_one_answer_fills_in_a_form_and_presses_its_button():
    fields = (use("input_text", index=1, text="apples"), use("input_text", index=2, text="1234"))
    form = [call for one in (*fields, use("click_element", index=3)) for call in one["tool_calls"]]
    async with shopping(shop_script(use("go_to_url", url=HOME), {"tool_calls": form}, done())) as (
        team,
        shop,
    ):
        await team.run()
    actions = [one["action"] for one in shop.only.done]
    assert actions == ["go_to_url", "input_text", "input_text", "click_element"]


async def test_of_a_batch_nothing_is_done_after_the_page_changed():
    batch = [
        use("input_text", index=1, text="apples"),
        use("click_element", index=0),
        use("click_element", index=0),
    ]
    calls = [call for one in batch for call in one["tool_calls"]]
    async with shopping(shop_script(use("go_to_url", url=HOME), {"tool_calls": calls}, done())) as (
        team,
        shop,
    ):
        await team.run()
    assert [one["action"] for one in shop.only.done] == ["go_to_url", "input_text", "click_element"]
    heard = [one for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert "the page has changed" in heard[-1]["content"]


async def test_calls_beside_one_that_changed_nothing_or_failed():
    waits = [*use("wait", seconds=0)["tool_calls"], *use("go_to_url", url=HOME)["tool_calls"]]
    fails = [*use("click_element", index=99)["tool_calls"], *use("send_keys", keys="Enter")["tool_calls"]]
    async with shopping(shop_script({"tool_calls": waits}, {"tool_calls": fails}, done())) as (team, shop):
        await team.run()
    assert [one["action"] for one in shop.only.done] == ["wait", "go_to_url", "click_element"]
    heard = [one for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert "action before it failed" in heard[3]["content"]


async def test_the_loop_receives_the_request_and_the_results_of_other_steps():
    steps = [
        {"agent_name": "researcher", "title": "Look", "description": "find the shop"},
        {"agent_name": "browser", "title": "Buy", "description": "Open it."},
        {"agent_name": "reporter", "title": "Report", "description": "say it"},
    ]
    planned = json.dumps({"thought": "t", "title": "p", "steps": steps})
    script = shop_script(done(), planner=[reply(planned)], researcher=[reply("It is at shop.test.")])
    async with shopping(script) as (team, _):
        await team.run("Buy apples")
    prompt = team.prompts("browser")[0]
    assert "Request: Buy apples" in prompt
    assert "It is at shop.test." in prompt
    assert "Open it." in prompt


async def test_the_answer_of_a_terminal_call_ends_the_call_even_beside_others():
    both = [*done()["tool_calls"], *call("terminate", status="success", result="again")["tool_calls"]]
    async with shopping(shop_script({"tool_calls": both})) as (team, _):
        frames = await team.run()
    assert team.server.stats["by_role"]["browser"] == 1
    assert status(frames) == "completed"


@pytest.mark.parametrize(
    "act",
    [use("click_element", index=77), use("go_to_url", url=HOME), use("wait", seconds=0)],
)
async def test_an_answer_with_actions_cannot_report_their_outcome(act):
    both = {"tool_calls": [*act["tool_calls"], *done("I bought it.")["tool_calls"]]}
    async with shopping(shop_script(use("go_to_url", url=HOME), both, done("It is sold out."))) as (team, _):
        frames = await team.run()
    assert content(frames) == "It is sold out."
    heard = [one for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert "nobody has seen yet" in heard[-1]["content"]


async def test_an_answer_that_acts_cannot_ask_what_to_do_next():
    both = {
        "tool_calls": [
            *use("go_to_url", url=HOME)["tool_calls"],
            *call("ask_human", inquire="Which one?")["tool_calls"],
        ]
    }
    async with shopping(shop_script(both, done())) as (team, _):
        frames = await team.run()
    assert (status(frames), names(frames).count("interrupt")) == ("completed", 0)


async def test_who_works_with_other_tools_too_cannot_act_and_end_in_one_answer():
    ended = call("terminate", answer="I bought it.")["tool_calls"]
    both = {"tool_calls": [*use("click_element", index=77)["tool_calls"], *ended]}
    script = shop_script(
        manus=[both, call("terminate", status="failure", answer="It is sold out.")],
        planner=[reply(json.dumps(plan(step("manus"), step("reporter"))))],
    )
    async with alone(script) as (team, _):
        frames = await team.run()
    assert data(frames, "plan")[-1]["steps"][0]["reason"] == "It is sold out."


async def test_a_failed_action_is_reported_in_the_words_of_its_contract():
    script = shop_script(use("go_to_url", url=HOME), use("click_element", index=50), done())
    async with shopping(script) as (team, _):
        frames = await team.run()
    _, heard = [one for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert heard["content"].splitlines()[1:-1] == ["Element with index 50 not found"]
    seen = [one.get("observation") for one in data(frames, "browser_step")]
    assert "Element with index 50 not found" in seen


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (call("terminate", status="success", result="3.50 EUR"), "3.50 EUR"),
        (call("terminate", answer="3.50 EUR"), "3.50 EUR"),
        ({**call("terminate", status="success"), "text": "3.50 EUR"}, "3.50 EUR"),
        ({**call("terminate", status="failure"), "text": "It is sold out."}, "STEP FAILED: It is sold out."),
    ],
)
async def test_the_work_ends_with_a_status_and_a_result_or_the_last_text(ending, expected):
    script = shop_script({**use("go_to_url", url=HOME), "text": "I open it."}, ending)
    async with shopping(script, rules=TeamRules(step_retries=0)) as (team, _):
        frames = await team.run()
    assert content(frames) == expected
    assert team.server.stats["by_role"]["browser"] == 2 * len(data(frames, "tool_call_result"))


@pytest.mark.parametrize("claim", ["Ordered. The order number is A-20417.", "It is sold out.", "已经下单。"])
async def test_what_no_page_was_opened_for_is_asked_for_once_and_then_a_gap(claim):
    async with shopping(shop_script(done(claim))) as (team, _):
        frames = await team.run()
    assert team.server.stats["by_role"]["browser"] == 2
    assert claim in content(frames)
    (gap,) = data(frames, "run_status")[-1]["gaps"]
    assert "no tool" in gap["reason"]


async def test_what_the_open_page_shows_needs_no_call():
    ways = use("go_to_url", url=HOME), done("It costs 3.50 EUR.")
    async with shopping(shop_script(*ways)) as (team, _):
        frames = await team.run()
    assert team.server.stats["by_role"]["browser"] == 2
    assert content(frames) == "It costs 3.50 EUR."
