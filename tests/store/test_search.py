"""The full-text search in the store."""

import pytest

from maniple.store.search_terms import SearchTerms, fold_text
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


async def stored(store, question, answer="", owner="", **fields):
    thread = await store.threads.create(a_thread(owner))
    run = await store.runs.add(a_run(thread, store.process, ended_at=2.0, **fields))
    await store.texts.put(run.run_id, question, answer)
    return run


async def found(store, query, owner: str | None = "", limit=10):
    return [one.run.run_id for one in await store.texts.search(owner, SearchTerms.of(query), limit)]


async def test_texts_with_all_words_are_found_whatever_their_case_and_accents(store):
    solar = await stored(store, "How fast did solar power grow?", "Photovoltaics grew by 24 %, says Müller.")
    await stored(store, "How fast did wind power grow?", "Turbines grew.")
    assert await found(store, "SOLAR power") == [solar.run_id]
    assert await found(store, "muller grew") == [solar.run_id]
    assert await found(store, "Photovol") == [solar.run_id], "the last word may be the beginning of one"
    assert await found(store, "solar turbines") == []
    assert len(await found(store, "power", limit=1)) == 1
    assert await found(store, " ?! ") == []


@pytest.mark.parametrize(
    "query", ['"', "solar OR", "NEAR(a b)", "a*", "col:x", "' OR 1", "%", "_", "& | !", "(", "\\"]
)
async def test_no_query_is_syntax(store, query):
    await stored(store, "Plain words")
    assert await found(store, query) == []


async def test_a_word_in_a_script_without_spaces_is_found_within_a_text(store):
    chinese = await stored(store, "太阳能发电增长多快？", "光伏发电增长了百分之二十四。")
    japanese = await stored(store, "東京の人口は？", "約1400万人です。")
    await stored(store, "Something else")
    assert await found(store, "光伏发电") == [chinese.run_id]
    assert await found(store, "光伏") == [chinese.run_id], "two characters are less than the index has"
    assert await found(store, "人口") == [japanese.run_id]
    assert await found(store, "太阳能 光伏") == [chinese.run_id]
    assert await found(store, "风能") == []


async def test_an_owner_finds_their_own_texts_only(store):
    mine, theirs = await stored(store, "secret", owner="me"), await stored(store, "secret", owner="them")
    assert await found(store, "secret", "me") == [mine.run_id]
    assert await found(store, "secret", "them") == [theirs.run_id]
    assert sorted(await found(store, "secret", None)) == sorted([mine.run_id, theirs.run_id])


async def test_a_text_replaces_the_earlier_one_of_its_run(store):
    run = await stored(store, "a question", "wrong 光伏发电")
    await store.texts.put(run.run_id, "a question", "right")
    assert await found(store, "wrong") == [] and await found(store, "光伏发电") == []
    assert await found(store, "right") == [run.run_id]


async def test_a_deleted_thread_leaves_nothing_in_the_search(store):
    run = await stored(store, "canary", "光伏发电")
    await store.threads.delete(run.thread_id)
    assert await found(store, "canary", None) == [] and await found(store, "光伏发电", None) == []
    await store.texts.put(run.run_id, "canary", "")
    assert await found(store, "canary", None) == []
    assert await store.check() == []


async def test_ended_runs_without_a_text_are_listed_for_the_index(store):
    thread = await store.threads.create(a_thread())
    old = [await store.runs.add(a_run(thread, store.process, ended_at=2.0)) for _ in range(3)]
    await store.runs.add(a_run(thread, store.process))
    await store.texts.put(old[1].run_id, "q", "a")
    assert [one.run_id for one in await store.texts.list_unindexed(9)] == [old[2].run_id, old[0].run_id]


async def test_the_index_has_no_word_of_a_deleted_thread(sqlite_store):
    run = await stored(sqlite_store, "canary", "光伏发电")
    await sqlite_store.threads.delete(run.thread_id)
    for table in ("run_words", "run_trigrams"):
        await sqlite_store._database.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    assert await sqlite_store._database.fetch("SELECT count(*) FROM run_texts") == [(0,)]


def test_folding_keeps_the_length_of_a_text():
    text = "Straße İstanbul ﬁ Ångström 太阳能 é́ 🜨"
    assert len(fold_text(text)) == len(text)
    assert fold_text("Ångström") == "angstrom"
