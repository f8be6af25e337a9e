import re

from hypothesis import given
from hypothesis import strategies as st

from maniple.mcp.tool_definitions import MAX_NAME_CHARACTERS, ToolNames


def test_a_tool_is_named_with_its_server():
    assert ToolNames().of("time", "get_current_time") == "time__get_current_time"


def test_what_endpoints_do_not_take_becomes_an_underscore():
    assert ToolNames().of("my server", "do.the/thing ü") == "my_server__do_the_thing__"


def test_names_that_would_be_the_same_differ_and_stay_as_they_are():
    names = ToolNames()
    first, second = names.of("a", "b.c"), names.of("a", "b c")
    assert first == "a__b_c"
    assert re.fullmatch(r"a__b_c_[0-9a-f]{8}", second)
    assert (names.of("a", "b.c"), names.of("a", "b c")) == (first, second)


def test_long_names_differ_although_they_begin_the_same():
    names = ToolNames()
    first, second = names.of("server", "x" * 100 + "1"), names.of("server", "x" * 100 + "2")
    assert first != second
    assert len(first) == len(second) == MAX_NAME_CHARACTERS


def test_a_name_of_just_the_greatest_length_stays_as_it_is():
    longest = "x" * (MAX_NAME_CHARACTERS - len("server__"))
    assert ToolNames().of("server", longest) == f"server__{longest}"
    cut = ToolNames().of("server", f"{longest}x")
    assert re.fullmatch(r"server__x+_[0-9a-f]{8}", cut)
    assert len(cut) == MAX_NAME_CHARACTERS == 64


WORDS = st.text("ab_. ü", max_size=40)


@given(st.lists(st.tuples(WORDS, WORDS), unique=True, max_size=10))
def test_every_name_is_one_that_endpoints_take_and_no_two_are_the_same(pairs):
    names = ToolNames()
    given_names = [names.of(*pair) for pair in pairs]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{2,64}", name) for name in given_names)
    assert len(set(given_names)) == len(pairs)
