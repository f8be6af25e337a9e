"""How much a model can read, and about how many tokens a prompt has."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from maniple.llms.context_windows import DEFAULT_WINDOW_TOKENS, count_tokens, room_of, window_of


def model(name="unheard-of", **options):
    return ChatOpenAI(model=name, api_key="k", **options)


def test_the_window_is_the_profile_s_else_the_usual_one():
    assert window_of(model()) == DEFAULT_WINDOW_TOKENS
    assert window_of(model("gpt-4o")) == 128_000
    assert window_of(model(profile={"max_input_tokens": 4096})) == 4096
    assert window_of(model("gpt-4o").bind_tools([])) == 128_000


def test_the_answer_has_its_room_but_never_more_than_half():
    narrow = {"max_input_tokens": 4096}
    assert room_of(model(profile=narrow)) == 4096
    assert room_of(model(profile=narrow, max_tokens=1000)) == 3096
    assert room_of(model(profile=narrow, max_tokens=9000)) == 2048


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("word " * 100, 90, 140), ("汉字" * 100, 120, 220), ("слово " * 100, 150, 320), ("\ud800", 1, 10)],
)
def test_tokens_are_estimated_in_every_script(text, least, most):
    assert least <= count_tokens([HumanMessage(text)]) <= most


def test_calls_pictures_and_tools_count_too():
    @tool
    def look(place: str) -> str:
        """Look at a place."""
        return place

    call = {"name": "look", "args": {"place": "x" * 400}, "id": "1", "type": "tool_call"}
    assert count_tokens([AIMessage("", tool_calls=[call])]) > 100
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert 1_000 <= count_tokens([HumanMessage([picture])]) < 2_000
    assert count_tokens([], [look]) > 15
