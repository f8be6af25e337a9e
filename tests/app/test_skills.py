"""Skills: instructions and files that a worker reads when its task is of that kind."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple.app import open_runtime
from maniple.config import load_settings
from maniple.errors import ConfigError
from maniple.runs.turn import stream_run
from maniple.tools.skills import find_skills
from tests.app.test_own_roles import NO_MODEL
from tests.openai_server import call, reply, serving
from tests.team import checked, data, plan, step

pytestmark = pytest.mark.anyio
SKILL = """---
name: sum-sales
description: Use for the sums of sales.
---
Run scripts/months.py and hand on its table.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scripts = tmp_path / "skills" / "sum-sales" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "months.py").write_text("print('May 3')")
    (scripts / "secret").symlink_to("/etc/passwd")
    (scripts.parent / "SKILL.md").write_text(SKILL)
    (tmp_path / "conf.yaml").write_text(f"skills: [skills]\ndata_dir: {tmp_path}/data\n")
    return tmp_path


def read(**arguments: str) -> dict:
    return {"tool_calls": [{"name": "read_skill", "arguments": arguments}]}


def script(*calls: dict) -> dict:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("coder"), step("reporter"))))],
        "coder": [*calls, reply("May 3")],
        "reporter": [reply("# Sales")],
    }


async def run(folder: Path, told: dict, **more: str) -> tuple[list, list]:
    with serving(told) as server:
        environment = {**NO_MODEL, "BASIC_BASE_URL": server.base_url, **more}
        settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=environment)
        async with open_runtime(settings) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("Sum it up")], thread_id="t")
            return checked([event async for event in events]), server.requests


async def test_a_worker_reads_a_skill_and_finds_its_files_in_the_workspace(folder):
    calls = [
        read(name="sum-sales"),
        read(name="sum-sales", file="scripts/months.py"),
        read(name="sum-sales", file="scripts/secret"),
        read(name="sum-sales", file="../../conf.yaml"),
        read(name="other"),
    ]
    frames, requests = await run(folder, script(*calls))
    whole, file, link, above, other = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert whole.startswith("Run scripts/months.py and hand on its table.")
    assert "at skills/sum-sales, only to be read:\n- scripts/months.py" in whole
    copy = next(str(found) for found in (folder / "data").rglob("months.py"))
    assert copy.endswith("skills/sum-sales/scripts/months.py")
    assert file == "print('May 3')"
    assert "root:" not in link + above
    assert ("scripts/secret" in link, "without `..`" in above) == (True, True)
    assert "there are sum-sales" in other
    prompts = {str(one["messages"][0]["content"])[:20]: str(one["messages"]) for one in requests}
    assert "- sum-sales: Use for the sums of sales." in prompts["You are the coder of"]
    assert not any("read_skill" in text for name, text in prompts.items() if "coder" not in name)
    last = next(one for one in reversed(requests) if "You are the coder" in str(one["messages"][0]))
    assert any(str(one["content"]).startswith("Run scripts") for one in last["messages"])


async def test_what_is_too_large_or_too_much_for_a_skill_is_named_as_left_out(folder):
    place = folder / "skills" / "sum-sales"
    (place / "prices.bin").write_bytes(b"x" * 2_000_001)
    for number in range(100, 172):
        (place / f"{number}.csv").write_text("1")
    frames, _ = await run(folder, script(read(name="sum-sales")))
    whole = data(frames, "tool_call_result")[0]["tool_result"]
    copied, left_out = whole.split("\n\nLeft out of this skill, which may have 50 files of 2 MB:\n")
    assert len(list((folder / "data").rglob("*.csv"))) == copied.count("\n- ") == 50
    assert left_out.splitlines()[0] == "- 150.csv (0.0 MB)"
    assert left_out.splitlines()[-1] == "- and 4 more"
    assert not list((folder / "data").rglob("prices.bin"))


async def test_the_copies_are_read_and_run_and_not_changed(folder):
    script_file = folder / "skills" / "sum-sales" / "scripts" / "months.py"
    script_file.write_text("#!/usr/bin/env python3\nprint('May 3')")
    script_file.chmod(0o755)
    path = "skills/sum-sales/scripts/months.py"
    change = call("write_file", path=path, content="print('June')")
    edit = call("str_replace_editor", command="str_replace", path=path, old_str="May", new_str="June")
    tools = [call("bash_tool", cmd=f"echo 'print(1)' > {path}; {path}"), change, edit, read(name="sum-sales")]
    told = script(read(name="sum-sales"), *tools)
    frames, _ = await run(folder, told, MANIPLE_SANDBOX__BACKEND="bubblewrap")
    _, ran, changed, edited, again = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert "Permission denied" in ran and "May 3" in ran
    assert "is read-only" in changed and "is read-only" in edited
    assert "only to be read:\n- scripts/months.py" in again


async def test_without_skills_no_prompt_mentions_them(folder):
    (folder / "conf.yaml").write_text("skills: []\n")
    _, requests = await run(folder, script())
    assert "skill" not in json.dumps(requests)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no head", "SKILL.md: it must begin with a head between two lines of ---"),
        (SKILL.replace("sum-sales", "Sum Sales"), "SKILL.md: name must"),
        (SKILL.replace("Use", "x" * 1_024), "SKILL.md: description must say when to use it"),
        ("---\n[\n---\n", "SKILL.md: the head"),
        (SKILL + "x" * 64_000, "bytes; at most 64000 are read"),
    ],
)
async def test_a_skill_that_cannot_be_used_is_named_when_the_team_opens(folder, text, words):
    (folder / "skills" / "sum-sales" / "SKILL.md").write_text(text)
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    with pytest.raises(ConfigError) as caught:
        async with open_runtime(settings):
            pass
    assert words in str(caught.value)


async def test_a_skill_that_is_a_link_is_refused(folder):
    file = folder / "skills" / "sum-sales" / "SKILL.md"
    file.rename(folder / "elsewhere.md")
    file.symlink_to(folder / "elsewhere.md")
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    with pytest.raises(ConfigError, match=r"SKILL\.md"):
        async with open_runtime(settings):
            pass


def test_a_folder_that_is_itself_a_skill_is_one(folder):
    assert [skill.name for skill in find_skills(folder / "skills" / "sum-sales")] == ["sum-sales"]


def test_links_to_folders_of_skills_are_followed(folder):
    (folder / "linked").mkdir()
    (folder / "linked" / "sums").symlink_to(folder / "skills" / "sum-sales")
    (folder / "linked" / "nothing").symlink_to(folder / "nowhere")
    assert [skill.name for skill in find_skills(folder / "linked")] == ["sum-sales"]


@pytest.mark.parametrize("place", ["empty", "."])
async def test_a_folder_that_holds_no_skills_is_reported(folder, place):
    (folder / "empty").mkdir()
    (folder / "conf.yaml").write_text(f"skills: [{place}]\ndata_dir: {folder}/data\n")
    settings = load_settings(folder / "conf.yaml", env_file=folder / ".env", environment=NO_MODEL)
    async with open_runtime(settings) as runtime:
        assert any("holds no skills: " in one for one in runtime.notices)
