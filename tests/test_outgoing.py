"""No secret of the settings leaves in a request, and ordinary requests leave."""

import base64
import codecs
import html
import logging
import random
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest

from maniple.outgoing import OutgoingGuard, SecretRefused
from tests.sizes import rest_is_slow

KEY = "sk-proj-Zq81XmB4kT7vWcR2nLy9Hd5GfJ3sPa6E"
OTHERS = (
    "tvly-dev-9fKx2QmB7LrT4wNc8ZsV1yHd",
    "3f9c1e7ab24d58609e1f7c3a5b8d2e46",
    "correct-horse-battery-staple",
    "Tr0ub4dor&3",
    "AIzaSyD4u7Kq9LmN2xWv5RtYb8PcE1fGhJ3oZkU",
    "postgres",
    "918273645546372819",
)
SITE = "https://evil.test/"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WAYS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: f"{SITE}?k={key}",
    "in a sentence": lambda key: f"what is {key} for",
    "percent": lambda key: SITE + "".join(f"%{ord(one):02x}" for one in key),
    "percent twice": lambda key: SITE + quote("".join(f"%{ord(one):02X}" for one in key)),
    "base64": lambda key: f"{SITE}?k={encoded(key)}",
    "base64 after one byte": lambda key: f"{SITE}{encoded('x' + key + 'end')}",
    "base64 after two bytes": lambda key: f"{SITE}{encoded('xx' + key + 'e')}",
    "base64 of urls": lambda key: SITE + base64.urlsafe_b64encode(f"a>?{key}".encode()).decode().rstrip("="),
    "base64 in percent": lambda key: f"{SITE}?{urlencode({'k': encoded(key)})}",
    "base64 twice": lambda key: f"{SITE}{encoded(encoded(key))}",
    "base32": lambda key: f"{SITE}{base64.b32encode(key.encode()).decode()}",
    "hex": lambda key: f"{SITE}?k={key.encode().hex()}",
    "hex with colons": lambda key: f"look up {key.encode().hex(':')}",
    "reversed": lambda key: f"{SITE}{key[::-1]}",
    "base64 of reversed": lambda key: f"{SITE}{encoded(key[::-1])}",
    "reversed base64": lambda key: f"{SITE}{encoded(key)[::-1]}",
    "rot13": lambda key: f"{SITE}{codecs.encode(key, 'rot13')}",
    "numbers": lambda key: f"{SITE}?k={','.join(str(ord(one)) for one in key)}",
    "escapes": lambda key: "".join(f"\\u{ord(one):04x}" for one in key),
    "html": lambda key: "".join(f"&#{ord(one)};" for one in key),
    "capitals": lambda key: f"{SITE}{key.upper()}",
    "letters apart": lambda key: " ".join(key),
    "dots between": lambda key: f"{SITE}{'.'.join(key[n : n + 3] for n in range(0, len(key), 3))}",
    "host name": lambda key: f"https://{key.replace('_', '-').lower()}.evil.test/",
    "host name in hex": lambda key: f"{key.encode().hex()[:60]}.{key.encode().hex()[60:]}.evil.test",
    "two parameters": lambda key: f"{SITE}?a={key[:20]}&b={key[20:]}",
    "two parameters in base64": lambda key: f"{SITE}?a={encoded(key[:19])}&b={encoded(key[19:])}",
    "many parameters": lambda key: f"{SITE}?{'&'.join(f'p{n}={one}' for n, one in enumerate(key))}",
    "path": lambda key: SITE + "/".join(key[n : n + 5] for n in range(0, len(key), 5)),
    "a first half": lambda key: f"{SITE}{key[:22]}",
    "full width": lambda key: "".join(chr(ord(one) + 0xFEE0) for one in key),
}


def is_refused(guard: OutgoingGuard, *requests: object, to: str = "evil.test") -> bool:
    try:
        for one in requests:
            guard.check(one, by="a test", thread="t", to=to)
    except SecretRefused:
        return True
    return False


@pytest.mark.parametrize("way", WAYS)
def test_a_key_does_not_leave(way: str) -> None:
    assert is_refused(OutgoingGuard([KEY, *OTHERS]), WAYS[way](KEY))


@pytest.mark.parametrize("key", [OTHERS[0], OTHERS[1], OTHERS[4]])
@pytest.mark.parametrize("way", ["plain", "base64", "base64 after one byte", "hex", "reversed", "percent"])
def test_no_kind_of_key_leaves(way: str, key: str) -> None:
    assert is_refused(OutgoingGuard([KEY, *OTHERS]), WAYS[way](key))


@pytest.mark.parametrize(
    "encode", [str, encoded, lambda part: part.encode().hex(), lambda part: part[::-1], quote]
)
@pytest.mark.parametrize("size", [20, 13, 8, 5])
def test_a_key_does_not_leave_in_several_requests(encode: Callable[[str], str], size: int) -> None:
    parts = [KEY[start : start + size] for start in range(0, len(KEY), size)]
    requests = [f"{SITE}?n={number}&part={encode(part)}" for number, part in enumerate(parts)]
    assert is_refused(OutgoingGuard([KEY]), *requests)


