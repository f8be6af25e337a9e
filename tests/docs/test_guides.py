"""Every command and program of the guides runs as it stands, with a scripted model."""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path

from tests.crawler.web import Reply, open_site
from tests.docs.guides import read_guide
from tests.openai_server import SIMPLE, call, reply, serving
from tests.serving import environment

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]
LIGHT = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}
ARCHES = "A stone arch carries its load by compression: each stone presses on the next."


def planned(*members: str, **replies: list[dict[str, Any]]) -> dict[str, Any]:
    """A script whose plan has one step for each member, and the replies of the members."""
    steps = [
        {"agent_name": name, "title": f"{name} works", "description": f"{name} works."} for name in members
    ]
    plan = {"thought": "A plan.", "title": "The plan", "steps": steps}
    return {**SIMPLE, "by_history": True, "planner": [reply(json.dumps(plan))], **replies}


def run(page: str, script: dict[str, Any], folder: Path, **env: str) -> str:
    with serving(script) as model:
        return read_guide(page).run(folder, environment(model.base_url, folder, **env))


def test_the_first_hour_runs(tmp_path: Path):
    output = run("guide/first-hour.md", SIMPLE, tmp_path, **LIGHT)
    assert output.count("The answer is") >= 2
    assert "event: final_session_state" in output


def test_the_first_report_cites_what_was_found(tmp_path: Path):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/arches.md").write_text(f"# Arches\n\n{ARCHES}\n")
    script = planned(
        *("researcher", "reporter"),
        researcher=[call("tavily_search", query="stone arch load"), reply("By compression [1].")],
        reporter=[reply("# Arches\n\nBy compression [1], not by glue [7].\n")],
    )
    found = {"MANIPLE_SEARCH__FOLDER": "documents", "MANIPLE_SEARCH__PROVIDERS": '["folder"]'}
    output = run("guide/first-report.md", script, tmp_path, **LIGHT, **found)
    report = (tmp_path / "results/report.md").read_text()
    assert "folder:arches.md" in report
    assert report.count("[unverified]") == 1
    assert "answer (3)" in output


def test_your_documents_are_read_and_found(tmp_path: Path):
    script = planned(
        *("researcher", "reporter"),
        researcher=[call("tavily_search", query="stone arch load"), reply("By compression [1].")],
        reporter=[reply("By compression [1].\n")],
    )
    with serving(script) as model:
        settings = environment(model.base_url, tmp_path, **LIGHT)
        del settings["MANIPLE_TRUSTED_FOLDERS"], settings["MANIPLE_SEARCH__PROVIDERS"]
        output = read_guide("guide/your-documents.md").run(tmp_path, settings)
    assert "folder:arches.md" in output
    assert "folder:arches.md" in (tmp_path / "answer.md").read_text()


def test_a_chart_is_drawn_of_the_data(tmp_path: Path):
    code = (
        "import pandas, matplotlib.pyplot as plt\n"
        "sales = pandas.read_csv('sales.csv')\n"
        "sales.plot.bar('month', 'sum')\nplt.savefig('sales.png')\nprint(sales.loc[sales['sum'].idxmax()])"
    )
    script = planned(
        *("coder", "reporter"),
        coder=[call("python_repl_tool", code=code), reply("March is best: 160. The chart is `sales.png`.")],
        reporter=[reply("# Sales\n\nMarch is best.\n\n![Sales by month](sales.png)\n")],
    )
    # The packages that `setup.sh` has installed.
    cache = {"MANIPLE_CACHE_DIR": str(user_cache_path("maniple", appauthor=False))}
    run("guide/data-and-charts.md", script, tmp_path, MANIPLE_BROWSER__ENABLED="false", **cache)
    assert (tmp_path / "results/figures/sales.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])
async def test_the_task_in_a_browser_is_done(tmp_path: Path):
    pages = {"/": Reply("<title>Example</title><a href=/more>More</a>"), "/more": Reply("<p>The second page")}
    click = call("browser_use", action="click_element", index=0)
    script = {"browser": [click, call("terminate", status="success", result="To the second page.")]}
    async with open_site(pages) as site:
        with serving(script) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_BROWSER__ALLOW_PRIVATE='["127.0.0.0/8"]')
            guide = read_guide("guide/browser-task.md").at(site.url)
            output = await asyncio.to_thread(guide.run, tmp_path, env)
    assert "To the second page." in output
    assert "GET /more" in {f"{method} {path}" for method, path, _ in site.requests}


def test_each_program_of_the_guide_to_embedding_runs(tmp_path: Path):
    with serving(SIMPLE) as model:
        env = environment(model.base_url, tmp_path, **LIGHT)
        env |= {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.base_url}  # of a model of the program's own
        output = read_guide("guide/embed.md").run(tmp_path, env)
    assert output.count("final_session_state") == 4
    assert "The answer is" in output


def test_a_front_end_can_be_served(tmp_path: Path):
    output = run("guide/serve.md", SIMPLE, tmp_path, **LIGHT)
    assert output.count("event: final_session_state") == 2
    assert "The answer is **4**." in output.splitlines()


def test_own_tools_members_and_skills_are_used(tmp_path: Path):
    line = "Soft rain on the roof"
    read = {"tool_calls": [{"name": "read_skill", "arguments": {"name": "haiku"}}]}
    calls = [read, call("count_syllables", line=line), reply(line)]
    script = planned("poet", "reporter", poet=calls, reporter=[reply(f"{line}.\n")])
    with serving(script) as model:
        settings = environment(model.base_url, tmp_path, **LIGHT)
        del settings["MANIPLE_TRUSTED_FOLDERS"]
        output = read_guide("guide/extend.md").run(tmp_path, settings)
        results = [m["content"] for body in model.requests for m in body["messages"] if m["role"] == "tool"]
    assert line in output
    assert any("its count is right" in result for result in results)
    assert any(re.search(r"^5$", result, re.M) for result in results)


def test_the_commands_of_deploying_run(tmp_path: Path):
    output = run("deploy.md", SIMPLE, tmp_path, **LIGHT)
    assert "alice" in output
    assert (tmp_path / "backup/maniple.db").is_file()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_of_deploying_is_valid(tmp_path: Path):
    unit = tmp_path / "maniple.service"
    text = read_guide("deploy.md").files["maniple.service"]
    unit.write_text(
        re.sub(r"/opt/maniple/.venv/bin/maniple|User=maniple", "", text).replace(
            "ExecStart=", "ExecStart=/bin/true"
        )
    )
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
    assert "maniple.service" not in checked.stderr, checked.stderr
