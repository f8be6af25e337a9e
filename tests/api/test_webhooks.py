"""Webhooks over HTTP."""

import asyncio
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver():
    """A server on this machine that remembers the headers of each message."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            received.append(dict(self.headers))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", received
        server.shutdown()


async def test_the_end_of_a_run_is_delivered_and_can_be_sent_again(model, tmp_path, receiver):
    url, received = receiver
    model.reset(SIMPLE)
    async with open_service(model.base_url, tmp_path, fetch={"allow_private": ["127.0.0.0/8"]}) as it:
        made = await it.client.post("/api/webhooks", json={"url": url, "statuses": ["completed"]})
        assert made.status_code == 201, made.text
        path = made.headers["location"]
        assert made.json()["secret"].startswith("whsec_")
        assert "secret" not in await it.get(path)
        run = await it.run()
        await it.events_of(run["run_id"])
        [delivery] = await _delivered(it, path)
        assert (delivery["run_id"], delivery["state"]) == (run["run_id"], "delivered")
        again = await it.client.post(f"{path}/deliveries/{delivery['delivery_id']}/redeliver")
        assert again.status_code == 204
        await _delivered(it, path)
        assert len({one["webhook-id"] for one in received}) == 1 and len(received) == 2
        assert (await it.client.delete(path)).status_code == 204
        assert (await it.get("/api/webhooks"))["webhooks"] == []


async def test_a_run_of_the_langgraph_api_may_name_a_webhook_that_reports_it(model, tmp_path, receiver):
    url, received = receiver
    model.reset({"coordinator": [reply("Hello!")] * 2})
    async with open_service(model.base_url, tmp_path, fetch={"allow_private": ["127.0.0.0/8"]}) as it:
        run = {"assistant_id": "maniple", "input": {"messages": "Hi"}, "webhook": url}
        cron = {**run, "schedule": "0 8 * * 1", "enabled": False}
        for statuses in (None, ["failed"]):
            if statuses:
                await it.client.post("/api/webhooks", json={"url": url, "statuses": statuses})
            for path, body in (("/runs", run), ("/runs/crons", cron)):
                refused = await it.client.post(path, json=body)
                assert (refused.status_code, refused.json()["code"]) == (422, "unsupported")
        made = await it.client.post("/api/webhooks", json={"url": url})
        started = (await it.client.post("/runs", json=run)).raise_for_status()
        assert "x-maniple-not-used" not in started.headers
        [delivery] = await _delivered(it, made.headers["location"])
        assert delivery["run_id"] == started.json()["run_id"]
        assert len(received) == 1
        assert (await it.client.post("/runs/crons", json=cron)).status_code == 200


async def _delivered(it, path):
    async with asyncio.timeout(60):
        while True:
            found = (await it.get(f"{path}/deliveries"))["deliveries"]
            if found and all(one["state"] == "delivered" for one in found):
                return found
            await it.client.get("/readyz")


async def test_a_webhook_belongs_to_its_key(model, tmp_path):
    async with open_service(model.base_url, tmp_path, fetch={"allow_private": ["127.0.0.0/8"]}) as it:
        ann, bob = await it.key("ann"), await it.key("bob")
        body = {"url": "http://127.0.0.1:80/"}
        path = (await it.client.post("/api/webhooks", json=body, headers=ann)).headers["location"]
        for method, address in (
            ("GET", path),
            ("DELETE", path),
            ("GET", f"{path}/deliveries"),
            ("POST", f"{path}/deliveries/m/redeliver"),
        ):
            assert (await it.client.request(method, address, headers=bob)).status_code == 404
        assert (await it.get("/api/webhooks", headers=bob))["webhooks"] == []
        assert (await it.client.get(path, headers=ann)).status_code == 200


async def test_an_address_of_this_machine_is_refused(it):
    refused = await it.client.post("/api/webhooks", json={"url": "http://127.0.0.1/"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_webhook")
