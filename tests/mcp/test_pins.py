import json
import stat

import pytest

from maniple.errors import McpError
from maniple.mcp import Pins
from maniple.mcp.definitions import read_listing


class Offered:
    def __init__(self, name="t", description="Does it.", schema=None):
        self.name = name
        self.description = description
        self.input_schema = schema or {"type": "object"}
        self.annotations = None


def tools(*offered):
    return read_listing(offered).tools


@pytest.fixture
def pins(tmp_path):
    return Pins(tmp_path / "mcp" / "accepted.json")


def test_a_tool_is_accepted_when_it_is_first_seen_and_refused_when_it_changes(pins):
    assert pins.judge("s", tools(Offered()), "first_use") == {}
    assert pins.judge("s", tools(Offered()), "first_use") == {}
    for changed in (Offered(description="Does it. And more."), Offered(schema={"properties": {"a": {}}})):
        assert "it changed since" in pins.judge("s", tools(changed), "first_use")["t"]
    assert pins.judge("s", tools(Offered(), Offered("new")), "first_use") == {}
    assert pins.judge("other", tools(Offered(description="Its own.")), "first_use") == {}


def test_a_change_beyond_what_a_model_is_shown_counts(pins):
    long = "x" * 5_000
    pins.judge("s", tools(Offered(description=long)), "first_use")
    assert pins.judge("s", tools(Offered(description=long + "!")), "first_use")


def test_nothing_is_accepted_by_itself_where_that_is_wanted(pins):
    assert "not accepted yet" in pins.judge("s", tools(Offered()), "accepted")["t"]
    assert pins.of("s") == {}
    pins.accept("s", tools(Offered()))
    assert pins.judge("s", tools(Offered()), "accepted") == {}


def test_what_was_accepted_is_kept_for_its_owner_alone(pins, tmp_path):
    before = pins.stamp()
    pins.accept("s", tools(Offered()))
    assert pins.stamp() != before
    file = tmp_path / "mcp" / "accepted.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Pins(file).of("s")["t"].description == "Does it."


@pytest.mark.parametrize("content", ["{", "[]", '{"s": 1}', '{"s": {"t": {}}}', '{"s": {"t": 1}}'])
def test_a_damaged_file_accepts_nothing(pins, tmp_path, content):
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "accepted.json").write_text(content)
    with pytest.raises(McpError, match="cannot be read"):
        pins.judge("s", tools(Offered()), "first_use")


def test_the_file_can_be_read_by_people(pins, tmp_path):
    pins.accept("s", tools(Offered()))
    assert (
        json.loads((tmp_path / "mcp" / "accepted.json").read_text())["s"]["t"]["schema"]["type"] == "object"
    )
