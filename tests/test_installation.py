"""The command that adds an optional part, by how maniple was installed."""

import json
from importlib import metadata

import pytest

from maniple import installation
from maniple.installation import installing


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
