"""A setting is a field of a section; files and variables find it without another line of code."""

from pathlib import Path

import pytest
from pydantic import Field

import maniple.config.load as loader
from maniple.config import Settings
from maniple.config.values import Section
from maniple.config.web_settings import SearchSettings
from maniple.errors import ConfigError


class LargerSearchSettings(SearchSettings):
    blocked_hosts: tuple[str, ...] = ()
    cache_seconds: float = Field(default=60, gt=0)


class LargerSettings(Settings):
    search: LargerSearchSettings = LargerSearchSettings()  # pyright: ignore[reportIncompatibleVariableOverride]


@pytest.fixture
def load(monkeypatch, tmp_path):
    monkeypatch.setattr(loader, "Settings", LargerSettings)

    def from_sources(yaml: str = "", dotenv: str = "", **environment: str) -> LargerSearchSettings:
        (tmp_path / "conf.yaml").write_text(yaml)
        (tmp_path / ".env").write_text(dotenv)
        settings = loader.load_settings(
            tmp_path / "conf.yaml", env_file=tmp_path / ".env", environment=environment
        )
        assert isinstance(settings, LargerSettings)
        return settings.search

    return from_sources


def test_the_file_the_env_file_and_the_environment_set_it_in_this_order(load):
    assert load().cache_seconds == 60
    assert load("search: {cache_seconds: 5}").cache_seconds == 5
    assert load("search: {cache_seconds: 5}", "MANIPLE_SEARCH__CACHE_SECONDS=6").cache_seconds == 6
    both = load("", "MANIPLE_SEARCH__CACHE_SECONDS=6", MANIPLE_SEARCH__CACHE_SECONDS="7")
    assert both.cache_seconds == 7


@pytest.mark.parametrize("text", ["a.test, b.test", "a.test b.test", '["a.test", "b.test"]'])
def test_a_list_is_read_from_a_variable_by_the_type_of_its_field(load, text):
    assert load(MANIPLE_SEARCH__BLOCKED_HOSTS=text).blocked_hosts == ("a.test", "b.test")


def test_a_mistake_in_it_is_reported_with_its_place_and_key(load, tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load("search:\n  cache_seconds: -1\n")
    assert f"{tmp_path / 'conf.yaml'}:2" in str(caught.value) or "line 2" in str(caught.value)
    assert "search.cache_seconds" in str(caught.value)


def test_a_text_with_commas_stays_a_text_if_no_list_is_expected():
    class Named(Section):
        name: str = ""

    assert Named.model_validate({"name": "a, b"}).name == "a, b"
