"""Installing the sandbox's packages with the real pip, from wheels of our own."""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox import open_sandbox, package_environment
from maniple.sandbox.bubblewrap import SandboxLayout
from maniple.sandbox.host import find_python
from maniple.sandbox.package_environment import (
    PackageEnvironment,
    find_broken_packages,
    find_environment,
    install_packages,
)
from maniple.workspace import Workspaces
from tests.sandbox.wheels import offline_index, write_wheel

pytestmark = pytest.mark.anyio


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return offline_index(tmp_path, monkeypatch)


def environment(folder: Path, *requirements: str) -> PackageEnvironment:
    base = find_python(None)
    return PackageEnvironment(folder / "cache/sandbox/key", base, requirements)


def nobody(words: str) -> None:
    """Discard the progress."""


@dataclass(frozen=True)
class Installation:
    """An environment with the package `tiny`, made by an operator whose new files are private."""

    environment: PackageEnvironment
    progress: list[str]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As for all tests, but for a whole module: its tests share an installation."""
    return "asyncio"


@pytest.fixture(scope="module")
async def installation(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("installation")
    made, progress = environment(folder, "tiny==1.0"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        write_wheel(offline_index(folder, patch), "tiny")
        before = os.umask(0o077)
        try:
            await install_packages(made, progress.append)
        finally:
            os.umask(before)
    return Installation(made, progress)


async def test_an_installation_is_complete_and_names_its_versions(installation: Installation) -> None:
    made = installation.environment
    assert (made.is_ready, made.installed()) == (True, ("tiny 1.0",))
    assert installation.progress == ["making a virtual environment", "installing them", "compiling them"]
    assert list(made.path.glob("lib/*/site-packages/__pycache__/tiny.*.pyc"))


async def test_a_complete_installation_is_not_changed(installation: Installation) -> None:
    said: list[str] = []
    await install_packages(installation.environment, said.append, pip=("/nonexistent",))
    assert said == []


async def test_two_programs_make_it_once(tmp_path: Path, wheels: Path) -> None:
    write_wheel(wheels, "tiny")
    said: list[str] = []
    made = environment(tmp_path, "tiny")
    await asyncio.gather(install_packages(made, said.append), install_packages(made, said.append))
    assert said.count("making a virtual environment") == 1
    assert any(text.startswith("waiting for another program") for text in said)
    assert made.is_ready


async def test_others_can_read_it_however_private_the_operator_is(installation: Installation) -> None:
    made = installation.environment
    closed = [path for path in made.path.rglob("*") if not path.stat().st_mode & 0o004]
    assert [path.name for path in closed if path.parent != made.path] == []
    assert made.path.stat().st_mode & 0o005


STUBBORN = """
import os, pathlib, sys, time
if "install" in sys.argv:
    pathlib.Path(os.environ["NOTE"]).write_text(str(os.getpid()))
    print("Installing everything", flush=True)
    time.sleep(600)
