"""A package adds a capability by an entry point; the settings name it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from maniple.agents.offers import Offer
from maniple.capabilities import open_capabilities
from maniple.cli.doctor.checks import CheckResult, check_extensions
from maniple.config import Settings
from maniple.errors import ConfigError
from tests.openai_server import call, reply
from tests.team import data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "dictionary-capability"
OFF: dict[str, Any] = {
    "sandbox": {"backend": "off"},
    "browser": {"enabled": False},
    "search": {"providers": []},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example package is installed into."""
    folder = tmp_path_factory.mktemp("site")
    # As an installer does, without its network: the package's files and its metadata.
    subprocess.run(["cp", "-r", str(EXAMPLE / "src" / "maniple_dictionary"), str(folder)], check=True)
    info = folder / "maniple_dictionary-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: maniple-dictionary\nVersion: 0.1.0\n")
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    entry = next(line for line in project.splitlines() if line.startswith("dictionary = "))
    (info / "entry_points.txt").write_text(f"[maniple.capabilities]\n{entry.replace(chr(34), '')}\n")
    return folder


@pytest.fixture
def installed(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example; the program runs in the returned folder."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("maniple_dictionary", None)


async def opened(folder: Path, *names: str, **more: Any) -> Offer:
    values = {
        **OFF,
        **more,
        "capabilities": names,
        "data_dir": folder / "data",
        "cache_dir": folder / "cache",
    }
    async with AsyncExitStack() as stack:
        return await open_capabilities(Settings.model_validate(values), stack)


async def test_a_worker_uses_the_tool_of_an_installed_capability(installed: Path) -> None:
    (installed / "glossary.json").write_text('{"lintel": "A beam above a door."}')
    offer = await opened(installed, "dictionary")
    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [call("look_up", word="lintel"), reply("It is a beam.")],
        "reporter": [reply("# Lintels")],
    }
    async with scripted_team(script, toolbox=offer) as team:
        frames = await team.run("What is a lintel?")
    assert [one["tool_result"] for one in data(frames, "tool_call_result")] == ["A beam above a door."]


async def test_the_doctor_finds_an_unknown_name_in_approval_beside_a_capability(installed: Path) -> None:
    def found(*approval: str) -> list[CheckResult]:
        values = {**OFF, "capabilities": ["dictionary"], "runs": {"approval": approval}}
        return check_extensions(Settings.model_validate(values))

    assert [one.status for one in found("look_up", "bash_tool")] == ["ok"]
    _, unknown = found("look_upp")
    assert unknown.status == "problem"
    assert "runs.approval" in unknown.detail and "look_up?" in unknown.detail


async def test_a_capability_that_is_absent_is_a_notice_with_the_remedy(installed: Path) -> None:
    offer = await opened(installed, "dictionary")
    assert {one.name for one in offer.extra_tools.get("researcher", [])} <= {"note_finding"}
    assert any("glossary.json" in notice for notice in offer.notices)


@pytest.mark.parametrize("has_glossary", [True, False])
async def test_its_tool_can_be_put_under_approval_even_where_it_is_absent(
    installed: Path, has_glossary: bool
) -> None:
    if has_glossary:
        (installed / "glossary.json").write_text("{}")
    await opened(installed, "dictionary", runs={"approval": ["look_up", "bash_tool"]})


async def test_a_tool_that_no_capability_has_cannot_be_put_under_approval(installed: Path) -> None:
    with pytest.raises(ConfigError, match=r"runs\.approval\.0: .*look_up"):
        await opened(installed, "dictionary", runs={"approval": ["lookup"]})


async def test_an_installed_capability_that_the_settings_do_not_name_is_not_loaded(installed: Path) -> None:
    await opened(installed)
    assert "maniple_dictionary" not in sys.modules


async def test_an_unknown_capability_is_a_mistake_in_the_settings(installed: Path) -> None:
    with pytest.raises(ConfigError, match=r"capabilities\.0: .*dictionary"):
        await opened(installed, "dictionry")


async def test_a_capability_that_cannot_be_loaded_names_its_entry_point(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = installed / "other"
    info = broken / "broken-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[maniple.capabilities]\nbroken = no_such_module:Thing\n")
    monkeypatch.syspath_prepend(str(broken))
    with pytest.raises(ConfigError, match="no_such_module:Thing"):
        await opened(installed, "broken")
