import pytest

from maniple.reading.html import read_html
from maniple.reading.page_kind import describe_obstacle, find_obstacle, is_obstacle, outline_text
from tests.reading.judged_pages import HONEST, OBSTACLES
from tests.reading.structure_shapes import HONEST_STRUCTURES, WALL_STRUCTURES
from tests.reading.wall_shapes import HONEST_SHAPES, WALL_SHAPES

_LONG = "The mill was built in 1862 and ground corn for three villages. " * 40


@pytest.mark.parametrize("name", OBSTACLES)
def test_a_page_in_the_place_of_another_is_recognized(name: str) -> None:
    kind, page = OBSTACLES[name]
    reading = read_html(page, "https://a.test/some/page")
    assert reading.kind == kind
    assert reading.markdown


@pytest.mark.parametrize("name", HONEST)
def test_a_page_about_such_pages_is_content(name: str) -> None:
    reading = read_html(HONEST[name], "https://a.test/some/page")
    assert not is_obstacle(reading.kind), reading.kind


def test_every_obstacle_is_described_with_its_kind() -> None:
    for kind in {kind for kind, _ in OBSTACLES.values()}:
        assert f"({kind})" in describe_obstacle(kind)
    assert describe_obstacle("article") == ""


_FORM = "Sign in\n[1]<input email>Mail</input>\n[2]<input password></input>\n[3]<button>Go</button>"
_LOST = "Oops! Page not found\n[3]<a>Home</a>\nWe can't find the page you're looking for."
_WITH_FORM = (
    "The mill\n[2]<input password></input>\nThe mill stands at the river and is open from nine to five."
)


@pytest.mark.parametrize(
    ("title", "text", "status", "kind"),
    [
        ("Just a moment...", "www.a.test\nChecking if the site connection is secure", None, "bot check"),
        ("Shop", _LOST, None, "not found"),
        ("Sign in", _FORM, None, "login wall"),
        ("Mill", "The mill\nIt is closed.", 503, "error page"),
        ("Mill", "The mill\nIt is closed.", 404, "not found"),
        ("Mill", _LONG, 503, "error page"),
        ("Mill", _LONG, 404, None),
        ("Mill", "The mill\nIt is closed on Mondays. [4]<a>Hours</a>", 200, None),
        ("Mill", _WITH_FORM, None, None),
    ],
)
def test_a_page_in_a_browser_is_judged_by_its_text_and_status(
    title: str, text: str, status: int | None, kind: str | None
) -> None:
    assert find_obstacle(outline_text(title, text, status)) == kind


def test_a_long_page_is_judged_in_bounded_time() -> None:
    page = f"<title>Page not found</title><p>{'Words that say nothing of pages. ' * 60_000}</p>"
    assert not is_obstacle(read_html(page, "https://a.test/p").kind)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ('<script type="application/ld+json">{"@type": "Product"}</script>', "product"),
        ('<script type="application/ld+json">{"@type": ["QAPage"]}</script>', "forum"),
        ('<meta name="generator" content="mkdocs-1.5">', "documentation"),
        ("", "article"),
    ],
)
def test_the_kind_of_content_is_that_of_the_metadata(head: str, kind: str) -> None:
    assert read_html(f"<title>Mill</title>{head}<p>{_LONG}</p>", "https://a.test/p").kind == kind


def test_a_page_that_is_mostly_a_table_is_a_table() -> None:
    rows = "".join(f"<tr><td>{n}</td><td>Mill {n}</td><td>{n * 3} m</td></tr>" for n in range(30))
    head = "<tr><th>No</th><th>Name</th><th>Height</th></tr>"
    page = f"<title>Mills</title><h1>Mills</h1><table>{head}{rows}</table>"
    assert read_html(page, "https://a.test/p").kind == "table"


@pytest.mark.parametrize("name", WALL_SHAPES)
def test_a_wall_of_any_language_is_no_source(name: str) -> None:
    assert is_obstacle(read_html(WALL_SHAPES[name], "https://a.test/some/page").kind)


@pytest.mark.parametrize("name", HONEST_SHAPES)
def test_a_short_page_that_looks_like_a_wall_is_a_source(name: str) -> None:
    kind = read_html(HONEST_SHAPES[name], "https://a.test/some/page").kind
    assert not is_obstacle(kind), kind


@pytest.mark.parametrize("name", WALL_STRUCTURES)
def test_a_wall_is_recognized_by_its_structure_without_words(name: str) -> None:
    assert is_obstacle(read_html(WALL_STRUCTURES[name], "https://a.test/some/page").kind)


@pytest.mark.parametrize("name", HONEST_STRUCTURES)
def test_a_page_with_the_elements_of_walls_and_a_text_is_a_source(name: str) -> None:
    kind = read_html(HONEST_STRUCTURES[name], "https://a.test/some/page").kind
    assert not is_obstacle(kind), kind
