"""The report on the page of a run."""

from bs4 import BeautifulSoup

from maniple.run_page.page import render
from maniple.run_page.pictures import Pictures
from tests.report_files.samples import SOURCES
from tests.run_page.run_records import history_of, run_record

REPORT = """# Tea

Tea is old [1][^a]: $x^2$.

- [x] brewed

[^a]: In cups.
"""


def test_a_report_is_shown_as_in_its_files():
    heard = (
        ("start_of_agent", {"agent_name": "reporter", "agent_id": "c"}),
        ("message", {"message_id": "n", "delta": {"content": REPORT}}),
        ("end_of_agent", {"agent_name": "reporter", "agent_id": "c"}),
        ("run_status", {"status": "completed"}),
        ("final_session_state", {"messages": [{"role": "user", "content": REPORT}]}),
    )
    page = render(history_of(*heard), run_record(), [], Pictures({}, ()), sources=SOURCES)
    result = BeautifulSoup(page, "lxml").select_one(".result")
    assert result is not None
    assert [one.text for one in result.select("h1")] == ["Tea"]
    assert [one["href"] for one in result.select("a.citation")] == ["#source-1"]
    assert [one["id"] for one in result.select("li.source")] == ["source-1"]
    assert [one.text for one in result.select("sup.footnote")] == ["1"]
    assert result.select("math msup") and result.select(".box")
