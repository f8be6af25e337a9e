"""The real 1.5B model, from its cache (or, the first time, from its mirrors)."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx
import pytest

from maniple.config.settings import EmbeddedSettings, Settings
from maniple.llms.embedded import LocalEndpoint, SilentProgress, open_embedded
from tests.llms.embedded.processes import ends, model_processes

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.embedded,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("fetched_model"),
]

KIND = {
    "type": "object",
    "properties": {"kind": {"enum": ["chat", "coder"]}},
    "required": ["kind"],
    "additionalProperties": False,
    "x-guidance": {"whitespace_flexible": False},
}
GRAMMAR = "%llguidance {}\nstart: %json " + json.dumps(KIND)


def client(endpoint: LocalEndpoint) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    return httpx.AsyncClient(base_url=endpoint.base_url, headers=headers, timeout=300, trust_env=False)


async def ask(
    http: httpx.AsyncClient, question: str, system: str = "Answer briefly.", **options: object
) -> dict:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    body = {"messages": messages, "temperature": 0, "max_tokens": 16, **options}
    return (await http.post("/chat/completions", json=body)).raise_for_status().json()


def text(reply: dict) -> str:
    return reply["choices"][0]["message"]["content"]


async def test_it_answers_only_with_its_key_and_leaves_no_process() -> None:
    async with open_embedded(EmbeddedSettings(), Settings().cache_dir, SilentProgress()) as endpoint:
        (pid,) = model_processes(os.getpid())
        assert (endpoint.model, endpoint.context_tokens) == ("Qwen2.5-Coder-1.5B-Instruct", 4096)
        async with client(endpoint) as http:
            assert "Paris" in text(await ask(http, "What is the capital of France?", max_tokens=8))
            without_key = await http.post("/chat/completions", json={}, headers={"Authorization": ""})
            assert without_key.status_code == 401
        assert not await ends(pid, within_seconds=0)
    assert model_processes(os.getpid()) == []


async def test_it_obeys_grammars_and_reuses_prompts() -> None:
    async with open_embedded(EmbeddedSettings(), Settings().cache_dir, SilentProgress()) as endpoint:
        async with client(endpoint) as http:
            reply = await ask(http, "Sort this request: good morning!", grammar=GRAMMAR)
            assert text(reply) in {'{"kind":"chat"}', '{"kind":"coder"}'}

            await both_prompts_stay_cached(http)


async def both_prompts_stay_cached(http: httpx.AsyncClient) -> None:
    """Two roles with long instructions take turns, also at once, and each instruction is read only once."""
    planner, coder = (
        f"You are the {role}. " + " ".join(f"Rule {n}: {role} item {n * 7}." for n in range(20))
        for role in ("planner", "coder")
    )
    for system in (planner, coder):
        await ask(http, "Say yes.", system, max_tokens=2)
    for reply in await asyncio.gather(*(ask(http, "Say no.", s, max_tokens=2) for s in (planner, coder))):
        assert reply["timings"]["cache_n"] > 200
        assert reply["timings"]["prompt_n"] < 20


async def test_the_model_server_ends_with_a_killed_process() -> None:
    opener = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.llms.embedded.opening", stdin=PIPE, stdout=PIPE, cwd=ROOT
    )
    try:
        assert opener.stdout
        assert b"http://127.0.0.1:" in await opener.stdout.readline()
        (pid,) = model_processes(opener.pid)
        opener.kill()
        assert await ends(pid, within_seconds=5)
    finally:
        if opener.returncode is None:
            opener.kill()
        await opener.communicate()
