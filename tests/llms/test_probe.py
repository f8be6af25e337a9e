"""Finding out by short calls."""

import pytest

from maniple.config import ModelSettings, ModelsSettings
from maniple.llms import capabilities_of, open_chat_models
from maniple.llms.capabilities import probe
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio


async def found(*replies, reject=()):
    with serving({"other": list(replies), "reject": list(reject)}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            model = models.get("basic")
            learned = []
            capabilities_of(model).on_learned = learned.append
            findings = {finding.feature: finding async for finding in probe(model)}
        return findings, learned, server.stats


async def test_an_endpoint_that_can_everything_is_found_so_for_few_tokens():
    ok = reply('{"ok": true}')
    findings, learned, stats = await found(reply("ok"), call("ping"), ok, ok, reply("ok"))
    assert {feature: one.works for feature, one in findings.items()} == dict.fromkeys(findings, True)
    assert (stats["calls"], len(findings)) == (5, 5)
    assert stats["prompt_tokens"] < 300
    assert learned[-1] == dict.fromkeys(findings, True)


async def test_what_is_rejected_or_ignored_is_found_missing():
    findings, _, _ = await found(reply("I am a teapot."), reject=["response_format", "stream_options"])
    assert {f for f, one in findings.items() if one.works is False} == {
        "stream_usage",
        "json_schema",
        "json_object",
    }


async def test_a_failing_endpoint_leaves_its_features_unknown():
    findings, learned, _ = await found({"status": 500})
    assert {one.works for one in findings.values()} == {None}
    assert "HTTP 500" in findings["tools"].detail
    assert learned == []
