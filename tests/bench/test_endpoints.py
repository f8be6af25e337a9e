"""The table of model servers in `docs/models.md`.

`tests/endpoints` proves that each row comes out as it must; here, that the page says so.
"""

from bench.endpoints import BEGIN, END, PAGE, build_section, replace_section
from tests.endpoints.raw_outputs import ROWS


def test_the_page_has_the_output():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert replace_section(page, build_section()) == page, "run `python -m bench.endpoints --write`"


def test_the_page_says_what_is_wrong():
    row = ROWS[0]
    assert "**wrong**" not in build_section()
    assert f"- **wrong**. {row.server}: {row.form}." in build_section({row.id})
