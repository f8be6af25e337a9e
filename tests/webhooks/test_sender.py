"""What is sent to webhooks, how often, and what is said of it."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx
import pytest

from maniple.config.web_settings import FetchSettings
from maniple.crawler.http_client import GuardedTransport
from maniple.egress import AddressGuard
from maniple.egress.certificates import tls_context
from maniple.store import Store
from maniple.webhooks import WebhookSender, WebhookTargets, derive_secret, make_webhook
from maniple.webhooks.sender import RETRY_SECONDS
from maniple.webhooks.targets import MAX_WEBHOOKS, InvalidWebhook
from tests.store.conftest import postgres_store, reopen, sqlite_store, store  # noqa: F401 - fixtures
from tests.store.samples import a_run, a_thread, stored_run

pytestmark = pytest.mark.anyio
KEY = b"k" * 32


@dataclass
class Receiver:
    """An endpoint that answers with the given statuses in turn, then with 200."""

    answers: list[int] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    silent_url: str = ""
    silent: asyncio.Event | None = None
    """Set when `silent_url` is to answer."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        if self.silent is not None and str(request.url) == self.silent_url:
            await self.silent.wait()
        self.requests.append(request)
        return httpx.Response(self.answers.pop(0) if self.answers else 200)


@dataclass
class Scene:
    store: Store
    receiver: Receiver
    now: float = field(default_factory=lambda: time.time() + 60)

    def __post_init__(self):
        client = httpx.AsyncClient(transport=httpx.MockTransport(self.receiver))
        self.sender = WebhookSender(self.store.webhooks, client, KEY, lambda: self.now)

    async def webhook(self, *statuses, owner=""):
        url = f"https://e.test/hook/{owner}".rstrip("/")
        webhook = make_webhook(owner, url, statuses, 1.0)
        await self.store.webhooks.add(webhook)
        return webhook

    async def after(self, seconds=0.0):
        self.now += seconds
        await self.sender.send_due()
        return len(self.receiver.requests)


@pytest.fixture
def scene(store):  # noqa: F811 - the fixture
    return Scene(store, Receiver())


async def test_an_end_and_a_wait_are_sent_signed(scene):
    webhook = await scene.webhook()
    run = await stored_run(scene.store)
    for status in ("running", "interrupted", "queued", "running", "completed"):
        await scene.store.runs.change(run.run_id, status=status)
    await scene.store.runs.change(run.run_id, status="completed")
    assert await scene.after() == 2
    bodies = [json.loads(one.content) for one in scene.receiver.requests]
    assert {body["type"] for body in bodies} == {"run.waiting", "run.completed"}
    assert {body["data"]["run_id"] for body in bodies} == {run.run_id}
    for request in scene.receiver.requests:
        names = ("webhook-id", "webhook-timestamp")
        signed = ".".join(request.headers[name] for name in names).encode() + b"." + request.content
        key = base64.b64decode(derive_secret(KEY, webhook).removeprefix("whsec_"))
        digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        assert request.headers["webhook-signature"] == f"v1,{digest}"
    assert await scene.after(1_000_000) == 2
    deliveries = await scene.store.webhooks.list_deliveries(webhook.webhook_id)
    assert {(one.state, one.attempts) for one in deliveries} == {("delivered", 1)}


async def test_only_the_wanted_statuses_of_the_owner_are_sent(scene):
    await scene.webhook("failed")
    await scene.webhook(owner="ann")
    run = await stored_run(scene.store)
    await scene.store.runs.change(run.run_id, status="completed")
    assert await scene.after() == 0
    await scene.store.runs.change(run.run_id, status="failed", error_code="internal")
    assert await scene.after() == 1
    assert json.loads(scene.receiver.requests[0].content)["data"]["error_code"] == "internal"


async def test_a_delivery_is_tried_again_with_the_same_message_and_then_given_up(scene):
    webhook = await scene.webhook()
    scene.receiver.answers = [500] * 20
    run = await stored_run(scene.store)
    await scene.store.runs.change(run.run_id, status="completed")
    assert await scene.after() == 1
    for number, pause in enumerate(RETRY_SECONDS, 1):
        assert await scene.after(pause - 1) == number
        assert await scene.after(1) == number + 1
    [failed] = await scene.store.webhooks.list_deliveries(webhook.webhook_id)
    assert (failed.state, failed.attempts) == ("failed", 1 + len(RETRY_SECONDS))
    assert "500" in failed.outcome
    assert len({(one.content, one.headers["webhook-id"]) for one in scene.receiver.requests}) == 1
    scene.receiver.answers = []
    assert await scene.store.webhooks.redeliver(webhook.webhook_id, failed.delivery_id, scene.now)
    await scene.after()
    [sent] = await scene.store.webhooks.list_deliveries(webhook.webhook_id)
    assert sent.state == "delivered"


