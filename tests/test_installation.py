"""The command that adds an optional part, by how maniple was installed."""

import json
import subprocess
import sys
from importlib import metadata

import pytest

from maniple import installation
from maniple.installation import installing, pip_command


@pytest.fixture
def installed_from(monkeypatch):
    def choose(origin: dict | None) -> None:
        text = None if origin is None else json.dumps(origin)
        monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda _, name: text)
        installation.is_clone.cache_clear()

    yield choose
    installation.is_clone.cache_clear()


def test_a_clone_is_installed_again_with_the_extra(installed_from):
    installed_from({"url": "file:///x", "dir_info": {"editable": True}})
    assert "-e '.[local]'" in installing("local")


@pytest.mark.parametrize(
    "origin", [None, {"url": "file:///x.whl", "archive_info": {}}, {"url": "file:///x", "dir_info": {}}]
)
def test_a_package_is_named_with_the_extra(installed_from, origin):
    installed_from(origin)
    assert installing("local") == "`pip install 'maniple[local]'`"


@pytest.fixture
def without_pip(monkeypatch):
    find = installation.find_spec
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name == "pip" else find(name))
    pip_command.cache_clear()
    yield
    pip_command.cache_clear()


def test_pip_is_the_installed_one():
    assert pip_command() == (sys.executable, "-m", "pip")


def test_without_pip_the_one_that_python_carries_installs_into_any_environment(without_pip, tmp_path):
    command = pip_command()
    assert command[1].endswith("pip")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    python = tmp_path / "bin/python"
    asked = [*command, "--python", python, "list", "--disable-pip-version-check", "--format=json"]
    assert json.loads(subprocess.run(asked, check=True, capture_output=True).stdout) == []


def test_a_python_that_carries_no_pip_is_asked_for_the_module(without_pip, monkeypatch):
    monkeypatch.setattr(installation, "_carried_pip", lambda: None)
    assert pip_command()[1:] == ("-m", "pip")
