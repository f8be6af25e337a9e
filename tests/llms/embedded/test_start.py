"""Starting the embedded model when it cannot start."""

import os
import sys
from pathlib import Path

import pytest

from maniple.config.settings import EmbeddedSettings
from maniple.errors import ConfigError, EmbeddedModelError
from maniple.llms.embedded import SilentProgress, open_embedded
from tests.llms.embedded.processes import model_processes
from tests.llms.embedded.tiny import Recorder

pytestmark = pytest.mark.anyio


async def test_without_the_engine_nothing_is_fetched_and_the_error_has_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    cache_dir = tmp_path / "cache"
    with pytest.raises(EmbeddedModelError, match=r"pip install -e '\.\[local\]'.*BASIC_API_KEY"):
        async with open_embedded(EmbeddedSettings(), cache_dir, SilentProgress()):
            pass
    assert not cache_dir.exists()


async def test_a_file_that_is_no_model_is_named_with_the_engines_message(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "notes.gguf"
    file.write_text("these are my notes")
    recorder = Recorder()
    with pytest.raises(EmbeddedModelError, match=r"notes\.gguf could not.*magic.*BASIC_API_KEY"):
        async with open_embedded(EmbeddedSettings(model_file=file), tmp_path, recorder):
            pass
    assert recorder.said("loading the model (0 s)")
    assert model_processes(os.getpid()) == []


async def test_a_start_that_takes_too_long_is_ended_and_names_the_setting(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "notes.gguf"
    file.write_text("these are my notes")
    settings = EmbeddedSettings(model_file=file, start_timeout_seconds=0.001)
    with pytest.raises(EmbeddedModelError, match=r"not ready within .*embedded\.start_timeout_seconds"):
        async with open_embedded(settings, tmp_path, SilentProgress()):
            pass
    assert model_processes(os.getpid()) == []


async def test_a_missing_model_file_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(ConfigError):
        async with open_embedded(EmbeddedSettings(model_file=tmp_path / "none"), tmp_path, SilentProgress()):
            pass