async def test_an_address_that_does_not_answer_holds_up_no_other_one(scene):
    silent, sound = await scene.webhook(owner="ann"), await scene.webhook(owner="bob")
    for owner, count in (("ann", 130), ("bob", 30)):
        thread = await scene.store.threads.create(a_thread(owner))
        for _ in range(count):
            run = await scene.store.runs.add(a_run(thread, scene.store.process))
            await scene.store.runs.change(run.run_id, status="completed")
    scene.receiver.silent = asyncio.Event()
    scene.receiver.silent_url = silent.url
    sending = asyncio.create_task(scene.sender.send_due())

    async def states(webhook):
        found = await scene.store.webhooks.list_deliveries(webhook.webhook_id, 200)
        return Counter((one.state, one.attempts) for one in found)

    async with asyncio.timeout(60):
        while (await states(sound))["delivered", 1] < 30:
            assert not sending.done(), sending.result()
            await asyncio.sleep(0.01)
    assert await states(silent) == {("pending", 1): 5, ("pending", 0): 125}
    scene.receiver.silent.set()
    await sending
    assert await states(silent) == {("delivered", 1): 130}


async def test_an_attempt_that_a_kill_cut_off_is_made_again(scene):
    await scene.webhook()
    run = await stored_run(scene.store)
    await scene.store.runs.change(run.run_id, status="completed")
    [due] = await scene.store.webhooks.list_due(scene.now, 10)
    assert await scene.store.webhooks.claim(due, scene.now + 60)
    assert not await scene.store.webhooks.claim(due, scene.now + 60)
    assert await scene.after() == 0
    assert await scene.after(60) == 1


async def test_an_address_that_is_gone_gets_nothing_more(scene):
    webhook = await scene.webhook()
    scene.receiver.answers = [410]
    run = await stored_run(scene.store)
    await scene.store.runs.change(run.run_id, status="completed")
    assert await scene.after() == 1
    await scene.store.runs.change(run.run_id, status="failed")
    assert await scene.after(1_000_000) == 1
    assert "410" in (await scene.store.webhooks.get(webhook.webhook_id, "")).disabled


async def test_a_private_address_is_neither_stored_nor_called(store):  # noqa: F811 - the fixture
    guard = AddressGuard(FetchSettings())
    targets = WebhookTargets(store.webhooks, guard)
    for url in (
        "http://127.0.0.1/a",
        "http://10.0.0.1/",
        "ftp://e.test",
        "http://u:p@1.1.1.1/",
        "x",
        "http://[",
    ):
        with pytest.raises(InvalidWebhook):
            await targets.require_allowed(url, "")
    webhook = make_webhook("", "http://127.0.0.1:80/", (), 1.0)
    await store.webhooks.add(webhook)
    run = await stored_run(store)
    await store.runs.change(run.run_id, status="completed")
    async with httpx.AsyncClient(transport=GuardedTransport(guard, tls_context())) as client:
        await WebhookSender(store.webhooks, client, KEY, lambda: 4e9).send_due()
    [delivery] = await store.webhooks.list_deliveries(webhook.webhook_id)
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    assert "127.0.0.1" in delivery.outcome


async def test_a_key_has_a_limit_of_webhooks(scene):
    for _ in range(MAX_WEBHOOKS):
        await scene.webhook()
    targets = WebhookTargets(scene.store.webhooks, AddressGuard(FetchSettings()))
    with pytest.raises(InvalidWebhook, match="limit"):
        await targets.require_allowed("https://1.1.1.1/", "")


async def test_what_was_sent_long_ago_is_deleted(scene):
    webhook = await scene.webhook()
    run = await stored_run(scene.store)
    await scene.store.runs.change(run.run_id, status="completed")
    await scene.store.webhooks.delete_settled(5e9)
    assert await scene.after() == 1
    await scene.store.webhooks.delete_settled(1.0)
    assert len(await scene.store.webhooks.list_deliveries(webhook.webhook_id)) == 1
    await scene.store.webhooks.delete_settled(5e9)
    assert await scene.store.webhooks.list_deliveries(webhook.webhook_id) == []
