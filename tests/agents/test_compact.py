"""The team with a small model: grammars, one program, one call, a short report."""

import io
import json
import re

import pytest
from langchain_core.tools import tool

from maniple.agents.compact import choose_examples
from maniple.agents.offers import Offer
from maniple.agents.report_score import remove_score
from maniple.config import SandboxSettings
from maniple.graph import TeamRules
from maniple.graph.nodes.coordinator import choose_kind
from maniple.sandbox import open_sandbox
from maniple.tools.files import uploaded_files
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.openai_server import reply
from tests.team import TOOLS, agents, data, joined_text, scripted_team, status
from tests.tools.built import build_code_tools

pytestmark = pytest.mark.anyio
COMPACT = {"profile": "compact", "capabilities": {"grammar": True, "tools": False, "json_schema": False}}
PLAN = {"thought": "t", "title": "P", "steps": [{"agent_name": "coder", "title": "c", "description": "d"}]}


def small(*replies):
    """All of a small model's prompts but the planner's and the reply's name no role."""
    return {"other": list(replies), "planner": [reply(json.dumps(PLAN))], "coordinator": [reply("你好！")]}


def sort(kind):
    return reply(json.dumps({"kind": kind}))


@pytest.fixture
async def sandboxed(tmp_path):
    async with open_sandbox(SandboxSettings()) as sandbox:
        yield Offer({"coder": build_code_tools(sandbox, Workspaces(tmp_path))})


