"""Which file is taken without fetching."""

import os
from pathlib import Path

import pytest

from maniple.config.settings import EmbeddedSettings
from maniple.errors import ConfigError
from maniple.llms.embedded import SilentProgress, ensure_model_file
from tests.llms.embedded.conftest import Place
from tests.llms.embedded.loopback import serving
from tests.llms.embedded.tiny import CONTENT, Hub, Recorder

pytestmark = pytest.mark.anyio


async def test_a_named_file_is_taken_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"anything")
    assert (
        await ensure_model_file(EmbeddedSettings(model_file=mine), tmp_path / "cache", SilentProgress())
        == mine
    )
    assert not (tmp_path / "cache").exists()


async def test_a_named_file_that_is_missing_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    settings = EmbeddedSettings(model_file=tmp_path / "mine.gguf")
    with pytest.raises(ConfigError, match=r"mine\.gguf .*embedded\.model_file"):
        await ensure_model_file(settings, tmp_path, SilentProgress())


async def test_a_file_that_was_checked_once_is_not_read_again(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(CONTENT)
    first, second = Recorder(), Recorder()
    assert (
        await place.fetch("hub", progress=first) == await place.fetch("hub", progress=second) == place.target
    )
    assert first.said("checking")
    assert second.steps == []


async def test_a_file_that_changed_since_is_checked_again_and_replaced(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(CONTENT)
    await place.fetch("hub")
    place.target.write_bytes(bytes(len(CONTENT)))
    os.utime(place.target, ns=(1, 1))
    async with serving(Hub()) as port:
        await place.fetch("hub", port)
    assert place.target.read_bytes() == CONTENT


async def test_a_cache_that_takes_no_mark_only_costs_a_check_at_each_start(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(CONTENT)
    place.target.with_name(f"{place.target.name}.verified").mkdir()
    assert await place.fetch("hub") == place.target


async def test_a_mark_that_is_damaged_only_costs_a_check(place: Place) -> None:
    place.target.parent.mkdir(parents=True)
    place.target.write_bytes(CONTENT)
    place.target.with_name(f"{place.target.name}.verified").write_text("{")
    assert await place.fetch("hub") == place.target
