import zlib
from collections.abc import Callable, Iterator

import pytest

from maniple.crawler import article
from maniple.crawler.article import Article, read_article
from maniple.crawler.document import FetchedDocument
from maniple.errors import FetchError
from maniple.reading import fork_server
from maniple.reading.fork_server import ForkServer
from tests.reading.files import docx, paragraph, pdf

pytestmark = pytest.mark.anyio

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News of bridges</title>
<item><title>A &amp; B</title>
<link>http://site.test/a</link><pubDate>Sun, 22 Nov 2026 10:00:00 GMT</pubDate>
<description>&lt;p&gt;It &lt;b&gt;opened&lt;/b&gt;. &lt;script&gt;x()&lt;/script&gt;&lt;/p&gt;</description>
</item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>Opened</title>
<link href="http://site.test/b"/><updated>2026-11-22T10:00:00Z</updated>
<content type="html">&lt;p&gt;At last.</content></entry></feed>"""


READERS = ForkServer()
"""One for all of these tests: it takes a while to import the libraries."""


@pytest.fixture(scope="module", autouse=True)
def closed_readers() -> Iterator[None]:
    yield
    READERS.close()


async def read(body: bytes | str, media_type: str, name: str = "file", limit: int = 12_000) -> Article:
    body = body.encode() if isinstance(body, str) else body
    document = FetchedDocument(f"http://site.test/{name}", media_type, None, body)
    return await read_article(document, limit, READERS)


def bomb() -> bytes:
    """Return a document that unpacks to more than may be read; not at import, which each worker does."""
    return docx(paragraph("x") * 10, {"word/bomb.xml": bytes(60_000_000)})


async def test_a_pdf_is_read_page_by_page_under_its_title() -> None:
    article = await read(pdf("The first arch", "# is no heading"), "application/pdf")
    assert article.title == "On bridges"
    assert article.markdown == "## Page 1\n\nThe first arch\n\n## Page 2\n\n\\# is no heading"


@pytest.mark.parametrize(
    ("body", "media_type", "said"),
    [
        (pdf("secret", password="word"), "application/pdf", "requires a password"),
        (pdf("", ""), "application/pdf", "without text and pictures"),
        (b"%PDF-1.7 and nothing", "application/pdf", "is a damaged PDF"),
        (b"PK\x03\x04 and nothing", DOCX, "is a damaged ZIP archive"),
        (bomb, DOCX, "more than 50,000,000 bytes"),
        (docx(""), DOCX, "no text that can be read"),
        ("<rss></rss>", "application/rss+xml", "no text that can be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_unreadable_document_is_reported_with_the_reason(
    body: bytes | str | Callable[[], bytes], media_type: str, said: str
) -> None:
    with pytest.raises(FetchError, match=f"^http://site.test/file .*{said}"):
        await read(body() if callable(body) else body, media_type)


async def test_a_pdf_that_opens_without_a_password_is_read_though_it_is_encrypted() -> None:
    from io import BytesIO

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(BytesIO(pdf("Open to all"))))
    writer.encrypt("", "owner", algorithm="RC4-128")
    stream = BytesIO()
    writer.write(stream)
    assert "Open to all" in (await read(stream.getvalue(), "application/pdf")).markdown


async def test_a_long_pdf_states_how_many_pages_were_read() -> None:
    article = await read(pdf(*["A line"] * 301), "application/pdf")
    assert article.note == "Only the first 300 of 301 pages were read."
    assert article.note in article.text


async def test_a_bomb_in_a_pdf_ends_its_reader_and_nothing_else() -> None:
    bomb = zlib.compress(b"0 0 Td " * 60_000_000, 9)
    stream = b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(bomb), bomb)
    parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    parts += [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>", stream]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj%s endobj\n" % (n, part) for n, part in enumerate(parts, 1))
    with pytest.raises(FetchError):
        await read(body + b"trailer<</Root 1 0 R>>", "application/pdf")


async def test_a_word_document_keeps_headings_and_paragraphs() -> None:
    body = paragraph("On bridges", "Heading1") + paragraph("The arch is older.")
    assert (await read(docx(body), DOCX)).markdown == "# On bridges\n\nThe arch is older."


async def test_an_entity_bomb_in_a_word_document_is_refused() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
    bomb = f"<!DOCTYPE w [{entities}]><w>&e11;</w>".encode()
    with pytest.raises(FetchError, match="damaged"):
        await read(docx("", {"word/document.xml": bomb}), DOCX)


@pytest.mark.parametrize("media_type", ["application/rss+xml", "application/xml", "text/xml"])
async def test_a_feed_is_read_entry_by_entry(media_type: str) -> None:
    article = await read(RSS, media_type)
    assert article.title == "News of bridges"
    assert article.markdown == (
        "## [A & B](http://site.test/a)\n\nSun, 22 Nov 2026 10:00:00 GMT\n\nIt **opened**."
    )


async def test_a_feed_of_atom_is_read_too() -> None:
    assert (await read(ATOM, "application/atom+xml")).markdown == (
        "## [Opened](http://site.test/b)\n\n2026-11-22T10:00:00Z\n\nAt last."
    )


async def test_other_xml_stays_as_it_is() -> None:
    assert (
        await read("<bridges><bridge/></bridges>", "application/xml")
    ).markdown == "<bridges><bridge/></bridges>"


@pytest.mark.parametrize(
    ("body", "media_type", "name"),
    [
        ('name,length\nAkashi,"1,991"\nHumber,1410|5\n', "text/csv", "data"),
        ("name;length\nAkashi;1,991\nHumber;1410|5\n", "text/plain", "data.csv"),
        ("name\tlength\nAkashi\t1,991\nHumber\t1410|5\n", "text/tab-separated-values", "data"),
    ],
)
async def test_separated_values_become_a_table(body: str, media_type: str, name: str) -> None:
    expected = "| name | length |\n| --- | --- |\n| Akashi | 1,991 |\n| Humber | 1410\\|5 |"
    assert (await read(body, media_type, name)).markdown == expected


async def test_a_long_table_states_how_many_rows_were_read() -> None:
    assert (await read("a,b\n" * 6_000, "text/csv")).note == "Only the first 5,000 rows were read."


async def test_json_on_one_line_is_laid_out_and_other_json_stays() -> None:
    flat = "{" + ",".join(f'"key{n}":{n}' for n in range(100)) + "}"
    assert (await read(flat, "application/json")).markdown.startswith('{\n "key0": 0,\n "key1": 1,')
    assert (await read('{"a": [1, 2]}', "application/ld+json")).markdown == '{"a": [1, 2]}'


async def test_json_with_escaped_characters_is_read_with_the_characters() -> None:
    assert (await read(r'{"a": "\u6865 \ud83c\udf09 \ud800"}', "application/json")).markdown == (
        '{\n "a": "桥 🌉 \ufffd"\n}'
    )


async def test_json_that_is_nothing_but_depth_is_not_laid_out() -> None:
    deep = "[" * 900 + "]" * 900
    assert (await read(deep, "application/json")).markdown == deep
    deeper = "[" * 500_000
    assert (await read(deeper, "application/json")).markdown.startswith("[[[[")


async def test_markdown_is_parted_at_its_headings_and_plain_text_is_not() -> None:
    text = "# One\n" + "x\n" * 300 + "# Two\n" + "y\n" * 300
    for media_type, name in (("text/markdown", "a"), ("text/plain", "a.md")):
        assert [s.heading for s in (await read(text, media_type, name, 700)).sections] == ["One", "Two"]
    assert [s.heading for s in (await read(text, "text/plain", "a.sh", 700)).sections] == [
        "a.sh (1 of 2)",
        "a.sh (2 of 2)",
    ]


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        ("<title>Мост</title><p>Мост длиной два километра.", "text/html"),
        ("мост,длина\nКрымский,19", "text/csv"),
        ('{"мост": 19}', "application/json"),
        ("Мост длиной два километра.", "text/plain"),
    ],
)
async def test_where_it_is_read_makes_no_difference(
    body: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = FetchedDocument("http://site.test/a", media_type, "windows-1251", body.encode("windows-1251"))
    here = await read_article(document, 12_000, READERS)
    monkeypatch.setattr(article, "_LARGE_BYTES", 0)
    assert await read_article(document, 12_000, READERS) == here
    assert "19" in here.markdown or "Мост длиной" in here.markdown


@pytest.mark.parametrize(("tags", "elsewhere"), [(9_000, False), (11_000, True)])
async def test_a_page_of_many_tags_is_read_elsewhere_however_small(
    tags: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "_TIMEOUT_SECONDS", 0)
    reading = read("words" + "<b>" * tags, "text/html")
    if not elsewhere:
        assert "words" in (await reading).markdown
        return
    with pytest.raises(FetchError, match="takes too long"):
        await reading
