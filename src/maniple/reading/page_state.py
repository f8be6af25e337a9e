"""The text of a page that its scripts would show, from the state that they are delivered with.

Next.js has it in `__NEXT_DATA__` or in pushes of `__next_f`, Nuxt in `__NUXT_DATA__`, others in a global
variable such as `__INITIAL_STATE__`. Its shape is each site's own: texts that read as prose
are taken, in their order.
"""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_STATE = re.compile(
    r"\b(?:window\.|self\.)?__(?:INITIAL_STATE|PRELOADED_STATE|APOLLO_STATE|NUXT|NEXT_DATA|INITIAL_DATA|DATA|STATE)__"
    r"\s*=\s*(?:JSON\.parse\()?"
)
_PUSH = re.compile(r"self\.__next_f\.push\(")
_IDS = ("__NEXT_DATA__", "__NUXT_DATA__", "__FRSH_STATE", "initial-state", "__APP_DATA__")
_MAX_CHARACTERS = 3_000_000
_MAX_VALUES = 100_000
_MAX_DEPTH = 60
_LEAST_CHARACTERS = 80
_LEAST_WORDS = 10
_IDEOGRAPHS = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_LEAST_IDEOGRAPHS = 25
_TAG = re.compile(r"<[^<>]{0,2000}>")
_BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|h[1-6]|br|tr|table|blockquote|section)\b[^<>]{0,2000}>", re.IGNORECASE
)
_CODE = re.compile(r"[{};]\s*(?:\n|[\w.#-]+\s*[:{(])|=>|function\s*\(|^data:|^https?://\S+$|^[\w+/=]{80,}$")
_NOT_CONTENT = re.compile(
    r"(?:^|_)(?:seo|meta|config|i18n|locale|messages|translations|footer|header|nav|navigation|menu|cookie|consent|legal"
    r"|css|styles?|script|svg|icon|token|query|ads?|related|recommend\w*|comments?|html_?head|tracking|errors?)(?:$|_|[A-Z])"
)
_ENTITIES = {"&nbsp;": " ", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'"}


def find_state_text(page: "HtmlElement") -> str:
    """Return the prose in the state of a page's scripts, a paragraph a block; "" if there is none."""
    texts: dict[str, None] = {}
    for state in _states(page):
        for text in _prose(state):
            texts.setdefault(text)
        if texts:
            break
    return "\n\n".join(texts)


def _states(page: "HtmlElement") -> Iterator[Any]:
    pushed: list[str] = []
    for script in page.iter("script"):
        text = script.text or ""
        if not text or len(text) > _MAX_CHARACTERS:
            continue
        if script.get("id") in _IDS or script.get("type") == "application/json":
            if (value := _decode(text)) is not None:
                yield value
        elif match := _STATE.search(text):
            if (value := _decode(text[match.end() :])) is not None:
                yield value
        else:
            pushed += _pushes(text)
    if pushed:
        yield [_decode(line.partition(":")[2]) for line in "".join(pushed).splitlines()]


def _pushes(text: str) -> Iterator[str]:
    """Yield the texts that Next.js pushes, whose lines are `id:JSON`."""
    for match in _PUSH.finditer(text):
        value = _decode(text[match.end() :])
        if isinstance(value, list):
            yield from (one for one in value if isinstance(one, str))


def _decode(text: str) -> Any:
    """Return the JSON value at the beginning of `text`, which may be a string with JSON; else None."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return _decode(value)
    return value


def _prose(state: Any) -> Iterator[str]:
    """Yield the texts in `state` that read as prose, without tags."""
    left = _MAX_VALUES
    waiting: list[tuple[Any, int]] = [(state, 0)]
    while waiting and left > 0:
        value, depth = waiting.pop()
        left -= 1
        if isinstance(value, str):
            yield from _paragraphs(value)
        elif depth < _MAX_DEPTH and isinstance(value, dict):
            inner = [one for key, one in value.items() if not _NOT_CONTENT.search(str(key))]
            waiting += [(one, depth + 1) for one in reversed(inner)]
        elif depth < _MAX_DEPTH and isinstance(value, list):
            waiting += [(one, depth + 1) for one in reversed(value)]


def _paragraphs(text: str) -> Iterator[str]:
    if len(text) < _LEAST_IDEOGRAPHS or not _is_prose(text):
        return
    for paragraph in _BLOCK.sub("\n", text).splitlines():
        plain = _TAG.sub("", paragraph)
        for entity, character in _ENTITIES.items():
            plain = plain.replace(entity, character)
        if plain := fix_surrogates(" ".join(plain.split())):
            yield plain


def _is_prose(text: str) -> bool:
    sample = _TAG.sub(" ", text[:4_000])
    if _CODE.search(sample[:1_000]):
        return False
    if len(_IDEOGRAPHS.findall(sample)) >= _LEAST_IDEOGRAPHS:
        return True
    return len(sample.strip()) >= _LEAST_CHARACTERS and len(sample.split()) >= _LEAST_WORDS
