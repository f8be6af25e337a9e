import base64

import pytest
from mcp_types import CallToolResult

from maniple.mcp.results import MAX_PICTURES, parse_result

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()


def outcome(*content, **more):
    return parse_result(CallToolResult.model_validate({"content": content, **more}))


def image(data=PNG, media_type="image/png"):
    return {"type": "image", "data": data, "mimeType": media_type}


def resource(**more):
    return {"type": "resource", "resource": {"uri": "file:///a", **more}}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([resource(text="inside", mimeType="text/plain")], "Resource <file:///a>:\ninside"),
        (
            [resource(blob="AAAA", mimeType="application/zip")],
            "[resource <file:///a> of type application/zip, 3 bytes]",
        ),
        (
            [{"type": "resource_link", "uri": "file:///b", "name": "B", "mimeType": "text/csv"}],
            "Resource: B <file:///b> text/csv",
        ),
        ([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}], "[audio of type audio/wav: left out]"),
        ([image("not base64!")], "[an image that cannot be read: image/png]"),
        ([image("A" * 3_000_000)], "[an image of more than 2000000 bytes was left out: image/png]"),
        ([], ""),
    ],
)
def test_each_kind_of_content_is_text(content, text):
    assert outcome(*content).text == text


def test_images_are_pictures_also_as_resources_and_not_too_many():
    found = outcome(*[image()] * MAX_PICTURES, resource(blob=PNG, mimeType="image/png"))
    assert [one.content for one in found.pictures] == [base64.b64decode(PNG)] * MAX_PICTURES
    assert found.text == "[a further image was left out: image/png]"


@pytest.mark.parametrize(
    ("texts", "structured", "text"),
    [
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (["4"], {"result": 4}, "4"),
        (["four"], {"result": "four"}, "four"),
        (["It is four."], {"n": 4}, 'It is four.\n{"n": 4}'),
        ([], {"n": 4}, '{"n": 4}'),
        (["[" * 50_000], {"n": 4}, None),
    ],
)
def test_structured_content_is_shown_unless_the_text_is_the_same(texts, structured, text):
    found = outcome(*({"type": "text", "text": one} for one in texts), structuredContent=structured)
    assert found.text == text or (text is None and found.text.endswith('{"n": 4}'))


def test_a_failure_is_marked():
    assert outcome({"type": "text", "text": "no"}, isError=True).is_error
