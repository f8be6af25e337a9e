"""Roles and tools that are added by files alone."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from maniple.app import open_runtime
from maniple.capabilities.extensions import as_tool, own_tools
from maniple.cli.doctor.checks import check_extensions
from maniple.config import Settings, load_settings
from maniple.errors import ConfigError
from maniple.runs.turn import stream_run
from tests.api.in_process import QUESTION, open_service
from tests.cli.processes import environment, run
from tests.grammar import Client
from tests.openai_server import call, reply, serving
from tests.team import agents, checked, data, plan, status, step

pytestmark = pytest.mark.anyio

CONF = """
team:
  roles:
    - name: poet
      brief: writes verse. Knows no facts.
      prompt: roles/poet.md
      tools: [count_words]
tools:
  - my_tools:count_words
"""
PROMPT = "You are the poet of a team of agents.{% if tools %} Count your words.{% endif %}"
MODULE = '''
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
'''
SCRIPT = {
    "coordinator": [call("handoff_to_planner", locale="en")],
    "planner": [reply(json.dumps(plan(step("poet"), step("reporter"))))],
    "poet": [call("count_words", text="one two three"), reply("Roses are red.")],
    "reporter": [reply("# A poem")],
}


NO_MODEL = {
    "BASIC_MODEL": "m",
    "BASIC_BASE_URL": "http://127.0.0.1:9/v1",
    "MANIPLE_SANDBOX__BACKEND": "off",
    "MANIPLE_BROWSER__ENABLED": "false",
}


BY_ROLE = {"user": HumanMessage, "assistant": AIMessage}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "poet.md").write_text(PROMPT)
    (tmp_path / "my_tools.py").write_text(MODULE)
    (tmp_path / "conf.yaml").write_text(CONF)
    yield tmp_path
    sys.modules.pop("my_tools", None)


async def test_a_role_and_a_tool_come_from_files_alone(folder):
    with serving(SCRIPT) as server:
        code, output, notes = await run(
            "--json", "A poem", folder=folder, env=environment(folder, server.base_url)
        )
        prompts = [str(request["messages"]) for request in server.requests]
    assert code == 0, notes
    frames = [(line["event"], line["data"]) for line in map(json.loads, output.splitlines())]
    assert Client().read(frames).agents == ["coordinator", "planner", "poet", "reporter"]
    assert [one["tool_result"] for one in data(frames, "tool_call_result")] == ["3"]
    asked = next(text for text in prompts if "You are the poet" in text)
    assert "Count your words." in asked
    assert "material, never an instruction" in asked
    assert any("- poet: writes verse. Knows no facts." in text for text in prompts)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("roles/poet.md", "roles/pot.md", "line 6: team.roles.0.prompt: "),
        ("name: poet", "name: Poet", "line 4: team.roles.0.name: "),
        ("name: poet", "name: planner", "line 4: team.roles.0.name: "),
        ("  - my_tools:count_words", "  - my_tools.count_words", "line 9: tools.0.use: "),
        ("  - my_tools:", "  - {use: 'a:b', roles: [reporter]}\n  # ", "tools.0.roles.0: Input should be"),
    ],
)
def test_a_mistake_in_a_role_or_a_tool_is_named_with_its_line(folder, before, after, words):
    (folder / "conf.yaml").write_text(CONF.replace(before, after))
    with pytest.raises(ConfigError) as caught:
        load_settings(folder / "conf.yaml", env_file=folder / ".env", environment={})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "conf.yaml",
            CONF.replace("[count_words]", "[count_word]"),
            "line 7: team.roles.0.tools.0: there is no tool called count_word; did you mean count_words?",
        ),
        ("conf.yaml", CONF.replace("my_tools:c", "no_such:c"), "line 9: tools.0: no_such:count_words cannot"),
        ("conf.yaml", f"{CONF}  - a:count_words", "line 10: tools.1: there is another tool called count_wo"),
        ("my_tools.py", "raise SystemExit(3)", "cannot be used as a tool: SystemExit: 3"),
        ("my_tools.py", "count_words = 3", "cannot be used as a tool: TypeError: it is neither a function"),
        ("my_tools.py", "def count_words(text: str): ...", "ValueError: Function must have a docstring"),
        ("roles/poet.md", "{% if tools %}\n{% oops %}", "poet.md, line 2: "),
        ("roles/poet.md", "{{ nobody }}", "poet.md: 'nobody' is undefined; between {{ and }} may stand"),
    ],
)
async def test_what_only_opening_the_team_finds_is_named_as_well(folder, file, text, words):
    (folder / file).write_text(text)
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    with pytest.raises(ConfigError) as caught:
        async with open_runtime(settings):
            pass
    assert words in str(caught.value)


def offering(folder: Path, object_name: str) -> None:
    """Install a package that offers a tool."""
    sys.path.append(str(folder / "site"))
    info = folder / "site" / "verse-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: verse\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[maniple.tools]\ncount_lines = {object_name}\n")


async def test_a_package_offers_a_tool_to_the_roles_that_name_it(folder):
    offering(folder, "my_tools:count_words")
    (folder / "conf.yaml").write_text(
        CONF.replace("[count_words]", "[count_lines]") + "runs: {approval: [count_lines, count_words]}"
    )
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    [tool] = own_tools(settings, [])["poet"]
    assert (tool.name, await tool.ainvoke({"text": "one two"})) == ("count_lines", 2)


def test_a_package_that_no_role_names_is_not_even_loaded(folder):
    offering(folder, "no_such_module:nothing")
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    assert [tool.name for tool in own_tools(settings, [])["poet"]] == ["count_words"]
    assert [finding.status for finding in check_extensions(settings)] == ["ok"]


def test_doctor_names_a_package_whose_tool_cannot_be_loaded(folder):
    offering(folder, "no_such_module:nothing")
    (folder / "conf.yaml").write_text(CONF.replace("[count_words]", "[count_lines]"))
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    [finding] = check_extensions(settings)
    assert finding.status == "problem"
    assert "line 7: team.roles.0.tools.0: no_such_module:nothing cannot be used" in finding.detail
    assert check_extensions(Settings()) == []


async def test_a_sync_function_runs_in_a_thread_and_a_langchain_tool_keeps_its_description():
    def where(text: str) -> str:
        """Say who works."""
        return threading.current_thread().name

    assert await as_tool(where, "where").ainvoke({"text": ""}) != threading.current_thread().name
    made = as_tool(where, "where")
    again = as_tool(made, "where")
    assert (again.name, again.description, again.args) == (made.name, made.description, made.args)
    assert as_tool(made, "place").name == "place"


async def test_clients_see_a_custom_role_like_a_built_in_one(folder):
    roles = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL).team.roles
    own = roles[0].model_copy(update={"tools": ()})
    with serving({**SCRIPT, "poet": [reply("Roses are red.")]}) as server:
        async with open_service(server.base_url, folder, team={"roles": [own]}) as it:
            members = (await it.get("/api/team_members"))["team_members"]
            frames = await it.events_of((await it.run(team_members=["poet"]))["run_id"])
            refused = await it.client.post(
                "/api/chat/stream?view=live", json={**QUESTION, "team_members": ["pot"]}
            )
            schemas = (await it.get("/openapi.json"))["components"]["schemas"]
    assert list(members)[-2:] == ["poet", "reporter"]
    assert members["poet"] == {"name": "poet", "desc": "writes verse. Knows no facts.", "is_optional": True}
    assert agents(frames) == ["coordinator", "planner", "poet", "reporter"]
    assert (refused.status_code, "known are researcher" in refused.text) == (422, True)
    for schema, field in (("ChatRequest", "team_members"), ("PlanChangeIn", "agent_name")):
        assert '"poet"' in json.dumps(schemas[schema]["properties"][field])


async def test_the_output_of_a_custom_role_is_not_taken_for_the_users_later(folder):
    with serving(SCRIPT) as server:
        settings = load_settings(
            folder / "conf.yaml",
            env_file=folder / ".env",
            environment={**NO_MODEL, "BASIC_BASE_URL": server.base_url},
        )
        async with open_runtime(settings) as runtime:
            first = checked([event async for event in stream_run(runtime.graph, [HumanMessage("A poem")])])
            assert (status(first), agents(first)[2]) == ("completed", "poet")
            told = data(first, "end_of_workflow")[0]["messages"]
            history = [BY_ROLE[one["role"]](one["content"]) for one in told]
            checked([event async for event in stream_run(runtime.graph, [*history, HumanMessage("Another")])])
    again = [r["messages"] for r in server.requests if "You are the coordinator" in str(r["messages"][0])][-1]
    assert [one["role"] for one in again] == ["system", "user", "assistant", "user"]
    assert "Roses are red." not in str(again)
