"""What is remembered of endpoints."""

import json
import time

import pytest

from maniple.llms.capabilities import CapabilityCache
from maniple.shared_texts import TextFolder

pytestmark = pytest.mark.anyio


async def test_what_was_learned_is_known_to_the_next_process(tmp_path):
    path = tmp_path / "new" / "capabilities.json"
    await CapabilityCache(TextFolder(path.parent)).store("http://e", "m", {"tools": False})
    assert CapabilityCache(TextFolder(path.parent)).of("http://e", "m") == {"tools": False}
    assert CapabilityCache(TextFolder(path.parent)).of("http://e", "other") == {}


async def test_after_a_week_it_is_probed_again(tmp_path):
    path = tmp_path / "capabilities.json"
    entry = {"at": time.time() - 8 * 24 * 3600, "features": {"tools": False}}
    path.write_text(json.dumps({"http://e m": entry}), encoding="utf-8")
    assert CapabilityCache(TextFolder(path.parent)).of("http://e", "m") == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"http://e m": 1}', '{"http://e m": {"features": []}}'])
async def test_a_broken_file_is_as_good_as_none(tmp_path, text):
    path = tmp_path / "capabilities.json"
    path.write_text(text, encoding="utf-8")
    assert CapabilityCache(TextFolder(path.parent)).of("http://e", "m") == {}
