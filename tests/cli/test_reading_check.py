"""What the doctor reports about reading pages."""

from typing import Any

import pytest
from pydantic import SecretStr

from maniple.cli.doctor.checks import check_reading
from maniple.config import FetchSettings, Settings

KEY = SecretStr("jina-key")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "directly, respecting robots.txt; HTML, PDF, Word, RSS, Atom, JSON, CSV, text, pictures"),
        ({"jina_api_key": KEY}, "through Jina's reader (JINA_API_KEY), or else directly"),
        ({"jina": "fallback"}, "or else through Jina's reader (without a key)"),
        ({"jina": "always", "jina_api_key": KEY}, "only through Jina's reader (JINA_API_KEY)"),
        ({"robots": False}, "ignoring robots.txt"),
        ({"allow_private": ("10.0.0.0/8",)}, "private networks: 10.0.0.0/8"),
    ],
)
def test_the_check_names_the_fetchers_the_rules_and_the_formats(options: dict[str, Any], said: str) -> None:
    finding = check_reading(Settings(fetch=FetchSettings(**options)))
    assert finding.status == "ok"
    assert said in finding.detail
    assert "jina-key" not in str(finding)


def test_a_key_that_is_never_used_is_a_warning() -> None:
    finding = check_reading(Settings(fetch=FetchSettings(jina="never", jina_api_key=KEY)))
    assert finding.status == "warning"
    assert "fetch.jina: auto" in finding.remedy
