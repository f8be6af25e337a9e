"""Keys that were copied from an example are noticed."""

from pathlib import Path

import pytest

from maniple.config import load_settings
from maniple.config.placeholders import is_placeholder

EXAMPLES = (
    *("your key", "your_api_key", "YOUR-API-KEY-HERE", "tvly-YOUR_API_KEY", "<your key>", "你的密钥"),
    *("sk-...", "sk-…", "sk-xxxxxxxx", "sk-****", "<key>", "[API_KEY]", "${OPENAI_API_KEY}"),
    *("changeme", "change-me", "api_key", "token-here", "TODO"),
)
KEYS = (
    "",
    "sk-proj-Ab3dEf9",
    "tvly-dev-8Kq2",
    "EMPTY",
    "none",
    "ollama",
    "k",
    "sk-no-key-required",
    "AIzaSyxxDd0-x",
)


@pytest.mark.parametrize("key", EXAMPLES)
def test_a_key_of_an_example_is_a_placeholder(key: str) -> None:
    assert is_placeholder(key)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_a_provider_or_for_a_server_without_keys_is_none(key: str) -> None:
    assert not is_placeholder(key)


def test_the_notice_names_the_place_and_not_the_value(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("BASIC_API_KEY=your key\nBASIC_MODEL=m\nTAVILY_API_KEY=sk-...\nBRAVE_API_KEY=BSA1x9q\n")
    notices = load_settings(tmp_path / "conf.yaml", env_file=file, environment={}).notices
    found = [one for one in notices if "placeholder" in one]
    assert len(found) == 2
    assert all(f"{file}, line {line} " in one for one, line in zip(sorted(found), (1, 3), strict=True))
    assert "models.basic.api_key" in min(found)
    assert not any("sk-" in one or "your key" in one for one in found)
