"""The rules of the codebase that no linter checks."""

import subprocess
import sys
from pathlib import Path

import maniple
from tests.environment import environment

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
HEAVY = {
    "fastapi",
    "playwright",
    "uvicorn",
    "xllamacpp",
    "openai",
    "langchain",
    "langgraph",
    "tavily",
    "ddgs",
    "readabilipy",
}


LOADED_WHEN_NEEDED = {"openai", "langchain_openai", "tiktoken", "maniple.llms.chat", "nh3", "markdown_it"}


def imported_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_no_framework_server_or_browser():
    assert imported_by("import maniple") & HEAVY == set()


def test_the_http_service_loads_no_markdown_parser_and_no_live_view_of_the_terminal():
    loaded = imported_by("import maniple.cli.services, maniple.api, maniple.report_files")
    assert {"uvicorn", "fastapi", "maniple.cli.render"} <= loaded
    assert loaded & {"maniple.cli.render.terminal", "rich.markdown", "markdown_it"} == set()


def test_an_open_server_has_loaded_neither_the_clients_of_models_nor_parts_of_reports(tmp_path):
    opening = """
import asyncio
from maniple.app import open_app
from maniple.cli.services import serve
from maniple.api import create_app
from maniple.config import load_settings

async def open_and_list():
    async with open_app(load_settings(), kind="server") as app:
        print(*sys.modules)
        await app.runtime.models.load()
        print(*sys.modules)
"""
    code = f"import sys\n{opening}\nasyncio.run(open_and_list())"
    env = environment("http://127.0.0.1:9/v1", tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    opened, loaded = (set(line.split()) for line in done.stdout.splitlines()[-2:])
    assert {"fastapi", "langgraph", "maniple.runs"} <= opened
    assert opened & LOADED_WHEN_NEEDED == set()
    assert loaded >= {"openai", "langchain_openai"}


def test_opening_a_team_loads_no_server_and_no_browser():
    loaded = imported_by("import maniple; maniple.open_team; maniple.stream_run")
    assert loaded & {"fastapi", "playwright", "uvicorn", "xllamacpp", "readabilipy", "tavily"} == set()


def test_help_comes_at_once_for_it_loads_no_framework():
    asked = "import maniple.cli; from contextlib import suppress; import io, sys; shown = sys.stdout\n"
    asked += "sys.stdout, sys.argv = io.StringIO(), ['maniple', '--help']\n"
    asked += "with suppress(SystemExit): maniple.cli.main()\nsys.stdout = shown"
    assert imported_by(asked) & HEAVY == set()


def test_every_public_name_is_there():
    assert {"open_team", "build_graph", "stream_run", "load_settings"} <= set(maniple.__all__)
    assert [name for name in maniple.__all__ if getattr(maniple, name, None) is None] == []


def test_no_module_is_longer_than_800_lines():
    sizes = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in SOURCE.rglob("*.py")}
    assert {str(path): size for path, size in sizes.items() if size > 800} == {}


def test_every_module_has_a_docstring():
    silent = [
        str(path)
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py" and not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


def test_the_import_contracts_hold():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
