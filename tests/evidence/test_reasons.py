"""The reasons of the checks: their sentences, and those that the page has for them."""

import re
from pathlib import Path

import pytest

from maniple.evidence.reasons import ReasonCode, explain, join_sentences

TEXTS = Path(__file__).parents[2] / "web/src/texts"
SOURCES = Path(__file__).parents[2] / "src/maniple"
_VALUE = re.compile(r"\{(\w+)\}")


def read_sentences(language: str) -> dict[str, str]:
    """Return the sentences of the page by code."""
    text = (TEXTS / f"{language}.ts").read_text(encoding="utf-8")
    block = text.partition("  reasons: {\n")[2].partition("\n  }")[0]
    return dict(re.findall(r'^ {4}(\w+): "(.+)",$', block, re.MULTILINE))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_a_sentence_with_the_same_values_for_each_reason(language):
    expected = {one.value: sorted(_VALUE.findall(one.sentence)) for one in ReasonCode}
    found = {code: sorted(_VALUE.findall(text)) for code, text in read_sentences(language).items()}
    assert found == expected


def test_each_reason_is_given_somewhere():
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    assert [one.name for one in ReasonCode if f"ReasonCode.{one.name}" not in code] == []


def test_reasons_have_their_values_and_are_joined():
    reasons = explain(ReasonCode.OTHER_VALUE, source="[1]", found="1936 m", value="2136 m")
    assert join_sentences(reasons) == "[1] has 1936 m, not 2136 m"
    both = join_sentences(reasons + explain(ReasonCode.INSTEAD, found="{value}"))
    assert "1936 m" in both and both.endswith("{value}")
    assert join_sentences(()) == ""


def test_a_reason_without_one_of_its_values_is_refused():
    with pytest.raises(KeyError):
        explain(ReasonCode.OTHER_VALUE, source="[1]", found="1936 m")
