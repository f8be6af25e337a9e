"""Secrets in addresses are not shown."""

import pytest

from maniple.agents.report import check_report
from maniple.agents.task import Task
from maniple.evidence import MemoryEvidence
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.source_list import format_source_list, format_sources
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.store import open_store
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio
OPAQUE = "aB3xY9kLm2Qp7RtZ4w"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
LOGIN = "https://a.test/in?user=ann&password=hunter2&page=3"


@pytest.mark.parametrize(
    ("url", "secret", "rest"),
    [
        (LOGIN, "hunter2", "user=ann"),
        ("https://a.test/?page=3;pwd=hunter2", "hunter2", "page=3"),
        ("https://a.test/?userPassword=hunter2&page=3", "hunter2", "page=3"),
        ("https://a.test/?login%5Bpassword%5D=hunter2&page=3", "hunter2", "page=3"),
        ("https://a.test/?access_token=abc", "abc", "a.test"),
        ("https://a.test/?AUTHTOKEN=abc#top", "abc", "#top"),
        ("https://a.test/?passwort=geheim1", "geheim1", "a.test"),
        ("https://ann:hunter2@a.test/b", "hunter2", "ann"),
        (f"https://{OPAQUE}@a.test/b", OPAQUE, "a.test/b"),
        (f"https://a.test/?api_key={OPAQUE}&q=tea", OPAQUE, "q=tea"),
        (f"https://a.test/?key={OPAQUE}", OPAQUE, "a.test"),
        (f"https://a.test/?X-Amz-Signature={OPAQUE}&X-Amz-Date=2026", OPAQUE, "2026"),
        (f"https://a.test/?data={JWT}", JWT, "data="),
        (f"https://a.test/#access_token={OPAQUE}&expires=3", OPAQUE, "expires=3"),
        ("https://a.test/go?to=https%3A%2F%2Fb.test%2F%3Ftoken%3Dabcdef", "abcdef", "b.test"),
        ("See https://a.test/?token=hunter2. It is open.", "hunter2", ". It is open."),
        ("[a](https://a.test/?token=hunter2) and (https://b.test)", "hunter2", ") and (https://b.test)"),
        ("<a href='https://a.test/?a=1&amp;token=hunter2'>", "hunter2", "'>"),
    ],
)
def test_secrets_in_addresses_are_hidden(url: str, secret: str, rest: str) -> None:
    shown = hide_secrets(url)
    assert secret not in shown and rest in shown
    assert hide_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://a.test/wiki/Password_(film)?page=3&key=C&code=42&session=12&author=ann&max_tokens=5",
        f"https://a.test/{OPAQUE}?id={OPAQUE}&v={OPAQUE}",
        "https://a.test/?compass=north&keyboard=de&tokenizer=x&token=",
        "password=hunter2 is in no address",
        "https://a.test/@ann/b?q=a@b.test",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide_secrets(text) == text


@pytest.fixture(params=["memory", "sqlite"])
async def evidence(request, tmp_path):
    if request.param == "memory":
        yield MemoryEvidence()
        return
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        yield store.evidence((await stored_run(store)).run_id)


async def test_a_source_is_stored_and_listed_without_the_secrets_of_its_address(evidence) -> None:
    await evidence.add(LOGIN, "", "page", "The account", asked=LOGIN.replace("page=3", "page=1"))
    sources = await evidence.sources()
    assert "hunter2" not in str(sources)
    assert "user=ann" in format_source_list(sources, "Sources")
    assert "hunter2" not in format_sources(sources)


async def test_pages_that_differ_in_a_secret_only_are_two_sources(evidence) -> None:
    first = await evidence.add("https://a.test/?token=red", "red", "page", "red")
    second = await evidence.add("https://a.test/?token=blue", "blue", "page", "blue")
    again = await evidence.add("https://a.test/?token=red", "red", "page", "more")
    assert (first.number, second.number, again.number) == (1, 2, 1)


async def test_a_report_that_cites_such_an_address_is_right_and_shows_no_secret() -> None:
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    evidence = MemoryEvidence()
    await evidence.add(LOGIN, "The account", "page", "It has 3 entries.")

    async def check(_):
        return await check_report(Task("How many?", "T", "D"), f"It has 3 entries ({LOGIN}).")

    config: RunnableConfig = {"configurable": {SCOPE_KEY: RunScope(evidence=evidence)}}
    report = await RunnableLambda(check).ainvoke(None, config)
    assert "hunter2" not in report and "unverified" not in report
    assert report.count("user=ann") == 2, "in the text and in the list of sources"
