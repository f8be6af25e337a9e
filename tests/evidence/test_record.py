"""The sources that a run has read, in each kind of store."""

import hashlib
from functools import partial
from importlib.util import find_spec

import pytest

from maniple.evidence import Evidence, MemoryEvidence, NotedFinding, RedactedEvidence, source_text
from maniple.evidence.source_list import format_source_list
from maniple.reading.publication import Publication
from maniple.redaction import Redactor
from maniple.store import open_store
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio
PAGE = "https://e.test/a"


_MODULES = ["maniple.evidence.memory", "maniple.store.sqlite.run_tables"]
if find_spec("psycopg") is not None:
    _MODULES.append("maniple.store.postgres.evidence")


@pytest.fixture
def most_characters(request, monkeypatch):
    """What the texts of a run may have together, where a test asks for another bound."""
    for module in _MODULES:
        if asked := getattr(request, "param", None):
            monkeypatch.setattr(f"{module}.MAX_CHARACTERS", asked)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def evidence(request, tmp_path, most_characters):
    """The record of one run, beside that of another one which has read the same."""
    if request.param == "memory":
        yield MemoryEvidence()
        return
    opening = partial(open_store, tmp_path / "maniple.db", tmp_path / "artifacts")
    if request.param == "postgres":
        opening = request.getfixturevalue("open_postgres_again")
    async with opening(server=True) as store:
        ours, other = await stored_run(store), await stored_run(store)
        await store.evidence(other.run_id).add("https://other.test/", "Other", "page", "same words")
        yield store.evidence(ours.run_id)
        assert len(await store.evidence(other.run_id).sources()) == 1
        assert await store.check() == []


async def test_sources_are_numbered_as_they_come_and_keep_their_numbers(evidence: Evidence):
    first = await evidence.add(PAGE, "A", "result", "about a")
    second = await evidence.add("https://e.test/b", "B", "result", "about b")
    again = await evidence.add("http://www.e.test/a/#part", "A again", "result", "about a")
    assert (first.number, second.number, again.number) == (1, 2, 1)
    assert [source.url for source in await evidence.sources()] == [PAGE, "https://e.test/b"]
    assert await evidence.sources() == [again, second]


async def test_a_page_takes_the_place_of_a_result_and_keeps_it(evidence: Evidence):
    await evidence.add(PAGE, "As found", "result", "an extract")
    page = await evidence.add(PAGE, "As read", "page", "the whole page")
    later = await evidence.add(PAGE, "As found", "result", "another extract")
    assert (later.title, later.kind) == ("As read", "page")
    assert later.sha256 == page.sha256 == hashlib.sha256(b"the whole page").hexdigest()
    assert await evidence.sources() == [page]


async def test_texts_accumulate_and_each_is_stored_once(evidence: Evidence):
    for text in ("one", "two", "one", ""):
        await evidence.add(PAGE, "A", "page", text)
    await evidence.add("https://e.test/copy", "Copy", "page", "one")
    assert [await evidence.texts(number) for number in (1, 2, 3)] == [["one", "two"], ["one"], []]


async def test_a_text_beyond_the_limit_is_not_stored_and_cannot_be_cited(evidence: Evidence, monkeypatch):
    monkeypatch.setattr(source_text, "MAX_SOURCES", 2)
    await evidence.add(PAGE, "A", "page", "a")
    assert (await evidence.add("https://e.test/" + "x" * 4_000, "Long", "page", "long")).number == 0
    await evidence.add("https://e.test/b", "B", "page", "b")
    assert (await evidence.add("https://e.test/c", "C", "page", "c")).number == 0
    assert (await evidence.add(PAGE, "A", "page", "more")).number == 1
    assert len(await evidence.sources()) == 2
    assert await evidence.texts(0) == []


@pytest.mark.parametrize("most_characters", [100], indirect=True)
async def test_a_text_is_cut_and_all_texts_have_one_bound(evidence: Evidence, monkeypatch):
    monkeypatch.setattr(source_text, "TEXT_CHARACTERS", 60)
    await evidence.add(PAGE, "A", "page", "a" * 1_000)
    full = await evidence.add("https://e.test/b", "B", "page", "b" * 50)
    await evidence.add("https://e.test/c", "C", "page", "c" * 40)
    assert full.number == 2, "its address may still be cited"
    assert [await evidence.texts(number) for number in (1, 2, 3)] == [["a" * 60], [], ["c" * 40]]


