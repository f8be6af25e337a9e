"""The command that adds an optional part, by how maniple was installed."""

import json
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from maniple import installation
from maniple.installation import installing, pip_command


def forget():
    for cached in (installation.is_clone, installation._read_origin, installation._command_of_installer):
        cached.cache_clear()


@pytest.fixture
def installed_from(monkeypatch):
    """Take maniple for one that came from there, in the environment of a folder."""

    def choose(origin: dict | None, prefix: Path | None = None) -> None:
        text = None if origin is None else json.dumps(origin)
        monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda _, name: text)
        if prefix is not None:
            monkeypatch.setattr(sys, "prefix", str(prefix))
            monkeypatch.setattr(sys, "executable", str(prefix / "bin/python"))
        forget()

    yield choose
    forget()


def test_a_clone_is_installed_again_with_the_extra(installed_from):
    installed_from({"url": "file:///x", "dir_info": {"editable": True}})
    assert "-e '.[local]'" in installing("local")


def test_sources_alone_are_a_clone(installed_from, monkeypatch):
    def missing(_):
        raise metadata.PackageNotFoundError

    installed_from(None)
    monkeypatch.setattr(installation, "distribution", missing)
    assert "-e '.[local]'" in installing("local")


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "maniple[local]"),
        ({"url": "file:///a%20b/x.whl", "archive_info": {}}, "maniple[local] @ file:///a%20b/x.whl"),
        ({"url": "file:///x", "dir_info": {}}, "maniple[local] @ file:///x"),
        (
            {"url": "https://a.b/m.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}, "subdirectory": "m"},
            "maniple[local] @ git+https://a.b/m.git@1f#subdirectory=m",
        ),
    ],
    ids=["index", "wheel", "folder", "repository"],
)
def test_a_package_is_named_with_the_extra_and_where_it_came_from(installed_from, origin, requirement):
    installed_from(origin)
    assert f" install {shlex.quote(requirement)}`" in installing("local")
    parsed = Requirement(requirement)
    assert (parsed.name, parsed.extras) == ("maniple", {"local"})


_BY_UV = "home = /usr/bin\nuv = 0.13.9\n"


@pytest.mark.parametrize(
    ("folder", "files", "command"),
    [
        ("tools/maniple", {"uv-receipt.toml": "", "pyvenv.cfg": _BY_UV}, "uv tool install {}"),
        ("cache/archive-v0/Xy", {"pyvenv.cfg": _BY_UV}, "uvx --from {} maniple"),
        ("venv", {"pyvenv.cfg": _BY_UV}, "uv pip install --python {python} {}"),
        ("pipx", {"pipx_metadata.json": "{}", "pyvenv.cfg": "home = /usr/bin"}, "pipx install --force {}"),
        ("an {odd} venv", {"pyvenv.cfg": "home = /usr/bin"}, "{python} -m pip install {}"),
        ("system", {}, "{python} -m pip install {}"),
    ],
    ids=["uv tool", "uvx", "uv venv", "pipx", "venv", "none"],
)
def test_the_command_is_that_of_what_made_the_environment(installed_from, tmp_path, folder, files, command):
    prefix = tmp_path / folder
    prefix.mkdir(parents=True)
    for name, text in files.items():
        (prefix / name).write_text(text, encoding="utf-8")
    installed_from(None, prefix)
    python = shlex.quote(str(prefix / "bin/python"))
    assert installing("local") == f"`{command.format(shlex.quote('maniple[local]'), python=python)}`"


@pytest.fixture
def without_pip(monkeypatch):
    find = installation.find_spec
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name == "pip" else find(name))
    pip_command.cache_clear()
    yield
    pip_command.cache_clear()


def test_pip_is_the_installed_one():
    assert pip_command() == (sys.executable, "-m", "pip")


@pytest.mark.slow
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
