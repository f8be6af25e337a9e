"""The wheel, in an environment without the clone: what a user of `pip install maniple` has."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.environment import environment
from tests.openai_server import reply, serving
from tests.serving import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.allow_hosts(["127.0.0.1"])]

SDIST_BYTES = 10_000_000
SECONDS = 300
GREETING = {"coordinator": [reply("Good morning.")]}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel, which is built from the sdist, as `uv build` does it."""
    folder = tmp_path_factory.mktemp("packages")
    _build(ROOT, folder, "sdist")
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    _build(source, folder, "wheel")
    return folder


def _build(source: Path, folder: Path, kind: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=SECONDS)


@pytest.fixture(scope="module")
def maniple(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the wheel, with the packages of this environment but not its maniple."""
    folder = tmp_path_factory.mktemp("environment")
    [wheel] = packages.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=SECONDS)
    python = folder / "bin/python"
    installing = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel]
    subprocess.run(installing, check=True, capture_output=True, timeout=SECONDS)
    [site] = (folder / "lib").glob("python*/site-packages")
    # A folder that a .pth file adds has no .pth files of its own, such as that of the editable maniple.
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin/maniple"


def test_the_wheel_has_each_file_of_the_package_and_the_sdist_no_packages_of_others(packages: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "src/maniple"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    [wheel], [sdist] = packages.glob("*.whl"), packages.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert {name.removeprefix("src/") for name in tracked if name} <= packed
    assert {"maniple/api/page/index.html", "maniple/replay/assets/player.js"} <= packed
    assert sdist.stat().st_size < SDIST_BYTES
    with tarfile.open(sdist) as archive:
        assert not any("node_modules" in name for name in archive.getnames())


def test_a_question_is_answered_in_an_empty_folder(maniple: Path, tmp_path: Path) -> None:
    with serving(GREETING) as model:
        asked = subprocess.run(
            [maniple, "chat", "Good morning"],
            cwd=tmp_path,
            env=environment(model.base_url, tmp_path),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert (asked.returncode, "Good morning." in asked.stdout) == (0, True), asked.stderr


def test_without_a_model_the_extra_and_the_variables_are_named(maniple: Path, tmp_path: Path) -> None:
    env = environment("", tmp_path)
    env = {name: value for name, value in env.items() if not name.startswith("BASIC_")}
    # The engine, which the shared packages have, is hidden.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['xllamacpp'] = None\n", encoding="utf-8"
    )
    env["PYTHONPATH"] = str(tmp_path)
    asked = subprocess.run(
        [maniple, "chat", "Good morning"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert asked.returncode != 0
    assert "BASIC_API_KEY" in asked.stderr
    named = re.search(r"install '(maniple\[local\] @ file:[^']+\.whl)'", asked.stderr)
    assert named is not None, asked.stderr
    # pip takes what is named: all but what it needs, which takes minutes to download.
    trying = [sys.executable, "-m", "pip", "install", "--no-deps", "--dry-run", "--target", tmp_path / "x"]
    subprocess.run([*trying, named[1]], check=True, capture_output=True, timeout=SECONDS)


def test_the_page_is_served(maniple: Path, tmp_path: Path) -> None:
    with serving(GREETING) as model:
        env = environment(model.base_url, tmp_path, MANIPLE_SERVER__PORT="0")
        server = subprocess.Popen(
            [maniple, "serve"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            lines = (re.search(r"Serving on (\S+)", line) for line in server.stdout or ())
            url = next(found[1] for found in lines if found)
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
                assert "<title>" in client.get("/").text
                assert client.get("/healthz").status_code == 200
        finally:
            server.terminate()
            server.communicate(timeout=60)
