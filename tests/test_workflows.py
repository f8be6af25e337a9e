"""The workflows of GitHub: what they call exists, their actions are pinned, their rights are small.

Nothing here can run them; what is tested is what a run would stumble over first.
"""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.serving import ROOT

FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
SCRIPTS = ("image", "package", "run", "try")
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
PROGRAMS = {"apt-get", "docker", "for", "do", "done", "git", "make", "python", "test", "uv", "name"}
"""What a runner, the shell or an earlier step of a job provides."""
RIGHTS = {
    ("release", "pypi"): {"id-token": "write"},
    ("release", "image"): {"contents": "read", "packages": "write"},
    ("docs", "publish"): {"id-token": "write", "pages": "write"},
}
"""Jobs that may do more than read the repository."""


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, content in workflow["jobs"].items():
            yield name, job, content


def commands() -> list[str]:
    """Return the commands of all jobs, without their line breaks."""
    lines = [
        line
        for _, _, job in jobs()
        for step in job.get("steps", [])
        for line in step.get("run", "").splitlines()
    ]
    return [part.strip() for line in lines for part in line.split("&&") if part.strip()]


def triggers(workflow: str) -> dict[str, Any]:
    """Return what starts a workflow; YAML 1.1 reads its key `on` as true."""
    return WORKFLOWS[workflow][True]


def test_there_is_a_workflow_for_changes_releases_and_the_manual() -> None:
    assert {"check", "docs", "release"} == set(WORKFLOWS)
    assert {"push", "pull_request"} <= set(triggers("check"))
    assert triggers("release") == {"push": {"tags": ["v*"]}}


def test_every_action_of_another_repository_is_pinned_to_a_commit() -> None:
    used = [
        line.strip().removeprefix("- ")
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert used
    others = [line for line in used if "uses: ./" not in line]
    assert [line for line in others if not PINNED.fullmatch(line)] == []


def test_a_workflow_of_this_repository_that_is_used_exists() -> None:
    used = [job["uses"] for _, _, job in jobs() if "uses" in job]
    assert used
    assert [path for path in used if not (ROOT / path).is_file()] == []


def test_only_what_publishes_may_write() -> None:
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
    given = {(name, job): content["permissions"] for name, job, content in jobs() if "permissions" in content}
    assert given == RIGHTS


def test_no_step_stores_the_token_of_the_repository() -> None:
    steps = [step for _, _, job in jobs() for step in job.get("steps", [])]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_command_contains_an_expression_that_others_can_write() -> None:
    """Names of branches and titles of requests are written by anybody: commands read variables instead."""
    assert [line for line in commands() if "${{" in line] == []


def test_each_job_has_a_limit_of_time() -> None:
    assert [
        job for _, job, content in jobs() if "uses" not in content and "timeout-minutes" not in content
    ] == []


def test_every_command_of_a_step_is_known() -> None:
    called = [re.split(r"[\s=]", line)[0] for line in commands()]
    scripts = {word for word in called if word.startswith(".ci/")}
    assert scripts
    assert [word for word in sorted(set(called) - scripts) if word not in PROGRAMS] == []
    assert [word for word in scripts if not os.access(ROOT / word, os.X_OK)] == []


def test_the_targets_of_make_that_are_called_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = [shlex.split(line)[1] for line in commands() if line.startswith("make ")]
    assert called
    assert [target for target in called if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_the_pythons_are_those_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = project["requires-python"].removeprefix(">=")
    versions = WORKFLOWS["check"]["jobs"]["package"]["strategy"]["matrix"]["python"]
    assert versions[0] == lowest
    tried = re.search(r"^for version in (.+); do$", (ROOT / ".ci/try").read_text(encoding="utf-8"), re.M)
    assert tried is not None
    assert tried[1].split() == versions
    set_up = [
        step["with"]["python-version"]
        for _, _, job in jobs()
        for step in job.get("steps", [])
        if step.get("uses", "").startswith("actions/setup-python@")
    ]
    assert set(set_up) == {lowest, "${{ matrix.python }}"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_ci_is_valid_bash(name: str) -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / name], check=True, timeout=60)


def test_a_python_that_is_absent_is_named_and_no_failure(tmp_path) -> None:
    (tmp_path / "python3.12").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (tmp_path / "python3.12").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    for name in ("python3.11", "python3.13"):
        (tmp_path / name).symlink_to(tmp_path / "python3.12")
    tried = subprocess.run(
        [ROOT / ".ci/try", ROOT, "--others"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (tried.returncode, tried.stderr) == (0, "")
    assert "3.12: not on" in tried.stdout