"""


async def test_a_cancelled_installation_leaves_no_process_and_no_folder(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, note = tmp_path / "pip.py", tmp_path / "note"
    program.write_text(STUBBORN)
    monkeypatch.setenv("NOTE", str(note))
    made = environment(tmp_path, "tiny")
    begun = asyncio.Event()

    def say(words: str) -> None:
        if words == "installing them":
            begun.set()

    installing = asyncio.create_task(install_packages(made, say, pip=(sys.executable, str(program))))
    async with asyncio.timeout(60):
        await begun.wait()
        installing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await installing
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    assert [path.name for path in made.path.parent.iterdir()] == ["lock"]


async def test_what_a_killed_installation_left_is_removed_by_the_next(tmp_path: Path, wheels: Path) -> None:
    write_wheel(wheels, "tiny")
    made = environment(tmp_path, "tiny")
    (made.path.parent / "tmpabc.part/bin").mkdir(parents=True)
    made.path.mkdir()  # renamed and not marked cannot be; but whoever made it, it is not whole
    await install_packages(made, nobody)
    assert sorted(path.name for path in made.path.parent.iterdir()) == ["key", "lock"]
    assert made.is_ready


async def test_a_package_that_does_not_exist_is_reported_in_pips_words(tmp_path: Path, wheels: Path) -> None:
    made = environment(tmp_path, "nowhere-to-be-found")
    with pytest.raises(SandboxError, match=r"distribution found for nowhere.*sandbox\.packages"):
        await install_packages(made, nobody)
    assert not made.is_ready


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("WARNING: Retrying (Retry(total=4))\nERROR: No matching distribution", "Check the network"),
        ("ERROR: [Errno 28] No space left on device", "no room for the sandbox's packages in .* make room"),
        ("/usr/bin/python3: No module named pip", "pip is missing: run `.* -m ensurepip`"),
    ],
)
async def test_what_keeps_pip_from_installing_is_reported_with_what_to_do(
    said: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(SandboxError, match=words):
        await install_packages(environment(tmp_path, "tiny"), nobody, pip=_failing(tmp_path, said))


def _failing(folder: Path, said: str) -> tuple[str, ...]:
    program = folder / "pip.py"
    program.write_text(f"import sys\nprint({said!r})\nsys.exit(1)\n")
    return (sys.executable, str(program))


async def test_a_disk_without_room_is_reported_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_environment, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(SandboxError, match=r"set cache_dir"):
        await install_packages(environment(tmp_path, "tiny"), nobody, pip=("/nonexistent",))


async def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(SandboxError, match=r"Set cache_dir"):
        await install_packages(environment(tmp_path, "tiny"), nobody)


@pytest.fixture
def own_packages(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxSettings]:
    """Settings whose environment is made of two wheels: one that works, and one that cannot be imported."""
    write_wheel(wheels, "tiny")
    write_wheel(wheels, "broken", source="import nothing_of_that_name\n")
    monkeypatch.setattr("maniple.sandbox.package_environment._lines", lambda name: ())
    yield SandboxSettings(packages=("tiny", "broken"))


async def test_what_is_installed_is_there_in_the_sandbox_and_cannot_be_changed(
    tmp_path: Path, own_packages: SandboxSettings
) -> None:
    made = find_environment(own_packages, tmp_path / "cache")
    assert made is not None
    await install_packages(made, nobody)
    workspace = Workspaces(tmp_path / "workspaces").open("t")
    async with open_sandbox(own_packages, cache_dir=tmp_path / "cache") as sandbox:
        imported = await sandbox.run_python("import tiny; tiny.VERSION", key="t", workspace=workspace)
        assert imported.value == "'1.0'", imported.text()
        script = await sandbox.run_bash("tiny", key="t", workspace=workspace)
        assert script.stdout == "tiny /opt/python/bin/python\n", script.text()
        write = await sandbox.run_bash("touch /opt/python/x", key="t", workspace=workspace)
        assert "Read-only file system" in write.stderr
        look = await sandbox.run_bash("env; mount", key="t", workspace=workspace)
        assert str(tmp_path) not in look.stdout.replace("/workspace", ""), "the host's paths are its own"


@pytest.mark.slow
async def test_the_inspection_finds_what_cannot_be_imported(
    tmp_path: Path, own_packages: SandboxSettings
) -> None:
    made = find_environment(own_packages, tmp_path / "cache")
    assert made is not None
    await install_packages(made, nobody)
    async with open_sandbox(own_packages, cache_dir=tmp_path / "cache") as sandbox:
        broken = await find_broken_packages(made, sandbox)
    assert broken == {"broken": "ModuleNotFoundError: No module named 'nothing_of_that_name'"}
    assert made.font_list() is None


async def test_without_an_environment_the_sandbox_has_plain_python(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path / "workspaces").open("t")
    async with open_sandbox(SandboxSettings(), cache_dir=tmp_path / "cache") as sandbox:
        plain = await sandbox.run_python("import sys; sys.prefix", key="t", workspace=workspace)
    assert plain.value.startswith("'/usr"), plain.text()
    assert SandboxLayout().python == ""