async def test_lone_surrogates_and_multi_line_titles_are_normalized(evidence: Evidence):
    source = await evidence.add(PAGE, "A \n\n title" + "e" * 1_000, "page", "half \ud83d")
    untitled = await evidence.add("https://e.test/b", " ", "page", "b")
    assert source.title.startswith("A titlee")
    assert len(source.title) <= 300
    assert untitled.title == "https://e.test/b"
    assert await evidence.texts(1) == ["half \ufffd"]


async def test_no_secret_is_retained(evidence: Evidence):
    clean = RedactedEvidence(evidence, Redactor(["sk-canary-0123"]))
    url = "https://e.test/?k=sk-canary-0123"
    asked = f"{url}&x=1"
    source = await clean.add(url, "sk-canary-0123", "page", "so sk-canary-0123", asked=asked)
    assert source.also == ("https://e.test/?k=***&x=1",)
    assert "canary" not in f"{source} {await clean.sources()} {await clean.texts(source.number)}"
    assert await clean.texts(source.number) == ["so ***"]


SHORT, LONG = "https://sho.rt/1", "https://e.test/where/it/is"


async def test_a_requested_address_and_its_redirect_are_one_source(evidence: Evidence):
    page = await evidence.add(LONG, "A", "page", "a", asked=SHORT)
    again = await evidence.add(SHORT, "As found", "result", "an extract")
    assert (page.number, page.url, page.also) == (1, LONG, (SHORT,))
    assert (again.number, again.kind) == (1, "page")
    assert await evidence.sources() == [page]
    assert await evidence.texts(1) == ["a", "an extract"]


async def test_a_find_that_leads_elsewhere_keeps_its_number(evidence: Evidence):
    await evidence.add(SHORT, "As found", "result", "an extract")
    page = await evidence.add(LONG, "A", "page", "a", asked=SHORT)
    by_itself = await evidence.add(LONG, "A", "page", "more")
    assert (page.number, page.url, page.title, page.kind) == (1, SHORT, "A", "page")
    assert (by_itself.number, by_itself.also) == (1, (LONG,))
    assert await evidence.sources() == [by_itself]
    assert await evidence.texts(1) == ["an extract", "a", "more"]


async def test_where_both_addresses_have_numbers_the_text_counts_for_both(evidence: Evidence):
    await evidence.add(SHORT, "As found", "result", "an extract")
    await evidence.add(LONG, "As found, too", "result", "another")
    page = await evidence.add(LONG, "A", "page", "a", asked=SHORT)
    assert (page.number, page.also) == (2, ())
    assert [await evidence.texts(number) for number in (1, 2)] == [["an extract", "a"], ["another", "a"]]


async def test_what_redirected_before_and_is_a_page_now_is_a_source_of_its_own(evidence: Evidence):
    """As when every article of a site redirects to its login page until somebody has found a way in."""
    login, articles = "https://e.test/login", ["https://e.test/1", "https://e.test/2"]
    for article in articles:
        await evidence.add(login, "Log in", "page", "Who are you?", asked=article)
    assert [source.also for source in await evidence.sources()] == [tuple(articles)]
    for article in articles:
        await evidence.add(article, "As found", "result", "an extract")
    read = [await evidence.add(article, article, "page", article) for article in articles]
    assert [(source.number, source.url) for source in read] == [(2, articles[0]), (3, articles[1])]
    assert [source.also for source in await evidence.sources()] == [(), (), ()]
    assert [await evidence.texts(number) for number in (2, 3)] == [[articles[0]], [articles[1]]]


async def test_another_spelling_of_an_address_leads_nowhere_else(evidence: Evidence):
    page = await evidence.add(
        LONG, "A", "page", "a", asked=f"http://www.{LONG.removeprefix('https://')}/#top"
    )
    assert page.also == ()


async def test_addresses_that_lead_to_sources_have_a_bound_of_their_own(evidence: Evidence, monkeypatch):
    monkeypatch.setattr(source_text, "MAX_SOURCES", 2)
    for number in range(4):
        await evidence.add(LONG, "A", "page", "a", asked=f"{SHORT}/{number}")
    await evidence.add(LONG, "A", "page", "a", asked=f"{SHORT}/{'x' * 4_000}")
    (source,) = await evidence.sources()
    assert source.also == (f"{SHORT}/0", f"{SHORT}/1")


