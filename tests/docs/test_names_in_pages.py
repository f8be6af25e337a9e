"""What the pages of the manual name exists: settings, metrics and the messages of the program."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from maniple.config import Settings
from tests.serving import ROOT

PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)
_KEY = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+)(?::[^`]*)?`")
_FILES = (
    ".py",
    ".md",
    ".yaml",
    ".db",
    ".json",
    ".log",
    ".gif",
    ".ts",
    ".js",
    ".csv",
    ".txt",
    ".zip",
    ".html",
)


def has_setting(keys: list[str]) -> bool:
    """Whether the settings tree has this key; below mappings and lists every key may be one."""
    model: type[BaseModel] = Settings
    for key in keys:
        field = model.model_fields.get(key)
        if field is None:
            return False
        inner = [
            kind
            for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
            if is_section(kind)
        ]
        if not inner:
            return True
        model = inner[0]
    return True


def is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_every_setting_that_a_page_names_exists(page: Path):
    named = {key for key in _KEY.findall(page.read_text(encoding="utf-8")) if not key.endswith(_FILES)}
    sections = {key for key in named if key.split(".")[0] in Settings.model_fields}
    assert {key for key in sections if not has_setting(key.split("."))} == set()


def test_every_message_of_troubleshooting_is_one_of_the_program():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    program = re.sub(r'"\s*\n\s*f?"', "", text)  # texts that are joined over lines
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (?!you see|---)(.*?) \|", page, re.M)
    quoted = [quote for cell in cells for quote in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > 20
    assert [quote for quote in quoted if quote not in program] == []


def test_every_metric_that_a_page_names_exists():
    modules = (ROOT / "src/maniple/telemetry").glob("*metrics.py")
    program = "".join(path.read_text(encoding="utf-8") for path in modules)
    for page in PAGES:
        for name in re.findall(r"`(maniple_[a-z_]+)`", page.read_text(encoding="utf-8")):
            if not name.startswith("maniple_calls"):
                assert f'"{name.removesuffix("_total")}"' in program, (page.name, name)
