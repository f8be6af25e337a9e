"""What /readyz and /health say of the place where code runs, whichever backend is chosen."""

import pytest

from maniple.sandbox.backends.local import WARNING
from tests.api.inside import inside
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
async def test_a_backend_that_cannot_run_code_is_not_ready_and_says_what_mends_it(tmp_path, sandbox, words):
    with serving(SIMPLE) as model:
        async with inside(model.base_url, tmp_path, sandbox=sandbox) as it:
            ready = await it.get("/readyz")
            assert ready["ready"] is True
            assert ready["sandbox"]["ready"] is False
            assert words in ready["sandbox"]["why"]
            assert any(words in notice for notice in (await it.get("/healthz"))["notices"])


async def test_unsafe_local_is_ready_with_a_loud_warning(tmp_path):
    with serving(SIMPLE) as model:
        async with inside(model.base_url, tmp_path, sandbox={"backend": "unsafe-local"}) as it:
            assert (await it.get("/readyz"))["sandbox"] == {"ready": True, "why": WARNING}
            assert WARNING in (await it.get("/healthz"))["notices"]
