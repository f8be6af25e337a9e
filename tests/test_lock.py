"""The locked versions, which the image installs."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CORE = PROJECT["project"]["dependencies"]
LOCAL = PROJECT["project"]["optional-dependencies"]["local"]
DEV = PROJECT["dependency-groups"]["dev"]
_PIN = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>\S+)[^\n]*\\\n(?P<hashes>(?: +--hash=\S+.*\n?)+)", re.M
)


def pins(name: str) -> dict[str, set[str]]:
    """Return the versions of each locked package; there may be one for each platform."""
    text = (ROOT / "lock" / name).read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for one in _PIN.finditer(text):
        found.setdefault(canonicalize_name(one["name"]), set()).add(one["version"])
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(lines) == sum(map(len, found.values())), "each version has hashes"
    return found


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [("core.txt", [CORE]), ("local.txt", [CORE, LOCAL]), ("dev.txt", [CORE, LOCAL, DEV])],
)
def test_the_lock_has_a_fitting_version_of_all_that_the_project_needs(lock, wanted):
    locked = pins(lock)
    for requirement in map(Requirement, chain.from_iterable(wanted)):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not locked: make lock"
        assert all(requirement.specifier.contains(one) for one in versions), f"{requirement}: make lock"
