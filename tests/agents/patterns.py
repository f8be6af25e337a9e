"""What agents do, answer by answer: thirty ways to be stuck, and thirty that only look like it."""

import json
from itertools import cycle, islice
from typing import Any

from maniple.agents.tool_observations import ObservedCall

Answer = list[ObservedCall]
LONG = "Berlin has 3,878,100 inhabitants and is the capital of Germany, says the statistical office."
HITS = json.dumps([{"title": "A", "url": "https://a.test/"}, {"title": "B", "url": "https://b.test/"}])
UNKNOWN = "Error: browse is not a valid tool, try one of [search, read]."


def did(name: str, result: str, is_error: bool = False, /, **arguments: Any) -> ObservedCall:
    return ObservedCall(name, arguments, result, is_error)


def alone(*calls: ObservedCall) -> list[Answer]:
    return [[call] for call in calls]


def times(count: int, *calls: ObservedCall) -> list[Answer]:
    """`count` answers of one call each, these in turn."""
    return alone(*islice(cycle(calls), count))


A, B, C = did("read", "page a", page="a"), did("read", "page b", page="b"), did("read", "page c", page="c")
TRACE = "Traceback (most recent call last):\n  File \"<{n}>\", line {n}\nKeyError: 'x'\n[exit code 1]"

STUCK: dict[str, list[Answer]] = {
    "the same page again": times(12, A),
    "the same search again": times(12, did("tavily_search", HITS, query="berlin")),
    "the same failure again": times(12, did("crawl_tool", "crawl_tool failed: 404", True, url="u")),
    "the same code, in times that differ": alone(
        *[did("python_repl_tool", f"4\n[took {n / 7 + 1:.1f} s]", code="f()") for n in range(12)]
    ),
    "arguments in another order": times(
        12, did("find", "x", a="1", b="2"), ObservedCall("find", {"b": "2", "a": "1"}, "x")
    ),
    "arguments in other blanks and case": times(
        12, did("find", "x", query="Big  Apple"), did("find", "x", query="big apple ")
    ),
    "a number as text and as a number": times(12, did("read", "x", page=3), did("read", "x", page="3")),
    "an argument left out or empty": times(
        12, did("crawl_tool", "x", url="u"), did("crawl_tool", "x", url="u", section="")
    ),
    "a result with the time of day": alone(
        *[did("look", f"nothing to see (2026-11-22T10:00:{n:02})", at="door") for n in range(12)]
    ),
    "a result with an id of the call": alone(
        *[did("look", f"not found, request id: ab12cd{n:04}", at="door") for n in range(12)]
    ),
    "a result with an address in memory": alone(
        *[did("python_repl_tool", f"<object at 0x7f{n:010x}>", code="x") for n in range(12)]
    ),
    "a click that changes nothing": times(12, did("click", "The page did not change.", index=7)),
    "a test that fails unchanged": alone(
        *[
            did("bash_tool", f"FAILED t.py - 1 failed in 0.{n + 10}s\n[exit code 1]", cmd="pytest")
            for n in range(12)
        ]
    ),
    "a rejected call": times(12, did("bash_tool", "The user rejected this call.", True, cmd="rm x")),
    "arguments that do not fit": alone(
        *[did("read", "read was not run: page: Field required", True, seite=n) for n in range(12)]
    ),
    "a tool that is not there": alone(
        *[did("browse", UNKNOWN, True, url=f"https://e.test/{n}") for n in range(12)]
    ),
    "the same calls beside each other": [[A, B]] * 12,
    "the same calls in another order": [[A, B], [B, A]] * 6,
    "two pages in turn": times(14, A, B),
    "forth and back": times(14, did("open", "page", url="u"), did("go_back", "home")),
    "a switch on and off": times(
        14, did("click", "menu open", index=1), did("click", "menu closed", index=1)
    ),
    "an edit and its undoing": times(
        14, did("edit", "a -> b", old="a", new="b"), did("edit", "b -> a", old="b", new="a")
    ),
    "two failures in turn": times(14, did("x", "no", True, a=1), did("y", "no way", True, a=1)),
    "three pages in turn": times(18, A, B, C),
    "four calls in turn": times(20, A, B, C, did("search", "d", q="d")),
    "pages without any order": alone(*[(A, B, C)[n * n % 7 % 3] for n in range(18)]),
    "other words, the same hits": alone(
        *[did("tavily_search", HITS, query=f"berlin {n}") for n in range(14)]
    ),
    "other words, no hits": alone(*[did("tavily_search", "[]", query=f"berlin {n}") for n in range(14)]),
    "other addresses, the same failure": alone(
        *[
            did("crawl_tool", f"There is no page at https://e.test/{n}.", True, url=f"https://e.test/{n}")
            for n in range(14)
        ]
    ),
    "other programs, the same error": alone(
        *[did("python_repl_tool", TRACE.format(n=n), code=f"attempt({n})") for n in range(14)]
    ),
}

