"""Valid and invalid requests are answered as the OpenAPI document says.

That everything beyond the document is refused is not asked for: unknown fields and headers are ignored, and a
switch may be 0 or 1, as the old client's server took them.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from maniple.api import create_app
from maniple.config import Settings
from maniple.store import open_store
from tests.api.in_process import QUESTION
from tests.openai_server import SIMPLE, OpenAIServer, reply, serving
from tests.serving import environment, server_process

EXAMPLES, ALL_EXAMPLES = 5, 10
"""Of each operation, in `make test` and in `make test-slow`."""
PARTS = 4
"""The operations are asked in so many tests, because each of them has some minutes."""
BEYOND_A_SCHEMA = ("/v1/", "/ag-ui", "/assistants", "/threads", "/runs", "/api/schedules", "/api/webhooks")
"""A schema cannot say there who speaks last, what a cron line is, or which host has an address."""
ENDLESS = "/threads/{thread_id}/stream/events"
"""It tells of all runs that follow, until its client leaves: only a thread that is not there is asked for."""
NO_THREAD = "none-has-this-id"
GUIDE = {"guide": [reply(json.dumps({"questions": ["What else?"]}))]}
QUICK = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}


@dataclass
class Site:
    url: str
    model: OpenAIServer
    headers: dict[str, str]
    known: dict[str, str]

    def waiting_run(self) -> str:
        """Return a run that waits for the review of its plan."""
        with httpx.Client(base_url=self.url, headers=self.headers, timeout=60) as client:
            self.model.reset({**SIMPLE, **GUIDE})
            thread = client.post("/api/threads").json()["thread_id"]
            ask = {**QUESTION, "auto_accepted_plan": False}
            run = client.post(f"/api/threads/{thread}/runs", json=ask).json()["run_id"]
            client.get(f"/api/runs/{run}/events")
            assert client.get(f"/api/runs/{run}").json()["status"] == "interrupted"
        return run

    def validate(self, case: schemathesis.Case) -> int:
        """Send what a case asks for; return the status of an answer that is as the document says."""
        reach = {"base_url": self.url, "timeout": 30}
        response = case.call(headers=self.headers, **reach)
        # Nothing prints a PDF here, which is no fault.
        has_no_browser = response.status_code == 503 and response.json().get("code") == "no_browser"
        excluded = [negative_data_rejection, *([not_a_server_error] if has_no_browser else [])]
        if case.path.startswith(BEYOND_A_SCHEMA) or _refuses_functions(response):
            excluded.append(positive_data_acceptance)
        case.validate_response(
            response, headers=self.headers, excluded_checks=excluded, transport_kwargs=reach
        )
        return response.status_code


def _refuses_functions(response: Any) -> bool:
    """Return whether only functions are refused: no schema says which can be offered."""
    faults = response.json()["detail"] if response.status_code == 422 else ()
    return isinstance(faults, list) and all(one["loc"][:2] == ["body", "client_tools"] for one in faults)


async def _add_key(home) -> str:
    async with open_store(home / "data/maniple.db", home / "data/artifacts", server=False) as store:
        return (await store.keys.add("fuzz"))[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """A server that asks for a key, and one conversation with a run on it."""
    home = tmp_path_factory.mktemp("home")
    headers = {"X-API-Key": asyncio.run(_add_key(home))}
    with serving({"coordinator": [reply("Good day.")], **GUIDE}) as model:
        with server_process(environment(model.base_url, home, **QUICK), home) as server:
            with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
                thread = client.post("/api/threads").json()["thread_id"]
                run = client.post(f"/api/threads/{thread}/runs", json=QUESTION).json()["run_id"]
                client.get(f"/api/runs/{run}/events")
                client.post(
                    f"/api/threads/{thread}/files", files={"files": ("a.txt", b"a")}
                ).raise_for_status()
            yield Site(server.url, model, headers, {"thread_id": thread, "run_id": run, "path": "a.txt"})


def _schema(*, covers: bool) -> Any:
    """The document; `covers`: with a case for each keyword, some thousand requests in all."""
    schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
    schema.config.phases.coverage.enabled = covers
    return schema


@pytest.fixture(scope="module")
def document() -> Any:
    return _schema(covers=False)


@pytest.mark.slow
def test_the_service_keeps_to_its_document(document, site: Site, subtests: pytest.Subtests):
    every_operation_keeps_to(document, site, subtests, EXAMPLES, slice(None))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_service_keeps_to_every_word_of_its_document(part: int, site: Site, subtests: pytest.Subtests):
    every_operation_keeps_to(_schema(covers=True), site, subtests, ALL_EXAMPLES, slice(part, None, PARTS))


def every_operation_keeps_to(
    document: Any, site: Site, subtests: pytest.Subtests, examples: int, asked: slice
) -> None:
    """Not by `parametrize`, with which each worker makes the cases of all operations when it collects."""

    def check(case) -> None:
        keeps_to_the_document(case, site)

    some = settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    tests = list(get_all_tests(schema=document, test_func=check, settings=some, given_kwargs=None))
    for made in tests[asked]:
        operation, test = made.ok()
        with subtests.test(operation.label):
            test()


def keeps_to_the_document(case, site: Site) -> None:
    parameters = case.path_parameters or {}
    if case.path == ENDLESS and parameters.get("thread_id"):
        parameters["thread_id"] = NO_THREAD  # another operation may have made any other
    is_kept = case.method == "DELETE" or case.path == ENDLESS
    # In half of the cases what is asked for is there.
    if parameters and not is_kept and sum(len(str(value)) for value in parameters.values()) % 2:
        case.path_parameters.update({name: site.known.get(name, value) for name, value in parameters.items()})
    site.validate(case)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"),
    [("/resume", {"answer": "accept"}), ("/plan", {"action": "skip", "step_id": 1})],
)
def test_interrupts_are_answered_as_documented(path, body, document, site: Site):
    case = document[f"/api/runs/{{run_id}}{path}"]["POST"].Case(
        path_parameters={"run_id": site.waiting_run()}, body=body, media_type="application/json"
    )
    assert site.validate(case) == 202