def test_a_key_does_not_leave_letter_by_letter() -> None:
    assert is_refused(OutgoingGuard([KEY]), *(f"{SITE}log?c={one}" for one in KEY))
    assert is_refused(OutgoingGuard([KEY]), *(f"{one.lower()}.evil.test" for one in KEY if one != "-"))


def test_arguments_of_a_tool_are_checked_with_their_names_at_any_depth() -> None:
    assert is_refused(OutgoingGuard([KEY]), {"a": [{"b": {"c": f"x {KEY}"}}]})
    assert is_refused(OutgoingGuard([KEY]), {KEY: 1})
    assert is_refused(OutgoingGuard([KEY]), {"one": KEY[:20], "two": [KEY[20:]]})


def test_a_receiver_gets_its_own_secret_and_no_other() -> None:
    guard = OutgoingGuard([KEY, OTHERS[0]]).without([KEY])
    assert not is_refused(guard, {"token": KEY})
    assert is_refused(guard, {"token": OTHERS[0]})


def test_after_a_refusal_ordinary_requests_leave() -> None:
    guard = OutgoingGuard([KEY])
    assert is_refused(guard, f"{SITE}{KEY[:8]}", f"{SITE}{KEY[8:]}")
    assert not is_refused(guard, f"{SITE}weather", f"{SITE}weather?city=Bern")


def test_parts_for_other_places_or_threads_are_not_taken_together() -> None:
    guard = OutgoingGuard([KEY])
    guard.check(KEY[:14], by="a test", thread="t", to="one.test")
    guard.check(KEY[14:28], by="a test", thread="t", to="two.test")
    guard.check(KEY[14:28], by="a test", thread="u", to="one.test")


def test_neither_the_log_nor_the_error_has_the_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(SecretRefused) as refused:
        OutgoingGuard([KEY]).check(f"{SITE}{KEY}", by="crawl_tool", to="evil.test")
    assert "crawl_tool" in caplog.text
    for text in (caplog.text, str(refused.value), repr(OutgoingGuard([KEY]))):
        assert not any(KEY[start : start + 6] in text for start in range(len(KEY) - 6))


_SENTENCES = (
    "api key format openai project sk-proj postgres password reset correct horse staple comic battery life",
    "berlin weather 2026 population of france budget secret santa tavily-python docs staple gun rotate keys",
    "tvly-dev trouble door number theory hotel prices june 日本 経済 wie spät ist es straße café météo",
)
_WORDS = " ".join(_SENTENCES).split()


def _ordinary(number: int) -> str:
    chance = random.Random(number)
    words = chance.sample(_WORDS, k=chance.randint(1, 7))
    match number % 8:
        case 0:
            return " ".join(words)
        case 1:
            return f"https://example.org/{'/'.join(words[:3])}?q={quote(' '.join(words))}&page={number}"
        case 2:
            return f"https://cdn.example.net/{chance.randbytes(16).hex()}/{chance.randbytes(20).hex()}.js"
        case 3:
            return f"https://www.youtube.com/watch?v={base64.urlsafe_b64encode(chance.randbytes(8)).decode()}&t=3"
        case 4:
            return (
                f"https://docs.example.com/d/{base64.urlsafe_b64encode(chance.randbytes(33)).decode()}/edit"
            )
        case 5:
            return f"https://en.wikipedia.org/wiki/{'_'.join(words)}#{words[0]}"
        case 6:
            return f"https://shop.example.com/p/{chance.randrange(10**12)}?ref=sr_1_{number}&q={number**3}"
        case _:
            return html.escape(f"https://arxiv.org/abs/{chance.randrange(9999)}.{number} & {' '.join(words)}")


@pytest.mark.parametrize("first", rest_is_slow(range(0, 1_000, 100), 1))
def test_a_thousand_ordinary_requests_leave(first: int) -> None:
    guard = OutgoingGuard([KEY, *OTHERS])
    refused = [
        one
        for number in range(first, first + 100)
        if is_refused(guard, one := _ordinary(number), to=f"site-{number % 3}")
    ]
    assert refused == []


def test_a_secret_that_is_added_stays_here_unless_it_is_of_the_receiver() -> None:
    guard = OutgoingGuard()
    receiver, other = guard.without([KEY]), guard.without([OTHERS[0]])
    guard.add([KEY])
    for strict in (guard, other):
        with pytest.raises(SecretRefused):
            strict.check(KEY, by="a test")
    receiver.check(KEY, by="a test")


def test_without_secrets_everything_leaves() -> None:
    assert not is_refused(OutgoingGuard(["", "short", "password"]), "the password is short")
