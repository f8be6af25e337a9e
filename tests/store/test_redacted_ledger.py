"""The stored tool calls contain no secrets and can still be read."""

import json

import pytest

from maniple.redaction import Redactor
from maniple.store.redaction import RedactedLedger
from tests.agents.memory_ledger import MemoryLedger

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("secret", ["20261122", "content", "status", "sk-VERYSECRET1"])
async def test_a_call_is_read_back_with_any_secrets(secret):
    book = MemoryLedger()
    ledger = RedactedLedger(book, Redactor([secret, "another-secret"]))
    await ledger.begin(
        "r", "c", "look", json.dumps({"date": 20261122, "text": f"so {secret} another-secret"})
    )
    await ledger.end("r", "c", json.dumps({"status": "success", "content": f"{secret}!"}))
    (row,) = await ledger.list_by_run("r")
    assert json.loads(row.arguments) == {"date": 20261122, "text": "so *** ***"}
    assert json.loads(row.result or "") == {"status": "success", "content": "***!"}
