import base64
import html
import json
import re
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.redaction import Redactor, StreamRedactor

KEY = "sk-canary/0123+456=789"
PASSWORD = 'pä"ss\\wörd & <more>'
ALPHABET = "a]^-"
texts = st.text(ALPHABET, max_size=60)
secrets = st.lists(st.text(ALPHABET, min_size=6, max_size=9), max_size=4)


@pytest.mark.parametrize("secret", [KEY, PASSWORD])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: json.dumps(json.dumps({"key": secret})),
        repr,
        html.escape,
        quote,
        quote_plus,
        lambda secret: re.sub("%..", lambda match: match[0].lower(), quote(secret, safe="")),
        lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
        lambda secret: base64.b64encode(f"ab:{secret}!".encode()).decode(),
        lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    ],
)
def test_a_secret_is_masked_however_libraries_write_it(secret: str, spell: object) -> None:
    shown = spell(secret)  # type: ignore[operator]
    masked = Redactor([secret]).text(f"before {shown} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert "***" in masked
    middle = shown.strip("\"'")[3:-3]
    assert middle not in masked


def test_what_holds_no_secret_is_the_same_object() -> None:
    redactor = Redactor([KEY])
    text, tree, data = "nothing here", {"a": ["b", ("c", 1)], "d": None}, b"bytes"
    assert redactor.text(text) is text
    assert redactor.value(tree) is tree
    assert redactor.same_length(data) is data
    assert StreamRedactor(redactor).feed(text) is text


def test_a_value_keeps_its_shape() -> None:
    tree = {KEY: [f"a {KEY}", {"n": (KEY, 1, None, True)}], "same": "x"}
    assert Redactor([KEY]).value(tree) == {"***": ["a ***", {"n": ("***", 1, None, True)}], "same": "x"}


def test_short_secrets_are_left_alone() -> None:
    assert not Redactor(["", "12345"])
    assert Redactor(["12345"]).text("12345") == "12345"


def test_secrets_that_overlap_are_one() -> None:
    redactor = Redactor(["abcdef", "defghi", "abcdefgh"])
    assert redactor.text("xabcdefghiy abcdef-defghi") == "x***y ***-***"


def test_bytes_keep_their_length() -> None:
    data = f"é{PASSWORD}é".encode()
    masked = Redactor([PASSWORD]).same_length(data)
    assert len(masked) == len(data)
    assert masked == "é".encode() + b"*" * len(PASSWORD.encode()) + "é".encode()


def test_a_redactor_does_not_show_its_secrets() -> None:
    assert KEY not in repr(Redactor([KEY]))


def test_each_secret_has_a_redactor_of_its_own() -> None:
    shown = {one.text("secret-a secret-b") for one in Redactor(["secret-a", "secret-b"]).each()}
    assert shown == {"*** secret-b", "secret-a ***"}


@given(secrets, st.lists(texts, max_size=12))
def test_a_stream_gives_out_what_the_whole_text_would(secrets: list[str], pieces: list[str]) -> None:
    redactor = Redactor(secrets)
    stream = StreamRedactor(redactor)
    told = [stream.feed(piece) for piece in pieces] + [stream.end()]
    assert "".join(told) == redactor.text("".join(pieces))


@given(secrets, texts, st.lists(st.integers(1, 3), min_size=1, max_size=200))
def test_no_secret_leaves_in_pieces(secrets: list[str], text: str, sizes: list[int]) -> None:
    whole = "".join(f"{secret}{text}" for secret in secrets)
    stream, told, start = StreamRedactor(Redactor(secrets)), "", 0
    for size in sizes:
        told += stream.feed(whole[start : start + size])
        start += size
    told += stream.end()
    assert not any(secret in told for secret in secrets)


def test_a_stream_that_is_not_suspicious_is_not_held() -> None:
    stream = StreamRedactor(Redactor(["sk-0123456789"]))
    assert [stream.feed(piece) for piece in ("Hi ", "there, ", "sk", "ill", "")] == [
        "Hi ",
        "there, ",
        "",
        "skill",
        "",
    ]


def test_ten_keys_cost_little() -> None:
    redactor = Redactor(f"sk-{number}-{'x' * 40}" for number in range(10))
    page = "The quick brown fox jumps over the lazy dog. " * 22_000  # 1 MB
    began = time.process_time()
    assert redactor.text(page) is page
    assert time.process_time() - began < 1


def test_a_secret_that_is_added_is_masked_from_then_on_also_in_a_stream_that_has_begun():
    redactor = Redactor(["first-secret"])
    stream = StreamRedactor(redactor)
    shown = stream.feed("first-secret second-")
    redactor.add(["second-secret", "short"])
    shown += stream.feed("and second-secret short") + stream.end()
    assert shown == "*** second-and *** short"
    assert redactor.text("first-secret") == "***"
