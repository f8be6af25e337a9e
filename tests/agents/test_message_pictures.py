"""Pictures are found in the content parts of every usual form, and nothing else is taken for one."""

import base64

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.message_pictures import (
    MAX_PICTURES_OF_MESSAGES,
    describe_lost_pictures,
    find_message_pictures,
)

DATA = base64.b64encode(b"picture").decode()
URL = f"data:image/png;base64,{DATA}"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "image_url", "image_url": URL},
        {"type": "input_image", "image_url": URL},
        {"type": "image", "url": URL},
        {"type": "image", "base64": DATA, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": DATA},
        {"type": "image", "source": {"type": "base64", "data": DATA}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA[:4]}\n{DATA[4:]}"}},
    ],
)
def test_a_picture_is_found(part):
    assert find_message_pictures([HumanMessage([{"type": "text", "text": "Look."}, part])]) == [b"picture"]


@pytest.mark.parametrize(
    "part",
    [
        "text",
        {"type": "text", "text": URL},
        {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,é%"}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url"},
        {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png"}},
        {"type": "image", "data": 7},
    ],
)
def test_what_holds_no_picture_is_passed_over(part):
    assert find_message_pictures([HumanMessage([part])]) == []


def test_of_many_the_newest_are_taken():
    parts = [
        {"type": "image", "data": base64.b64encode(bytes([number])).decode()}
        for number in range(MAX_PICTURES_OF_MESSAGES + 5)
    ]
    found = find_message_pictures([HumanMessage(parts[:10]), HumanMessage("Text"), HumanMessage(parts[10:])])
    assert [one[0] for one in found] == list(range(5, MAX_PICTURES_OF_MESSAGES + 5))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://a.test/b.png?x=1"}},
        {"type": "image_url", "image_url": "https://a.test/b.png?x=1"},
        {"type": "input_image", "image_url": "https://a.test/b.png?x=1"},
        {"type": "image", "url": "https://a.test/b.png?x=1"},
        {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png?x=1"}},
    ],
)
def test_a_picture_at_an_address_is_described_with_the_address(part):
    (note,) = describe_lost_pictures([HumanMessage([{"type": "text", "text": "Look."}, part])])
    assert "https://a.test/b.png?x=1" in note


def test_each_picture_that_is_not_held_is_described_and_the_number_of_those_beyond_the_limit():
    part = {"type": "image", "base64": "cGljdHVyZQ=="}
    assert describe_lost_pictures([HumanMessage([part]), HumanMessage("Text")]) == []
    many = [part] * (MAX_PICTURES_OF_MESSAGES + 3)
    bad = {"type": "image_url", "image_url": "data:image/png;base64,%%%"}
    first, second = describe_lost_pictures([HumanMessage([*many, bad, {"type": "file", "file_id": "x"}])])
    assert "Base64" in first
    assert "(3)" in second
