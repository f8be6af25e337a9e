"""examples/README.md has every example, and each example says at its top how it is started."""

import ast
import re

import pytest

from tests.examples.programs import EXAMPLES

MAX_LINES = 12
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
PROGRAMS = [path for path in sorted(EXAMPLES.iterdir()) if path.suffix in (".py", ".ts", ".html")]


def test_the_table_has_every_example_and_no_other():
    linked = {link.split("/")[0] for link in re.findall(r"^\| \[.*?\]\((.*?)\)", README, re.M)}
    assert linked == {
        path.name for path in EXAMPLES.iterdir() if path.name not in ("README.md", "__pycache__")
    }
    assert len(linked) == 9


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_its_first_lines_say_how_it_is_started(path):
    text = path.read_text(encoding="utf-8")
    top = ast.get_docstring(ast.parse(text)) if path.suffix == ".py" else re.split(r"\*/|-->", text)[0]
    assert top is not None and len(top.strip().splitlines()) <= MAX_LINES
    assert re.search(rf"^    (python|node|open) .*{re.escape(path.name)}", top, re.M)