async def test_a_source_has_what_its_page_says_of_its_publication(evidence: Evidence):
    first = await evidence.add(LONG, "A", "page", "a")
    await evidence.describe(first.number, Publication("2024-03-12", "Jane Doe", "The Daily"))
    await evidence.describe(first.number, Publication(author="x" * 1_000))
    await evidence.describe(99, Publication("2020"))
    again = await evidence.add(LONG, "B", "page", "b")
    (source,) = await evidence.sources()
    assert again == source
    assert (source.title, source.published, source.publisher) == ("B", "2024-03-12", "The Daily")
    assert 0 < len(source.author) < 1_000


async def test_the_list_of_sources_names_publisher_and_date(evidence: Evidence):
    one = await evidence.add(LONG, "The mill", "page", "a")
    await evidence.describe(one.number, Publication("2024-03-12", "", "The *Daily* <https://evil.test/>"))
    two = await evidence.add(SHORT, "Water - Harbour Times", "page", "b")
    await evidence.describe(two.number, Publication("2023", "", "Harbour Times"))
    text = format_source_list(await evidence.sources(), "Sources")
    assert f"- [1] The mill, The \\*Daily\\*, 2024-03-12: <{LONG}>" in text
    assert f"- [2] Water - Harbour Times, 2023: <{SHORT}>" in text


async def test_a_page_that_could_not_be_read_is_no_source_until_it_is_read(evidence: Evidence):
    await evidence.add_unread(LONG, "It answered 500.")
    await evidence.add_unread(f"{LONG}#top", "It answered 503.")
    await evidence.add_unread(PAGE, "It answered 404.")
    assert [(one.url, one.reason) for one in await evidence.unread()] == [
        (LONG, "It answered 503."),
        (PAGE, "It answered 404."),
    ]
    assert await evidence.sources() == []
    await evidence.add(PAGE, "A", "result", "an extract")
    assert len(await evidence.unread()) == 2
    await evidence.add(LONG, "A", "page", "a", asked=PAGE)
    assert await evidence.unread() == []


def a_finding(
    statement: str = "It opened in 1932.", *, source: int = 1, quote: str = "in 1932"
) -> NotedFinding:
    return NotedFinding(source, statement, quote, "0" * 64, 3, 10)


async def test_findings_are_recorded_in_order_with_their_places(evidence: Evidence):
    await evidence.add(PAGE, "A", "page", "text")
    assert await evidence.add_finding(a_finding())
    assert await evidence.add_finding(a_finding("It\n closed.", quote="closed"))
    assert await evidence.add_finding(a_finding(quote="opened in 1932"))
    first, second = await evidence.findings()
    assert (first.quote, first.start, first.end, first.inherited) == ("opened in 1932", 3, 10, False)
    assert (second.statement, second.quote) == ("It closed.", "closed")
    assert first.noted_at >= second.noted_at > 0


async def test_a_finding_of_an_unknown_source_is_not_recorded(evidence: Evidence):
    assert not await evidence.add_finding(a_finding())
    assert await evidence.findings() == []


@pytest.mark.parametrize("wrong", [a_finding(" "), a_finding(quote=""), a_finding("x" * 601)])
async def test_a_finding_beyond_the_limits_is_an_error(evidence: Evidence, wrong: NotedFinding):
    await evidence.add(PAGE, "A", "page", "text")
    with pytest.raises(ValueError, match="finding"):
        await evidence.add_finding(wrong)


async def test_secrets_in_findings_are_masked():
    evidence = RedactedEvidence(MemoryEvidence(), Redactor(["sk-canary-0123456789"]))
    await evidence.add(PAGE, "A", "page", "text")
    await evidence.add_finding(a_finding("The key is sk-canary-0123456789."))
    (finding,) = await evidence.findings()
    assert finding.statement == "The key is ***."


async def test_the_pages_that_a_step_tried_are_known_with_what_became_of_them(evidence: Evidence):
    for url in (PAGE, "https://e.test/b", PAGE, "https://sho.rt/c"):
        await evidence.add_attempt(1, url)
    await evidence.add_attempt(2, "https://e.test/b")
    await evidence.add_unread("https://e.test/b", "It answered 503.")
    await evidence.add_unread("https://sho.rt/c", "It answered 404.")
    await evidence.add(PAGE, "A", "page", "text")
    await evidence.add("https://e.test/c", "C", "page", "text", asked="https://sho.rt/c")
    found = [(one.url, one.reason) for one in await evidence.attempts(1)]
    assert found == [(PAGE, ""), ("https://e.test/b", "It answered 503."), ("https://sho.rt/c", "")]
    assert len(await evidence.attempts(2)) == 1
    assert await evidence.attempts(3) == []
