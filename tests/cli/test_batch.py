"""`maniple batch`."""

import json
from pathlib import Path

import pytest

from tests.cli.processes import environment, maniple
from tests.openai_server import BRIEF, serving

pytestmark = pytest.mark.anyio


async def test_a_file_is_done_and_what_was_not_accepted_can_be_retried(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('"1+3=?"\n{"input": "2+3=?"}\n', encoding="utf-8-sig")
    with serving({**BRIEF, "by_history": True}) as model:
        env = environment(tmp_path, model.base_url, MANIPLE_SANDBOX__BACKEND="off")
        status, output, notes = await maniple("batch", "tasks.jsonl", folder=tmp_path, env=env)
        assert status == 0, notes
        assert [json.loads(line)["state"] for line in output.splitlines()] == ["accepted"] * 2
        words = ("batch", "tasks.jsonl", "--pattern", "never said", "-o", "out.csv")
        status, output, notes = await maniple(*words, folder=tmp_path, env=env)
        assert (status, output) == (1, "")
        assert (tmp_path / "out.csv").read_text(encoding="utf-8").count("rejected") == 2
        name = notes.rpartition("--resume ")[2][:8]
        status, output, _ = await maniple("batch", "--retry", name, folder=tmp_path, env=env)
        assert [json.loads(line)["attempt"] for line in output.splitlines()] == [2, 2]
        for words in (("--retry", name, "--attempts", "2"), ("--resume", name, "--pattern", "x")):
            status, output, notes = await maniple("batch", *words, folder=tmp_path, env=env)
            assert (status, output, words[-2] in notes) == (2, "", True)
        words = ("batch", "--resume", name, "--parallel", "8", "--budget", "tokens=4m")
        status, output, _ = await maniple(*words, folder=tmp_path, env=env)
        assert [json.loads(line)["attempt"] for line in output.splitlines()] == [2, 2]


async def test_a_file_that_is_no_batch_is_wrong_usage(tmp_path: Path) -> None:
    env = environment(tmp_path, "http://127.0.0.1:9/v1")
    (tmp_path / "tasks.jsonl").write_text("no JSON\n", encoding="utf-8")
    (tmp_path / "sums.jsonl").write_text('"1+3=?"\n', encoding="utf-8")
    (tmp_path / "latin.jsonl").write_bytes(b'"\xff"\n')
    for words in (
        ("tasks.jsonl",),
        (),
        ("--resume", "1a2b"),
        ("tasks.jsonl", "--retry", "1a2b"),
        ("latin.jsonl",),
        ("sums.jsonl", "-o", "no/such.csv"),
        ("sums.jsonl", "--pattern", "("),
    ):
        status, output, notes = await maniple("batch", *words, folder=tmp_path, env=env)
        assert (status, output, "Traceback" in notes, "E0000" in notes) == (2, "", False, False), words
