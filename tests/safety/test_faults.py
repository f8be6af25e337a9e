"""After any fault of the endpoint, a run recovers within its retries or ends with a typed error."""

import json
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import httpx
import pytest

from maniple.llms.calls import CUT_STREAM_ATTEMPTS
from tests.environment import environment
from tests.grammar import Client
from tests.openai_server import SIMPLE, OpenAIServer, reply, serving
from tests.safety.logged_server import open_server
from tests.sizes import rest_is_slow

RETRIES = 1
MAX_CALLS = max(RETRIES + 1, CUT_STREAM_ATTEMPTS)
"""Of one answer: an endpoint is asked again so often, an answer that broke off is begun again so often."""
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}
_HALF = "Half of an answer that will never come to its end"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "limited": ({"status": 429, "headers": {"retry-after": "1"}}, "model_rate_limited"),
    "failing": ({"status": 500}, "model_overloaded"),
    "silent": ({"hang": True}, "model_timeout"),
    "cut": (reply(_HALF, cut_after=3), "model_stream_cut"),
    "malformed": (reply(_HALF, malformed_after=2), "model_bad_response"),
    "error inside": (
        reply(_HALF, error_after=2, error={"message": "overloaded", "code": 503}),
        "model_overloaded",
    ),
}
REPORT = SIMPLE["reporter"][0]["text"].strip()
ROLES = ("coordinator", "planner", "coder", "reporter")
Frames = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="module")
def client(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    home = tmp_path_factory.mktemp("faults")
    env = environment(
        model.base_url,
        home,
        MANIPLE_MODELS__BASIC__MAX_RETRIES=str(RETRIES),
        MANIPLE_MODELS__BASIC__TIMEOUT_SECONDS="3",
    )
    with open_server(env, home) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def asked(client: httpx.Client) -> Frames:
    """Ask, and return what the old client can follow."""
    frames = frames_in(client.post("/api/chat/stream", json=QUESTION).text)
    Client().read(frames)
    return frames


def frames_in(text: str) -> Frames:
    blocks = [block.split("\n") for block in text.split("\n\n") if "event: " in block]
    return [(lines[-2][7:], json.loads(lines[-1][6:])) for lines in blocks]


def of(frames: Frames, name: str) -> list[dict[str, Any]]:
    return [data for one, data in frames if one == name]


def last_words(frames: Frames) -> str:
    return of(frames, "final_session_state")[0]["messages"][-1]["content"]


_WAITED_FOR = {"limited", "silent"}
_RECOVERIES = [(fault, ROLES[:1] if fault in _WAITED_FOR else ROLES) for fault in FAULTS]
_RECOVERIES += [(fault, ROLES) for fault in FAULTS if fault in _WAITED_FOR]


@pytest.mark.parametrize(("fault", "roles"), rest_is_slow(_RECOVERIES, len(FAULTS)))
def test_a_run_recovers_from_a_fault_in_each_role(client, model, fault, roles):
    faulty = {role: [FAULTS[fault][0], *SIMPLE[role]] for role in roles}
    model.reset({**SIMPLE, **faulty})
    began = time.monotonic()
    frames = asked(client)
    assert of(frames, "run_status") == [{"status": "completed"}], of(frames, "error")
    assert last_words(frames) == REPORT
    calls = {"coordinator": 1, "planner": 1, "coder": 2, "reporter": 1}
    assert model.stats["by_role"] == {role: number + (role in roles) for role, number in calls.items()}
    if fault == "limited":
        assert time.monotonic() - began >= len(roles), "Retry-After was not waited for"


# Each fault once, and one of them in each role, first.
_CASES = sorted(product(FAULTS, ROLES), key=lambda case: case[1] != "planner" and case[0] != "cut")


@pytest.mark.parametrize(("fault", "role"), rest_is_slow(_CASES, len(FAULTS) + len(ROLES) - 1))
def test_a_fault_that_stays_ends_the_run_with_a_typed_error(client, model, fault, role):
    answer, code = FAULTS[fault]
    if answer.get("headers"):
        answer = {**answer, "headers": {"retry-after": "0.1"}}
    model.reset({**SIMPLE, role: [answer]})
    frames = asked(client)
    errors = of(frames, "error")
    assert model.stats["by_role"][role] <= MAX_CALLS
    (ended,) = of(frames, "run_status")
    # Where a step is done there is a report of what is there and what is missing, by code if need be.
    has_report = bool(model.stats["by_role"].get("reporter"))
    assert len(ended.get("gaps", ())) == has_report
    assert ended["status"] == ("completed" if has_report and role == "coder" else "failed")
    if role == "coder" and has_report:
        return
    assert [(error["code"], error["retryable"]) for error in errors] == [(code, True)]
    run_id = of(frames, "run")[0]["run_id"]
    run = client.get(f"/api/runs/{run_id}").json()
    assert (run["status"], run["error"]["code"]) == ("failed", code)


def test_a_plan_that_is_no_json_is_requested_again(client, model):
    model.reset({**SIMPLE, "planner": [reply('{"title": '), *SIMPLE["planner"]]})
    assert of(asked(client), "run_status") == [{"status": "completed"}]
    assert model.stats["by_role"]["planner"] == 2


def test_a_plan_that_never_becomes_json_does_not_end_the_run(client, model):
    model.reset({**SIMPLE, "planner": [reply("There is no plan.")], "researcher": [reply("4")]})
    frames = asked(client)
    assert of(frames, "run_status") == [{"status": "completed"}]
    assert of(frames, "error") == []
    assert model.stats["by_role"]["planner"] <= MAX_CALLS


def test_arguments_that_are_no_json_are_shown_to_the_model_or_repaired(client, model):
    broken = {"tool_calls": [{"name": "python_repl_tool", "arguments": '{"code": "print(1+3'}]}
    model.reset({**SIMPLE, "coder": [broken, *SIMPLE["coder"]]})
    assert of(asked(client), "run_status") == [{"status": "completed"}]


def test_an_answer_that_is_no_completion_is_a_typed_error(client, model):
    model.reset({**SIMPLE, "coordinator": [{"error_after": 0, "error": "no"}]})
    frames = asked(client)
    assert of(frames, "run_status") == [{"status": "failed"}]
    assert len(of(frames, "error")) == 1
