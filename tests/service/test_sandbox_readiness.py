"""What /readyz and /health say of the place where code runs, whichever backend is chosen."""

import logging

import pytest

from maniple.sandbox.backends.local import WARNING
from maniple.sandbox.package_environment import find_environment
from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ({"backend": "docker", "docker_host": "unix:///nowhere/d.sock"}, "systemctl start docker"),
        ({"backend": "e2b"}, "set E2B_API_KEY in .env"),
        ({"backend": "daytona"}, "set DAYTONA_API_KEY in .env"),
        ({"backend": "off"}, "sandbox.backend"),
    ],
)
async def test_a_backend_that_cannot_run_code_is_not_ready_and_names_the_remedy(tmp_path, sandbox, words):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, sandbox=sandbox) as it:
            ready = await it.get("/readyz")
            assert ready["ready"] is True
            assert ready["sandbox"]["ready"] is False
            assert words in ready["sandbox"]["why"]
            assert any(words in notice for notice in (await it.get("/healthz"))["notices"])


async def test_unsafe_local_is_ready_with_a_loud_warning(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, sandbox={"backend": "unsafe-local"}) as it:
            assert (await it.get("/readyz"))["sandbox"] == {"ready": True, "why": WARNING}
            assert WARNING in (await it.get("/healthz"))["notices"]


async def test_unsafe_local_warns_at_each_run(tmp_path, caplog):
    with serving(SIMPLE) as model, caplog.at_level(logging.WARNING, "maniple.runs"):
        async with open_service(model.base_url, tmp_path, sandbox={"backend": "unsafe-local"}) as it:
            thread_id = await it.thread()
            for _ in range(2):
                run = await it.run(thread_id=thread_id)
                await it.events_of(run["run_id"])
    warned = [record for record in caplog.records if record.name.startswith("maniple.runs")]
    assert [record.getMessage() for record in warned] == [WARNING, WARNING]


async def test_unprepared_packages_are_named_and_do_not_affect_readiness(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, sandbox={"backend": "unsafe-local"}) as it:
            ready = await it.get("/readyz")
            assert ready["packages"]["ready"] is False
            assert "maniple doctor" in ready["packages"]["why"]
            assert ready["ready"] is True
            environment = find_environment(it.service.runtime.settings.sandbox, tmp_path / "cache")
            assert environment is not None
            environment.path.mkdir(parents=True)
            (environment.path / "ready.json").write_text("[]")
            assert (await it.get("/readyz"))["packages"] == {"ready": True, "why": ""}
        async with open_service(model.base_url, tmp_path, sandbox={"backend": "off"}) as it:
            ready = await it.get("/readyz")
            assert ready["packages"] == ready["sandbox"]
