"""What web pages of other origins can do here, and the headers that every response has."""

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, OpenAIServer
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
FOREIGN = [
    {"origin": "http://evil.test", "sec-fetch-site": "cross-site"},
    {"origin": "http://evil.test"},
    {"origin": "null"},
    {"origin": "null", "sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "cross-site"},
    {"origin": "http://127.0.0.1:9999", "sec-fetch-site": "same-site"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://127.0.0.1.evil.test"},
    {"origin": "http://evil.test@127.0.0.1"},
    {"origin": "http://[broken"},
    {"origin": ""},
]
OWN = [
    {},
    {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"},
    {"origin": "http://127.0.0.1"},
    {"sec-fetch-site": "none"},
    {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"},
    {"origin": "https://desk.test", "sec-fetch-site": "cross-site"},
    {"origin": "https://desk.test"},
]
ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def it(model: OpenAIServer, tmp_path: Path) -> AsyncIterator[InProcessService]:
    model.reset(SIMPLE)
    async with open_service(
        model.base_url, tmp_path, server={"cors_origins": ["https://desk.test"]}
    ) as opened:
        yield opened


def every_route(routes: Iterable[Any]) -> Iterator[Any]:
    """Yield all routes, those of included routers too."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        yield from [route] if inner is None else every_route(inner.routes)


def unsafe_routes(app: Any) -> list[tuple[str, str]]:
    """Return every route of the app that may change something, also those that are not documented."""
    found: list[tuple[str, str]] = []
    for route in every_route(app.routes):
        path = "/".join(ID if "{" in part else part for part in route.path.split("/"))
        found += [(method, path) for method in getattr(route, "methods", None) or () if method in UNSAFE]
    return found


async def ask(it: InProcessService, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    return await it.client.request(method, path, headers=headers)


@pytest.mark.parametrize("headers", FOREIGN)
async def test_a_foreign_page_can_change_nothing_on_any_route(
    it: InProcessService, headers: dict[str, str]
) -> None:
    routes = unsafe_routes(it.app)
    assert {"/api/chat/stream", f"/api/runs/{ID}/cancel", f"/api/runs/{ID}/retry"} <= {p for _, p in routes}
    answers = {(m, p): await ask(it, m, p, headers) for m, p in [*routes, ("PUT", "/"), ("POST", "/nowhere")]}
    assert {one.status_code for one in answers.values()} == {403}
    assert {one.json()["code"] for one in answers.values()} == {"forbidden"}


@pytest.mark.parametrize("headers", OWN)
async def test_own_pages_allowed_origins_and_programs_pass_on_every_route(
    it: InProcessService, headers: dict[str, str]
) -> None:
    for method, path in unsafe_routes(it.app):
        assert (await ask(it, method, path, headers)).status_code != 403, (method, path)


async def test_a_key_makes_no_difference_to_a_foreign_page(it: InProcessService) -> None:
    headers = {**await it.key("somebody"), "origin": "http://evil.test"}
    for method, path in unsafe_routes(it.app):
        assert (await ask(it, method, path, headers)).status_code == 403, (method, path)


async def test_a_foreign_page_does_not_cancel_a_run_and_an_own_one_does(it: InProcessService) -> None:
    path = f"/api/runs/{(await it.run())['run_id']}/cancel"
    assert (await ask(it, "POST", path, {"origin": "http://evil.test"})).status_code == 403
    own = await ask(it, "POST", path, {"origin": "http://127.0.0.1"})
    assert own.status_code != 403


async def test_reading_is_not_the_gates_business(it: InProcessService) -> None:
    assert (await ask(it, "GET", "/api/threads", {"origin": "http://evil.test"})).status_code == 200


async def test_langmanuss_page_is_foreign_to_a_service_beyond_loopback(
    model: OpenAIServer, tmp_path: Path
) -> None:
    server = {"host": "0.0.0.0", "insecure": True}
    async with open_service(model.base_url, tmp_path, server=server) as it:
        headers = {"origin": "http://localhost:3000", "sec-fetch-site": "cross-site"}
        assert (await ask(it, "POST", "/api/threads", headers)).status_code == 403


async def test_every_response_has_the_security_headers(it: InProcessService) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError

    refused = {"host": "evil.test"}
    paths = [("GET", route.path) for route in every_route(it.app.routes) if "{" not in route.path]
    answers = [await ask(it, method, path, {}) for method, path in paths]
    answers += [await ask(it, "GET", "/nowhere", {}), await ask(it, "PUT", "/healthz", {})]
    answers += [await ask(it, "GET", "/healthz", refused), await ask(it, "POST", "/api/chat/stream", {})]
    answers += [await ask(it, "POST", "/api/threads", {"origin": "null"})]
    answers += [await it.client.post("/api/chat/stream", content=b"x" * 2_000_000)]
    answers += [await it.client.get(f"/assets/{name}") for name in ("none.js", "../app.py")]
    await it.key("somebody")
    answers += [await ask(it, "GET", "/api/threads", {})]
    it.service.store.keys.find = fail  # type: ignore[method-assign]
    transport = httpx.ASGITransport(it.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answers += [await client.get("/api/threads", headers={"x-api-key": "k"})]
    assert {400, 401, 403, 404, 405, 413, 422, 500} <= {one.status_code for one in answers}
    for one in answers:
        assert one.headers["x-content-type-options"] == "nosniff", one.url
        assert "content-security-policy" in one.headers and "referrer-policy" in one.headers, one.url


async def test_the_documentation_loads_own_files_only(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        page = await client.get("/docs")
    assert page.status_code == 200 and "://" not in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].startswith("default-src 'self'; img-src 'self' data:;")
