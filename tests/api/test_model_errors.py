"""A model that fails in any node, as a client of a real server sees it.

The frames are those of `docs/wire.md`, "Failure and cancellation".
"""

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from maniple.types import WORKERS
from tests.grammar import Client
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.serving import environment, frames_of, server_process
from tests.team import agents, data, plan, step

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}
# The supervisor is asked even where the plan works, so that its model can fail, too.
CONFIGURATION = """
models: {basic: {max_retries: 0, timeout_seconds: 60}}
team: {supervisor: always}
"""


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving({"other": [reply("OK")]}) as server:
        yield server


@pytest.fixture(scope="module")
def url(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    (home / "conf.yaml").write_text(CONFIGURATION, encoding="utf-8")
    with server_process(environment(model.base_url, home), home) as process:
        yield process.url


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def failing(role: str) -> dict[str, list]:
    """Return a script in which everyone answers but `role`, whose turn comes."""
    worker = role if role in WORKERS and role != "reporter" else "coder"
    return {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(plan(step(worker), step("reporter"))))],
        "supervisor": [reply(json.dumps({"next": worker})), reply('{"next": "reporter"}')],
        worker: [reply("done")],
        "reporter": [reply("# Report")],
        role: [{"status": 500, "error": "the scripted outage"}],
    }


@pytest.mark.parametrize("role", ["coordinator", "planner"])
async def test_a_model_error_before_there_is_a_plan_is_reported_and_ends_the_run(client, model, role):
    model.reset(failing(role))
    frames = await frames_of(client, QUESTION)
    Client().read(frames)
    *before, error, run_status, workflow, session = frames
    assert error[0] == "error"
    assert error[1]["agent_name"] == role
    assert (error[1]["code"], error[1]["retryable"]) == ("model_overloaded", True)
    assert "the scripted outage" in error[1]["message"]
    assert run_status == ("run_status", {"status": "failed"})
    assert workflow[1]["messages"] == session[1]["messages"] == QUESTION["messages"]
    # Whose model failed still begins and ends like everyone.
    assert agents(frames)[-2:] == [role, "reporter"], "who says what happened"
    assert len(data(before, "end_of_agent")) == len(agents(frames))


@pytest.mark.slow
@pytest.mark.parametrize("role", [name for name in WORKERS if name != "reporter"])
async def test_a_model_error_of_a_member_is_a_gap_in_the_report(client, model, role):
    model.reset(failing(role))
    frames = await frames_of(client, QUESTION)
    Client().read(frames)
    assert data(frames, "error") == []
    (ended,) = data(frames, "run_status")
    assert ended["status"] == "completed"
    assert [gap["step"] for gap in ended["gaps"]] == [f"{role}'s step"]
    assert "the scripted outage" not in json.dumps(ended)
    assert frames[-1][1]["messages"][-1]["content"].startswith("# Report")


async def test_a_model_error_of_the_supervisor_leaves_the_plan_as_it_is(client, model):
    model.reset(failing("supervisor"))
    frames = await frames_of(client, QUESTION)
    Client().read(frames)
    assert data(frames, "run_status") == [{"status": "completed"}]
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]


async def test_the_same_server_answers_again_when_its_model_does(client, model):
    model.reset({**failing("other"), "other": [reply("OK")]})
    frames = await frames_of(client, QUESTION)
    Client().read(frames)
    assert dict(frames)["run_status"]["status"] == "completed"
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
