import json
import stat
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest

from maniple.errors import McpError
from maniple.mcp import PinStore
from maniple.mcp.pins import MAX_PINNED_TOOLS
from maniple.mcp.tool_definitions import read_listing
from maniple.shared_texts import TextFolder


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
    return PinStore(TextFolder(tmp_path / "mcp" / "accepted"))


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


def test_with_the_setting_nothing_is_accepted_automatically(pins, tmp_path):
    assert "not accepted yet" in pins.judge("s", tools(Offered()), "accepted")["t"]
    assert pins.of("s") == {}
    assert not (tmp_path / "mcp").exists()
    pins.accept("s", tools(Offered()))
    assert pins.judge("s", tools(Offered()), "accepted") == {}


def test_accepted_tools_are_stored_privately_for_their_owner(pins, tmp_path):
    before = pins.stamp("s s"), pins.stamp("other")
    pins.accept("s s", tools(Offered()))
    assert pins.stamp("s s") != before[0]
    assert pins.stamp("other") == before[1]
    folder = tmp_path / "mcp" / "accepted"
    assert stat.S_IMODE((folder / "s_s.json").stat().st_mode) == 0o600
    assert PinStore(TextFolder(folder)).of("s s")["t"].description == "Does it."


@pytest.mark.parametrize("content", ["{", "[]", '{"t": 1}', '{"t": {}}', "[" * 100_000])
def test_a_damaged_file_accepts_nothing_of_its_server_and_all_of_others(pins, tmp_path, content):
    folder = tmp_path / "mcp" / "accepted"
    folder.mkdir(parents=True)
    (folder / "s.json").write_text(content)
    with pytest.raises(McpError, match="cannot be read"):
        pins.judge("s", tools(Offered()), "first_use")
    assert pins.judge("other", tools(Offered()), "first_use") == {}


def test_the_file_can_be_read_by_people(pins, tmp_path):
    pins.accept("s", tools(Offered()))
    written = json.loads((tmp_path / "mcp" / "accepted" / "s.json").read_text())
    assert written["t"]["schema"]["type"] == "object"


def test_a_server_that_has_ever_new_names_gets_so_many_and_no_more(pins):
    for turn in range(0, MAX_PINNED_TOOLS, 200):
        assert pins.judge("s", tools(*(Offered(f"t{turn + n}") for n in range(200))), "first_use") == {}
    refused = pins.judge("s", tools(Offered("t0"), Offered("one more")), "first_use")
    assert refused == {
        "one more": "its server has had more than 400 tools; look at them: maniple mcp accept s"
    }
    assert len(pins.of("s")) == MAX_PINNED_TOOLS
    pins.accept("s", tools(Offered("one more")))
    assert pins.judge("s", tools(Offered("one more"), Offered("two more")), "first_use") == {}


def test_a_server_that_describes_its_tools_at_length_has_only_so_much_room(pins, tmp_path):
    # Written as six letters each.
    long = {"type": "object", "properties": {"a": {"description": "\u6f22" * 30_000}}}
    offered = [Offered(f"t{n}", schema=long) for n in range(60)]
    refused = pins.judge("s", tools(*offered), "first_use")
    assert 0 < len(refused) < 60
    assert "more than 8000000 bytes" in refused["t59"]
    assert (tmp_path / "mcp" / "accepted" / "s.json").stat().st_size < 9_000_000
    with pytest.raises(McpError, match="cannot be accepted"):
        pins.accept("s", tools(*offered))


def test_two_programs_that_accept_at_once_lose_nothing(pins, tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\nfrom types import SimpleNamespace as Offered\n"
        "from maniple.mcp import PinStore\nfrom maniple.mcp.tool_definitions import read_listing\n"
        "from maniple.shared_texts import TextFolder\n"
        "pins = PinStore(TextFolder(Path(sys.argv[1])))\nprint('ready', flush=True)\nsys.stdin.read()\n"
        "for n in range(30):\n"
        "    one = Offered(name=f'{sys.argv[2]}{n}', description='', input_schema={}, annotations=None)\n"
        "    pins.judge('s', read_listing([one]).tools, 'first_use')\n"
    )
    argv = [sys.executable, "-c", program, str(tmp_path / "mcp" / "accepted")]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        both: Any = [stack.enter_context(subprocess.Popen([*argv, name], **pipes)) for name in "ab"]
        for one in both:
            assert one.stdout.readline() == b"ready\n"
        for one in both:
            one.stdin.close()
        assert [one.wait(60) for one in both] == [0, 0]
    assert len(pins.of("s")) == 60
