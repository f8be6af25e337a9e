import json

import pytest

from maniple.reading.html import read_html

_FIRST = "The bridge opened, as the mayor said, on a cold day in May, and two thousand people walked over it."
_SECOND = "It is 412 metres long and stands on three piers, of which the middle one was the hardest to build."
_BODY = [_FIRST, _SECOND, f"<p>{_FIRST[:-1]} twice.</p><p>{_SECOND[:-1]} by hand.</p>"]
_STATE = {
    "props": {
        "pageProps": {"post": {"title": "Bridge", "blocks": [{"type": "p", "text": text} for text in _BODY]}},
        "messages": {"cookie": "We use cookies, and you can read in our policy what they are. " * 2},
        "css": ".a { color: red; } " * 20,
    }
}  # fmt: skip
_JSON = json.dumps(_STATE)
_FLIGHT = "".join(
    f"<script>self.__next_f.push({json.dumps([1, piece])})</script>"
    for piece in ("1:" + _JSON[:200], _JSON[200:] + "\n")
)


@pytest.mark.parametrize(
    "script",
    [
        f'<script id="__NEXT_DATA__" type="application/json">{_JSON}</script>',
        f'<script type="application/json" id="__NUXT_DATA__">{_JSON}</script>',
        f"<script>window.__INITIAL_STATE__ = {_JSON};(function(){{}})()</script>",
        f"<script>window.__PRELOADED_STATE__ = JSON.parse({json.dumps(_JSON)})</script>",
        f"<script>window.__NUXT__={_JSON}</script>",
        _FLIGHT,
    ],
)
def test_a_page_that_is_nothing_but_its_state_is_read_from_it(script: str) -> None:
    notice = "<noscript>You need to enable JavaScript to run this app.</noscript>"
    page = f"<title>Bridge</title>{notice}<div id=__next></div>{script}<script src=/a.js></script>"
    reading = read_html(page, "https://a.test/p")
    lines = [_FIRST, _SECOND, f"{_FIRST[:-1]} twice.", f"{_SECOND[:-1]} by hand."]
    assert reading.markdown.split("\n\n") == lines
    assert reading.kind == "article"


def test_a_page_that_shows_its_text_is_not_read_from_its_state() -> None:
    text = "<p>The mill was built in 1862 and ground corn for three villages.</p>" * 20
    page = f'<title>Mill</title><article>{text}</article><script id="__NEXT_DATA__">{_JSON}</script>'
    assert _FIRST not in read_html(page, "https://a.test/p").markdown


def test_broken_and_deep_states_are_passed_over() -> None:
    for state in ("{", "[" * 100_000, '"text"', "null", '{"a": 1}'):
        page = f'<title>Mill</title><p>Short.</p><script id="__NEXT_DATA__">{state}</script>'
        assert read_html(page, "https://a.test/p").markdown == "Short."
