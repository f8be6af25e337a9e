"""Finds the addresses in a block of a report, in all forms that a renderer may turn into links."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

from maniple.evidence.citation import Citation, index_spans
from maniple.evidence.prose import Prose, Unescaped

_COUNTRIES = (
    "a[cdefgilmoqrstuwxz]|b[abdefghijmnorstvwyz]|c[acdfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrstu]|f[ijkmor]|"
    "g[abdefghilmnpqrstuwy]|h[kmnrtu]|i[delmnoqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|"
    "m[acdeghklmnopqrstuvwxyz]|n[acefgilopruz]|om|p[aefghklmnrstwy]|qa|r[eosuw]|s[abcdeghijklmnorstuvxyz]|"
    "t[cdfghjklmnortvwz]|u[agksyz]|v[aceginu]|w[fs]|y[et]|z[amw]|рф"
)
_OTHERS = (
    "com|net|org|edu|gov|mil|int|info|biz|name|pro|mobi|asia|aero|coop|jobs|museum|travel|cat|arpa|test|example|"
    "app|dev|page|blog|wiki|news|site|online|website|web|space|tech|cloud|shop|store|xyz|top|club|live|life|"
    "world|today|media|press|agency|digital|science|health|energy|finance|law|legal|academy|education|school|"
    "university|institute|foundation|international|global|network|systems|software|solutions|services|support|"
    "company|group|team|work|design|studio|art|photo|video|social|community|email|link|click|zone|guide|report|"
    "reviews|review|earth|eco|green|london|berlin|paris|tokyo|nyc|africa|lat|eus|gal|swiss|bank|law"
)
# A letter of a host name. Ideographs and kana may directly precede an address, as there are no spaces.
_LETTER = r"a-z0-9\u00df-\u024f\u0370-\u0587\u05d0-\u05ea\u0620-\u064a"
# Names of files and products that look like host names.
_NO_HOST = re.compile(r"[^.]+\.(?:py|md|sh|ps|so|cc)|(?:asp|vb|ado|ml)\.net", re.IGNORECASE)
_REST = r"(?:(?!\][(\[])[^\s<>\"`|\\，。；：！？、（）【】「」『』《》〈〉“”„«»—،؛؟।])"
_WEB = re.compile(
    rf"(?:(?:https?|ftp):[/\\]{{1,4}}(?=[^\s/\\])|(?<![\w./@])www\.(?=\w)|(?<!\w)(?:folder|upload):){_REST}{{1,4000}}"
    rf"|(?<![{_LETTER}.@\\-])(?<![\w.~]/)(?P<host>(?:[{_LETTER}][{_LETTER}-]*\.)+(?:{_COUNTRIES}|{_OTHERS})"
    rf"(?![{_LETTER}.-]))(?::\d{{1,5}})?/(?=[\w%~#?@+(-]){_REST}{{1,4000}}"
    r"|(?<=<)(?!mailto:|tel:)[a-z][a-z0-9+.-]{1,30}:[^\s<>]{1,4000}(?=>)",
    re.IGNORECASE,
)
# Possessive quantifiers, so that an unterminated link is scanned once.
_LINK = re.compile(
    r"\]\(\s{0,8}(?:<([^<>\n]{1,4000})>|((?:[^\s()<>]++|\([^\s()<>]*+\))*+))\s{0,8}"
    r"(?:[\"'(][^\"')\n]{0,300}[\"')])?[ \t]{0,8}\)?"
)
DEFINITION = re.compile(
    r"^[ >]{0,8}(\[)[^\]\n]{1,200}\]:[ \t]{0,8}\n?[ \t]{0,8}<?([^\s<>]+)>?"
    r"(?:[ \t]{1,8}(?:\"[^\"\n]*\"|'[^'\n]*'|\([^)\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
"""A reference definition, `[name]: address "title"`, on a line of its own; group 1 is the bracket."""
_ATTRIBUTE = re.compile(
    r"(?<![\w-])(?:href|src|srcset|cite|action|poster)\s{0,8}=\s{0,8}"
    r"(?:\"([^\"<>]{1,4000})\"|'([^'<>]{1,4000})'|([^\s\"'<>]{1,4000}))",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SLASHES = re.compile(r"(?<=:)[/\\]{1,4}")
_HAS_SCHEME = re.compile(r"(?!mailto:|tel:|sms:)[a-z][a-z0-9+.-]+:|[/\\]{2}", re.IGNORECASE)
_HOST_ALONE = re.compile(rf"(?:[{_LETTER}-]+\.)+(?:com|net|org|edu|gov|info|io|test|example)", re.IGNORECASE)
_MARKS_BEHIND = ".,;:!?'‘’*_~…"
_POSSESSIVE = re.compile(r"['’]s[.,;:!?]{0,3}\Z")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def find_links(prose: Prose) -> list[Citation]:
    """Return the targets of links, definitions and HTML, and bare addresses, also in inline code.

    Inline code counts as a citation, because many reports write addresses as code.
    """
    linked = [*_definitions(prose.shown), *_targets(prose.shown), *_attributes(prose.shown)]
    end_of_target = index_spans((one.start, one.end) for one in linked)
    found = [*linked, *(one for one in _bare(prose.shown) if not end_of_target(one.start))]
    ends = [_behind_tag(prose.shown, one) for one in found]
    return sorted((replace(one, end=end) for one, end in zip(found, ends, strict=True)), key=_start)


def _start(one: Citation) -> int:
    return one.start


def remove_addresses(text: str) -> str:
    """Return `text` without the addresses in it."""
    return _WEB.sub("", text)


def _definitions(shown: str) -> Iterator[Citation]:
    for found in DEFINITION.finditer(shown):
        if url := _address(found[2]):
            yield Citation("url", found.start(1), found.end(), url)


def _targets(shown: str) -> Iterator[Citation]:
    for found in _LINK.finditer(shown):
        if url := _address(found[1] or found[2] or ""):
            yield Citation("url", found.start(), found.end(), url)


def _attributes(shown: str) -> Iterator[Citation]:
    for found in _ATTRIBUTE.finditer(shown):
        if url := _address((found[1] or found[2] or found[3]).strip()):
            yield Citation("url", found.start(), found.end(), url)


def _behind_tag(shown: str, one: Citation) -> int:
    """Return the end of an address, or of the tag that contains it, because a mark in a tag is invisible."""
    if not _ATTRIBUTE.match(shown, one.start):
        return one.end
    return shown.find(">", one.end, one.end + 4_000) + 1 or one.end


def _address(target: str) -> str:
    """Return the web address of a target in Markdown or HTML; "" for a file, a fragment or mail."""
    url = unescape(_ESCAPE.sub(r"\1", target))
    if _HAS_SCHEME.match(url):
        return _SLASHES.sub("//", url.replace("\\", "/"), count=1)
    bare = _WEB.match(url)
    is_bare = (bare is not None and _is_host(bare)) or _HOST_ALONE.fullmatch(url)
    return f"https://{url}" if is_bare else ""


def _is_host(found: re.Match[str]) -> bool:
    return found["host"] is None or not _NO_HOST.fullmatch(found["host"])


def _bare(shown: str) -> Iterator[Citation]:
    clear = Unescaped(shown)
    for found in _WEB.finditer(clear.text):
        written = _trimmed(found[0])
        if not (_is_host(found) and any(map(str.isalnum, written.partition(":")[2] or written))):
            continue
        url = f"https://{written}" if found["host"] else _SLASHES.sub("//", written, count=1)
        end = clear.raw(found.start() + len(written))
        yield Citation("url", clear.raw(found.start()), _after(shown, end), url)


def _trimmed(url: str) -> str:
    """Return an address without the punctuation of the sentence around it."""
    room = {closing: url.count(opening) - url.count(closing) for closing, opening in _CLOSING.items()}
    url = _POSSESSIVE.sub("", url)
    end = len(url)
    while end and (url[end - 1] in _MARKS_BEHIND or room.get(url[end - 1], 0) < 0):
        end -= 1
        if url[end] in room:
            room[url[end]] += 1
    return url[:end]


def _after(shown: str, end: int) -> int:
    """Return where a mark may follow an address: after its angle bracket or the link that contains it."""
    if shown.startswith(">", end):
        end += 1
    if shown.startswith("](", end):
        link = _LINK.match(shown, end)
        return link.end() if link else end
    return end