async def test_a_sum_is_computed_by_one_program_in_the_sandbox(sandboxed):
    script = small(sort("coder"), reply("```python\nprint(1+3)\n```"), reply("Summary: 4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        requests = it.server.requests
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
    assert joined_text(frames).endswith("Summary: 4")
    assert "Code run:\nprint(1+3)\nOutput: 4" in requests[3]["messages"][-1]["content"]
    assert all("grammar" in request for request in requests[:2])
    assert all("tools" not in request for request in requests)


async def test_a_program_that_fails_is_repaired_once_with_its_traceback(sandboxed):
    script = small(sort("coder"), reply("print(1/0)"), reply("```py\nprint(4)\n```"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        assert "ZeroDivisionError" in it.server.requests[3]["messages"][-1]["content"]
    assert [d["tool_result"] for d in data(frames, "tool_call_result")][1] == "4"
    assert status(frames) == "completed"


async def test_a_program_without_output_is_reported_to_the_model(sandboxed):
    script = small(sort("coder"), reply("x = 4"), reply("print(4)"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        await it.run()
        assert "print" in it.server.requests[3]["messages"][-1]["content"]


@pytest.mark.parametrize("retries", [0, 2])
async def test_two_failures_reach_the_report_without_asking_the_small_supervisor_or_planner(
    sandboxed, retries
):
    rules = TeamRules(step_retries=retries)
    script = small(sort("coder"), reply("print(1/0)"), reply("print(1/0)"), reply("It failed."))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed, rules=rules) as it:
        frames = await it.run()
        assert it.server.stats["calls"] == 4, "no model is asked to report what nobody found"
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]


async def test_small_talk_is_answered_in_the_users_language():
    async with scripted_team(small(sort("chat")), models=COMPACT) as it:
        frames = await it.run("你好")
    assert joined_text(frames) == "你好！"
    assert agents(frames) == ["coordinator"]


class Search:
    """Stands for the search that the planner knows of; the researcher's own tool answers."""

    async def search(self, query, *, limit):
        return []


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return f"The page at {url} says 42."


def planned(agent):
    steps = [{"agent_name": agent, "title": "r", "description": "see https://made-up.test/"}]
    return [reply(json.dumps({**PLAN, "steps": steps}))]


def may_plan_with(request):
    """The members that the planner's grammar lets it name."""
    return json.loads(re.findall(r'"agent_name": \{"enum": (\[.*?\])', request["grammar"])[0])


async def test_the_coordinators_sorting_decides_who_may_be_planned_with():
    script = {**small(sort("researcher"), reply("A report.")), "planner": planned("researcher")}
    async with scripted_team(script, models=COMPACT, toolbox=TOOLS, search=Search()) as it:
        frames = await it.run("latest news")
        assert may_plan_with(it.server.requests[1]) == ["researcher", "reporter"]
    assert data(frames, "tool_call")[0] | {"tool_call_id": ""} == {
        "tool_call_id": "",
        "tool_name": "tavily_search",
        "tool_input": {"query": "latest news"},
    }


@pytest.mark.parametrize("kind", ["researcher", "browser"])
async def test_without_a_search_the_model_answers_from_memory_and_states_it(kind):
    toolbox = Offer({"researcher": [crawl_tool], "coder": []}, {"researcher": "Search is turned off."})
    script = small(sort(kind), reply("Paris."))
    async with scripted_team(
        script, models=COMPACT, toolbox=toolbox, no_search="Search is turned off."
    ) as it:
        frames = await it.run("What is the capital of France?")
        assert "researcher" not in it.server.requests[0]["grammar"]
    answer = frames[-1][1]["messages"][-1]["content"]
    assert agents(frames) == ["coordinator"]
    assert answer.startswith("Paris.\n\n(Nothing was looked up")
    assert answer.endswith("Search is turned off.)")


@pytest.mark.parametrize("kind", ["researcher", "browser"])
async def test_without_a_search_the_researcher_reads_the_page_that_the_request_names(kind):
    toolbox = Offer({"researcher": [crawl_tool]}, {"researcher": "Search is turned off."})
    script = {**small(sort(kind), reply("It says 42.")), "planner": planned("researcher")}
    async with scripted_team(script, models=COMPACT, toolbox=toolbox) as it:
        frames = await it.run("What does https://e.test/a(b) say?")
        assert "The page at https://e.test/a(b) says 42." in it.server.requests[2]["messages"][-1]["content"]
    assert data(frames, "tool_call")[0]["tool_input"] == {"url": "https://e.test/a(b)"}
    assert agents(frames) == ["coordinator", "planner", "researcher", "reporter"]


async def test_the_researcher_with_a_search_reads_no_page_that_only_the_plan_names():
    toolbox = Offer({"researcher": [*TOOLS.tools_of("researcher"), crawl_tool]})
    script = {**small(sort("researcher"), reply("Found.")), "planner": planned("researcher")}
    async with scripted_team(script, models=COMPACT, toolbox=toolbox, search=Search()) as it:
        frames = await it.run("latest news")
    assert [one["tool_name"] for one in data(frames, "tool_call")] == ["tavily_search"]


async def test_a_program_that_only_writes_a_file_is_done_and_the_report_names_it(sandboxed, tmp_path):
    code = "```python\nopen('notes.txt', 'w').write('hello')\n```"
    script = small(sort("coder"), reply(code), reply("The file was written."))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("Write hello into notes.txt", thread_id="t")
        assert it.server.stats["calls"] == 4, "the program is not asked for again"
    line = "[files written: notes.txt]"
    assert (tmp_path / "t" / "notes.txt").read_text(encoding="utf-8") == "hello"
    assert data(frames, "tool_call_result")[0]["tool_result"] == f"5\n{line}", "the value, then the file"
    assert frames[-1][1]["messages"][-1]["content"] == f"The file was written.\n\n{line}"


async def test_a_file_that_no_program_writes_is_asked_for_once_and_leaves_a_gap_with_the_output(
    sandboxed, tmp_path
):
    code = reply("```python\nname = 'notes.txt'\nprint('hello')\n```")
    script = small(sort("coder"), code, code, reply("Summary"))
    items = ThreadItems(Workspaces(tmp_path))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed, items=items) as it:
        frames = await it.run("Write hello into notes.txt", thread_id="t")
        assert len(data(frames, "tool_call")) == 2
    (gap,) = data(frames, "run_status")[-1]["gaps"]
    assert "notes.txt" in gap["reason"]
    assert "hello" in frames[-1][1]["messages"][-1]["content"], "what the program printed is of use"


async def test_what_the_sandbox_notes_for_the_model_is_in_no_report():
    note = "[sandbox: The sandbox ended since the last call: variables are gone.]"

    @tool
    async def python_repl_tool(code: str) -> str:
        """Run Python."""
        return f"98\n[took 1.2 s]\n{note}"

    script = small(sort("coder"), reply("print(14*7)"), reply("Done."))
    async with scripted_team(script, models=COMPACT, toolbox=Offer({"coder": [python_repl_tool]})) as it:
        frames = await it.run("14*7")
        material = str(it.server.requests[3]["messages"])
    assert note not in material
    assert joined_text(frames).endswith("Done.\n\n```\n98\n```")


async def test_a_program_that_was_cut_is_not_run(sandboxed):
    cut = reply("```python\nprint(1)\nprint(", finish_reason="length")
    script = small(sort("coder"), cut, reply("print(4)"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        assert "cut at the model's output limit" in it.server.requests[3]["messages"][-1]["content"]
    assert [one["tool_input"]["code"] for one in data(frames, "tool_call")] == ["print(4)"]


async def test_a_program_of_an_example_is_not_run_and_is_asked_for_again(sandboxed):
    copied = reply("```python\nimport math\nprint(math.factorial(17) + 10)\n```")
    script = small(sort("coder"), copied, reply("print(14)"), reply("14"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("4 and 10 together?")
        assert "factorial(17)" in it.server.requests[3]["messages"][-1]["content"]
    assert [one["tool_result"] for one in data(frames, "tool_call_result")] == ["14"]


@pytest.mark.parametrize(("copies", "title"), [(1, "P"), (2, "Add 10 to it")])
async def test_a_plan_of_an_example_is_refused_and_then_the_sorted_member_gets_the_request(
    sandboxed, copies, title
):
    example = reply(json.dumps({**PLAN, "title": "Compute 12*9 + 10"}))
    script = small(sort("coder"), reply("print(14)"), reply("14"))
    script["planner"] = [example] * copies + script["planner"]
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("Add 10 to it")
    shown = data(frames, "plan")[-1]
    assert (shown["title"] == "P") is (title == "P")
    assert [one["agent_name"] for one in shown["steps"]] == ["coder", "reporter"]
    assert shown["steps"][0]["title"] == ("c" if copies == 1 else title)


async def test_a_program_that_fails_twice_leaves_its_error_as_the_steps_reason(sandboxed):
    script = small(sort("coder"), reply("print(1/0)"), reply("print(1/0)"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
    coder, reporter = data(frames, "plan")[-1]["steps"]
    assert coder["details"] == "the program failed twice: ZeroDivisionError: division by zero"
    assert "Error:" not in coder["reason"]
    assert "reason" not in reporter


@pytest.mark.parametrize(
    ("request_text", "named", "language"),
    [
        ("Was ist 1+3?", "German", "in German"),
        ("1+3是多少？", "English", "用中文"),
        ("1+3=?", "Chinese", "in English"),
        ("What is 1+3?", "Python", "in English"),
        ("Compute 1+3", "Python", "in the language of the request"),
        ("Compute 1+3", "", "in the language of the request"),
        ("Compute 1+3", "{{evil}} words", "in the language of the request"),
    ],
)
async def test_the_prompts_of_planner_and_reporter_name_the_users_language(
    sandboxed, request_text, named, language
):
    sorting = reply(json.dumps({"kind": "coder", "language": named}))
    script = small(sorting, reply("print(4)"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        await it.run(request_text)
        planner, reporter = (it.server.requests[n]["messages"][0]["content"] for n in (1, 3))
    assert language in reporter
    assert ("in Chinese" if "中" in language else language) in planner


@pytest.mark.parametrize(
    ("request_text", "named", "title"),
    [
        ("Was ist 1+3?", "German", "12*9 berechnen"),
        ("Combien font 1+3 ?", "French", "Calculer 12*9"),
        ("¿Cuánto es 1+3?", "Spanish", "Escribir el informe"),
        ("1+3是多少？", "English", "撰写报告"),
        ("Quanto fa 1+3?", "Italian", "Write the report"),
    ],
)
async def test_the_planner_is_shown_plans_with_titles_in_the_users_language(
    sandboxed, request_text, named, title
):
    """A small model's own titles follow those that it is shown, regardless of instructions."""
    sorting = reply(json.dumps({"kind": "coder", "language": named}))
    script = small(sorting, reply("print(4)"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        await it.run(request_text)
        examples = [m["content"] for m in it.server.requests[1]["messages"] if m["role"] == "assistant"]
    assert title in str(examples)
    assert ("Compute 12*9" in str(examples)) == (title == "Write the report")


@pytest.mark.parametrize(
    ("locale", "name"),
    [
        ("de-DE", "plan_de"),
        ("de", "plan_de"),
        ("fr_CA", "plan_fr"),
        ("es-419", "plan_es"),
        ("zh-CN", "plan_zh"),
        ("den", "plan_en"),
        ("", "plan_en"),
        ("the language of the request", "plan_en"),
    ],
)
def test_a_locale_is_as_good_as_the_name_of_a_language(locale, name):
    assert choose_examples(locale) == name


async def test_the_callers_locale_goes_before_the_language_of_the_request():
    script = small(
        reply('{"kind": "researcher", "language": "German"}'),
        reply(json.dumps({"changes": False})),
        reply("Hallo."),
    )
    async with scripted_team(script, models=COMPACT, toolbox=Offer()) as it:
        frames = await it.run("Wer war Kant?", locale="fr-FR")
        assert "in fr-FR" in it.server.requests[2]["messages"][0]["content"]
    assert "mémoire" in frames[-1][1]["messages"][-1]["content"]


async def test_a_program_with_an_empty_value_is_repaired_once_with_that_value(sandboxed):
    script = small(sort("coder"), reply("print('tree'.count('ae'))"), reply("print(2)"), reply("2"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("Count the vowels in tree")
        assert "It printed 0" in it.server.requests[3]["messages"][-1]["content"]
    assert [one["tool_result"] for one in data(frames, "tool_call_result")] == ["0", "2"]


async def test_a_doubtful_value_is_reported_when_the_repair_fails(sandboxed):
    script = small(sort("coder"), reply("print(0)"), reply("print(1/0)"), reply("It is 0"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("How many?")
    assert status(frames) == "completed"
    assert frames[-1][1]["messages"][-1]["content"] == "It is 0"


async def test_the_coder_sees_how_a_file_of_the_user_begins(sandboxed, tmp_path):
    workspaces = Workspaces(tmp_path)
    workspaces.open("t")
    workspaces.uploads("t").add([("prices.csv", io.BytesIO(b"item,price\npen,2\n"))])
    script = small(sort("researcher"), reply("print('prices.csv', 2)"), reply("2 prices.csv"))
    files = uploaded_files(workspaces)
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed, files=files) as it:
        frames = await it.run("What is the price in prices.csv?", thread_id="t")
        program = next(one for one in it.server.requests if "Python code block" in str(one["messages"][0]))
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"], "a file is the coder's"
    assert program["messages"][-1]["content"].endswith("prices.csv begins with:\nitem,price\npen,2")


async def test_a_plan_of_a_report_alone_is_given_the_member_that_the_request_was_sorted_for(sandboxed):
    script = {**small(sort("coder"), reply("print(4)"), reply("4")), "planner": planned("reporter")}
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        assert agents(await it.run()) == ["coordinator", "planner", "coder", "reporter"]


@pytest.mark.parametrize(
    ("kind", "request_text", "chosen"),
    [
        ("answer", "Write a poem into poem.txt", "coder"),
        ("answer", "Translate https://e.test/a", "researcher"),
        ("researcher", "Who was Kant?", "answer"),
        ("browser", "Open https://e.test/a", "browser"),
        ("coder", "What is 2+2?", "coder"),
    ],
)
def test_without_a_search_a_rule_corrects_the_sorting(kind, request_text, chosen):
    assert choose_kind(kind, request_text, (), can_search=False) == chosen


async def test_what_a_silent_program_defined_is_shown_with_the_one_that_used_it(sandboxed):
    first, second = "def twice(n):\n    return 2*n", "print(twice(4))"
    script = small(sort("coder"), reply(first), reply(second), reply("It gives 8."))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run("Write twice(n)")
    answer = frames[-1][1]["messages"][-1]["content"]
    assert answer == f"It gives 8.\n\n```python\n{first}\n{second}\n```"


@pytest.mark.parametrize(
    "code", ["print(12*9)", "raise SystemExit('no such column')", "import sys; sys.exit('no')"]
)
async def test_a_program_that_failed_twice_is_told_once_and_without_a_score(sandboxed, code):
    program = reply(f"```python\n{code}\n```")
    script = small(sort("coder"), program, program)
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        calls = it.server.stats["calls"]
    assert calls == 4, "no model has written the answer"
    shown = joined_text(frames)[joined_text(frames).index("MISSING") :]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert lines, shown
    assert not any(line in before for at, line in enumerate(lines) for before in lines[:at])
    assert data(frames, "claims") == []
    assert remove_score(shown) == shown
