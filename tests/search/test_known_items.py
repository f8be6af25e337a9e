"""Known documents are found again at least as well as by a plain BM25 over whole documents."""

import sysconfig
from pathlib import Path

import pytest

from bench.folder_search import (
    DOCUMENTS,
    PlainBM25,
    hit_share,
    keyword_queries,
    real_texts,
    sentence_queries,
)
from maniple.search.folder_index import FolderIndex, IndexStamp, NewDocument

_ALLOWED_LOSS = 0.03


@pytest.mark.parametrize(
    # Fewer queries than documents leave the share to the documents that happen to be drawn.
    ("documents", "queries"),
    [(300, 300), pytest.param(DOCUMENTS, 300, marks=pytest.mark.slow)],
)
def test_known_documents_are_found_first_as_often_as_by_plain_bm25(
    tmp_path: Path, documents: int, queries: int
) -> None:
    texts = real_texts(Path(sysconfig.get_paths()["purelib"]), documents)
    assert len(texts) == documents
    index = FolderIndex(tmp_path / "index.db", tmp_path)
    try:
        index.put(
            NewDocument(name=name, stamp=IndexStamp(0, 0), sha256=b"", reader="", title=name, text=text)
            for name, text in texts.items()
        )
        plain = PlainBM25(texts)
        for make in (keyword_queries, sentence_queries):
            asked = list(make(texts, plain, queries))
            assert len(asked) > queries / 2
            ours = hit_share(asked, lambda query: [one.name for one in index.find(query, 1)])
            assert ours >= hit_share(asked, plain.rank) - _ALLOWED_LOSS, make.__name__
    finally:
        index.close()
