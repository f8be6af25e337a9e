"""The changelog: what a user can do with a version, and not how it came about."""

import re
from importlib.metadata import version as version_of

from tests.serving import ROOT

MAX_WORDS = 1_000
_VERSION = re.compile(r"^## (\S+).*\n", re.M)


def test_each_version_is_described_in_few_words():
    _, *parts = _VERSION.split((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    words = {version: len(text.split()) for version, text in zip(parts[::2], parts[1::2], strict=True)}
    assert version_of("maniple") in words
    assert {version: count for version, count in words.items() if count > MAX_WORDS} == {}
