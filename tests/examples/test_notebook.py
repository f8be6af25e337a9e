"""examples/notebook.ipynb: its cells run, and show the report and the picture of a real run."""

import json
import sys
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from tests.examples.programs import EXAMPLES, run_command
from tests.openai_server import SIMPLE, call, reply, serving
from tests.pictures import png
from tests.serving import ROOT, environment

NOTEBOOK = EXAMPLES / "notebook.ipynb"
PICTURE = png(2, 2)
CODE = f"open('squares.png', 'wb').write(bytes.fromhex('{PICTURE.hex()}'))"
SCRIPT = {
    **SIMPLE,
    "coder": [call("python_repl_tool", code=CODE), reply("The chart is `squares.png`.")],
    "reporter": [reply("# Squares\n\n![Squares](squares.png)\n")],
}


@pytest.mark.slow
def test_a_run_is_streamed_and_its_report_and_picture_are_shown(tmp_path: Path):
    with serving(SCRIPT) as model:
        env = environment(model.base_url, tmp_path, MANIPLE_BROWSER__ENABLED="false", PYTHONPATH=str(ROOT))
        # The packages that `setup.sh` has installed.
        env["MANIPLE_CACHE_DIR"] = str(user_cache_path("maniple", appauthor=False))
        output = run_command([sys.executable, "-m", "tests.examples.cells", str(NOTEBOOK)], tmp_path, env)
    (kind, report), (other, picture) = json.loads((tmp_path / "displayed.json").read_text())
    assert (kind, other) == ("markdown", "image")
    assert report.startswith("# Squares")
    assert bytes.fromhex(picture) == PICTURE
    assert "coder works" in output and "completed" in output


def test_it_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
