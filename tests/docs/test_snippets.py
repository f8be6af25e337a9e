"""The README's program runs unchanged, and what the pages name exists; test_guides.py runs the guides."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.openai_server import SIMPLE, serving
from tests.serving import ROOT, environment
from tests.sizes import rest_is_slow

_PYTHON = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


@pytest.mark.parametrize("name", rest_is_slow(["README.md", "README.zh.md"], 1))
def test_the_program_of_the_readme_runs_as_it_is(tmp_path: Path, name: str):
    [code] = _PYTHON.findall((ROOT / name).read_text(encoding="utf-8"))
    with serving(SIMPLE) as server:
        env = environment(server.base_url, tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    assert "final_session_state" in done.stdout


def test_the_readme_in_chinese_has_the_links_code_and_figures_of_the_other():
    english, chinese = (_facts((ROOT / name).read_text("utf-8")) for name in ("README.md", "README.zh.md"))
    assert english == chinese


def _facts(text: str) -> tuple[list[str], list[str], list[list[str]]]:
    """Return the links (but to the other language), the inline code, and each reason's figures."""
    links = sorted(set(re.findall(r"\]\(([^)]+)\)", text)) - {"README.md", "README.zh.md"})
    code = sorted(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text))
    reasons = re.findall(r"^\d\. .*(?:\n   .*)*", text, re.M)
    return links, code, [sorted(re.findall(r"\d+", one)) for one in reasons]


def test_every_relative_link_of_the_guides_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_pages_for_developers_name_files_and_classes_that_exist():
    files = [str(path) for top in ("src", "tests", "web/src", "docs") for path in (ROOT / top).rglob("*.*")]
    sources = ("src/**/*.py", "tests/**/*.py", "web/src/**/*.ts*")
    code = "\n".join(path.read_text(encoding="utf-8") for kind in sources for path in ROOT.glob(kind))
    defined = set(re.findall(r"\b[A-Z]\w+", code))
    missing = []
    for page in ("CONTRIBUTING.md", "AGENTS.md", "docs/architecture.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        # The glossary's first column holds the names that are not used any more.
        text, _, glossary = text.partition("### Glossary")
        text += re.sub(r"^\|.*?\|", "", glossary, flags=re.M)
        for name in re.findall(r"`([^`\s]+)`", text):
            if name.endswith((".py", ".ts")) and name.islower():
                known = any(file.endswith(f"/{name.removeprefix('../')}") for file in files)
            else:
                known = not re.fullmatch(r"[A-Z][a-z]\w+", name) or name in defined
            missing += [] if known else [f"{page}: {name}"]
    assert missing == []
