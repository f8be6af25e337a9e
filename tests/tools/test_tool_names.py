"""The names that the page has for the product's tools."""

import re
from pathlib import Path

import pytest

from maniple.tools.registry import TOOLS, load_tools

TEXTS = Path(__file__).parents[2] / "web/src/texts"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_names_each_tool_in_words(language: str):
    load_tools()
    text = (TEXTS / f"{language}.ts").read_text(encoding="utf-8")
    block = text.partition("  toolNames: {\n")[2].partition("\n  }")[0]
    named = dict(re.findall(r'^ {4}(\w+): "(.+)",$', block, re.MULTILINE))
    assert [name for name in TOOLS.names if name not in named] == []
    assert [name for name in TOOLS.names if "_" in named[name]] == []