PROGRESS: dict[str, list[Answer]] = {
    "paging by Next": alone(*[did("click", f"Page {n}: {LONG}", text="Next") for n in range(40)]),
    "scrolling down": alone(*[did("scroll", f"paragraph {n}", by=1) for n in range(40)]),
    "pages that differ in a number": alone(
        *[did("click", f"Item {n} of 40", text="Next") for n in range(40)]
    ),
    "a log whose lines differ by their times": alone(
        *[did("more", "\n".join(f"10:{n:02}:{s:02} heartbeat" for s in range(5))) for n in range(40)]
    ),
    "reading a file in parts": alone(
        *[did("read_file", f"{LONG} {n}", path="a", start_line=n) for n in range(40)]
    ),
    "a job that gets on": alone(*[did("job_status", f"running, {n} %", job="j") for n in range(0, 100, 3)]),
    "a job that says only that it runs": [
        *times(8, did("job_status", "running", job="j")),
        [did("job_status", "done", job="j")],
    ],
    "sleeping between looks": [
        *times(
            16, did("bash_tool", "[no output]", cmd="sleep 20"), did("bash_tool", "building", cmd="cat state")
        ),
        [did("bash_tool", "built", cmd="cat state")],
    ],
    "waiting for a page": [
        *times(4, did("wait", "The page is still loading.", seconds=5)),
        [did("wait", LONG, seconds=5)],
    ],
    "a second try that works": [
        *times(2, did("crawl_tool", "timed out", True, url="u")),
        [did("crawl_tool", LONG, url="u")],
    ],
    "many files written": alone(
        *[did("write_file", f"Wrote 100 bytes to {n}.", path=f"{n}", content="x") for n in range(30)]
    ),
    "many files written, one acknowledgement": alone(
        *[did("create_file", f"The file was written. {LONG}", path=f"{n}", text="x") for n in range(30)]
    ),
    "many rows inserted": alone(*[did("query", "1 row inserted", sql=f"insert {n}") for n in range(30)]),
    "many silent commands": alone(
        *[did("bash_tool", "[no output; print what you want to see]", cmd=f"mkdir {n}") for n in range(30)]
    ),
    "many names looked up in vain": alone(*[did("exists", "False", path=f"{n}.txt") for n in range(30)]),
    "small sums": alone(*[did("python_repl_tool", str(n % 3), code=f"{n} % 3") for n in range(30)]),
    "messages sent": alone(*[did("send_mail", "Sent.", to=f"{n}@e.test") for n in range(30)]),
    "fields filled": alone(*[did("type", "ok", index=n, text="x") for n in range(30)]),
    "edits and tests in turn": [
        one
        for n in range(15)
        for one in alone(
            did("str_replace_editor", f"Changed a.py:\n{n}", path="a.py", old_str=f"{n}", new_str=f"{n + 1}"),
            did("bash_tool", "1 failed\n[exit code 1]", cmd="pytest"),
        )
    ],
    "errors that lead on": alone(
        *[did("bash_tool", f"a.c:{n}: error\n[exit code 1]", cmd="make") for n in range(20)]
    ),
    "a file read again after each change": [
        one
        for n in range(15)
        for one in alone(
            did("write_file", "ok", path="a", content=f"{n}"), did("read_file", f"{n}", path="a")
        )
    ],
    "a die": alone(
        *[did("roll", str(n)) for n in (3, 5, 3, 1, 6, 3, 2, 2, 4, 6, 1, 5, 5, 2, 6, 1, 3, 4, 4, 1)]
    ),
    "going back through pages": alone(*[did("go_back", f"page {n}") for n in range(20, 0, -1)]),
    "two pages compared twice": [*times(4, A, B), [C]],
    "what was read, read once more": [
        *times(3, A, B, C),
        *times(3, A, B, C),
        [did("read", "page d", page="d")],
    ],
    "searches that share a hit": alone(
        *[
            did(
                "tavily_search",
                json.dumps([{"url": "https://a.test/"}, {"url": f"https://e.test/{n}"}]),
                query=f"{n}",
            )
            for n in range(20)
        ]
    ),
    "two places that tell the same, twice": [
        *alone(did("crawl_tool", LONG, url="a"), did("crawl_tool", LONG, url="b"), A, B),
        *alone(did("crawl_tool", LONG, url="c"), C, did("crawl_tool", LONG, url="d")),
    ],
    "names guessed until one is right": [
        *alone(
            *[did("crawl_tool", f"There is no page at {n}.test.", True, url=f"{n}.test") for n in range(4)]
        ),
        [did("crawl_tool", LONG, url="e.test")],
    ],
    "a counter that runs down": alone(
        *[did("click", f"{n} left", text="Delete the first") for n in range(30, 0, -1)]
    ),
    "one call of the answer repeats itself": [[A, did("click", f"Page {n}", text="Next")] for n in range(20)],
}
