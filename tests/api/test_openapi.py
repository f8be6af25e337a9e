"""Whatever fits the OpenAPI document, and whatever does not, is answered as the document says.

That everything beyond the document is refused is not asked for: unknown fields and headers are ignored, and a
switch may be 0 or 1, as the old client's server took them.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import negative_data_rejection

from maniple.api import create_app
from maniple.config import Settings
from maniple.store import open_store
from tests.api.inside import QUESTION
from tests.openai_server import reply, serving
from tests.serving import environment, server_process

EXAMPLES = 10
QUICK = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}


@dataclass
class Site:
    url: str
    headers: dict[str, str]
    known: dict[str, str]


async def _add_key(home) -> str:
    async with open_store(home / "data/maniple.db", home / "data/artifacts", server=False) as store:
        return (await store.keys.add("fuzz"))[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """A server that asks for a key, and one conversation with a run on it."""
    home = tmp_path_factory.mktemp("home")
    headers = {"X-API-Key": asyncio.run(_add_key(home))}
    with serving({"coordinator": [reply("Good day.")]}) as model:
        with server_process(environment(model.base_url, home, **QUICK), home) as server:
            with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
                thread = client.post("/api/threads").json()["thread_id"]
                run = client.post(f"/api/threads/{thread}/runs", json=QUESTION).json()["run_id"]
                client.get(f"/api/runs/{run}/events")
                client.post(
                    f"/api/threads/{thread}/files", files={"files": ("a.txt", b"a")}
                ).raise_for_status()
            yield Site(server.url, headers, {"thread_id": thread, "run_id": run, "path": "a.txt"})


schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_the_service_keeps_to_its_document(case, site: Site):
    parameters = case.path_parameters or {}
    # In half of the cases what is asked for is there.
    if parameters and case.method != "DELETE" and sum(len(str(value)) for value in parameters.values()) % 2:
        case.path_parameters.update({name: site.known.get(name, value) for name, value in parameters.items()})
    case.call_and_validate(
        base_url=site.url, headers=site.headers, timeout=30, excluded_checks=[negative_data_rejection]
    )
