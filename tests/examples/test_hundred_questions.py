"""examples/hundred_questions.py: all questions, both budgets, and a kill in the middle."""

import csv
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.examples.programs import EXAMPLES, LIGHT, SECONDS, run_example
from tests.openai_server import BRIEF, Json, OpenAIServer, reply, role_and_run, serving
from tests.serving import environment

COUNT = 8
QUESTIONS = [f"1 + {number} = ? #run=q{number}" for number in range(COUNT)]
SCRIPT = {**BRIEF, "by_history": True, "reporter": [reply("The answer, {run}.")]}
HANG = {**SCRIPT, "reporter": [reply("Never", hang=True)]}


@pytest.fixture
def model(tmp_path: Path) -> Iterator[OpenAIServer]:
    with (tmp_path / "questions.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["question", "topic"], *([question, "sums"] for question in [*QUESTIONS, QUESTIONS[0]])]
        )
    with serving(SCRIPT) as server:
        yield server


def ask(model: OpenAIServer, folder: Path, *options: str) -> list[dict[str, str]]:
    env = environment(model.base_url, folder, **LIGHT)
    run_example("hundred_questions.py", "questions.csv", "answers.csv", *options, folder=folder, env=env)
    return answers(folder)


def answers(folder: Path) -> list[dict[str, str]]:
    with (folder / "answers.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_questions_are_answered_a_few_at_a_time(model: OpenAIServer, tmp_path: Path):
    together = threading.Event()

    def report(body: Json) -> str | Json:
        role, run = role_and_run(body["messages"])
        return reply(f"The answer, {run}.", hang=not together.is_set()) if role == "reporter" else ""

    model.refuse = report
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, model, tmp_path, "--at-once", "3")
        try:
            model.wait_for(lambda seen: seen["by_role"].get("reporter", 0) == 3, SECONDS)
        finally:
            together.set()
            model.release(SECONDS)
        rows = asked.result()
    assert sorted((row["question"], row["answer"]) for row in rows) == [
        (question, f"The answer, q{number}.") for number, question in enumerate(QUESTIONS)
    ]
    assert {row["status"] for row in rows} == {"completed"}
    assert all(int(row["tokens"]) > 0 for row in rows)
    assert model.stats["max_active"] == 3


def test_no_run_begins_that_does_not_fit_into_the_total(model: OpenAIServer, tmp_path: Path):
    rows = ask(model, tmp_path, "--run-tokens", "20000", "--total-tokens", "30000")
    assert 0 < len(rows) < COUNT
    assert sum(int(row["tokens"]) for row in rows) <= 30_000


@pytest.mark.slow
def test_a_run_ends_at_its_own_budget(model: OpenAIServer, tmp_path: Path):
    rows = ask(model, tmp_path, "--run-tokens", "500")
    assert {row["status"] for row in rows} == {"budget_exhausted"}


@pytest.mark.slow
def test_after_a_kill_nothing_that_is_done_is_asked_again(model: OpenAIServer, tmp_path: Path):
    model.reset(HANG)
    command = [sys.executable, str(EXAMPLES / "hundred_questions.py"), "questions.csv", "answers.csv"]
    env = environment(model.base_url, tmp_path, **LIGHT)
    with subprocess.Popen([*command, "--at-once", "2"], cwd=tmp_path, env=env) as process:
        try:
            model.wait_for(lambda seen: seen["by_role"].get("reporter", 0) >= 2, SECONDS)
        finally:
            process.send_signal(signal.SIGKILL)
    model.reset(SCRIPT)
    rows = ask(model, tmp_path)
    assert len(rows) == COUNT and {row["status"] for row in rows} == {"completed"}
    assert model.stats["by_role"]["planner"] == COUNT - 2  # The two that were cut off had their plans.


@pytest.mark.slow
def test_a_run_that_failed_is_tried_again_alone(model: OpenAIServer, tmp_path: Path):
    model.refuse = lambda body: "no" if "#run=q3" in str(body["messages"]) else ""
    rows = ask(model, tmp_path)
    assert {row["question"] for row in rows if row["status"] == "failed"} == {QUESTIONS[3]}
    model.reset()
    model.refuse = lambda body: ""
    assert {row["status"] for row in ask(model, tmp_path)} == {"completed"}
    assert model.stats["by_role"]["planner"] == 1
